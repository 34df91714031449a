"""One term for many methods: the sum it is, what it makes of a class, and runs with it from beginning to end."""

import math
import sys

import numpy as np
import pytest
import torch
from torch import nn

import unweave as uw
from unweave.cli import app
from unweave.contract import Method, Out, hyper_params, player_parameters, static_arguments
from unweave.data.user.arrays import Arrays
from unweave.engine.loop import train_step
from unweave.engine.program import initial_state
from unweave.methods import METHODS, variant
from unweave.methods.semi_supervised import accepts_labels, few_labels
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.discriminator import Discriminator
from unweave.ops.label_terms import LABEL_TERMS
from unweave.training.build import build, build_program
from unweave.training.prepare import prepare
from unweave.training.sweep import resume_all

COMPOSE = ["vae", "beta_vae", "annealed_vae", "factor_vae", "beta_tcvae", "dip_vae_i", "dip_vae_ii", "info_vae"]
TINY = {"net": "small", "latents": 4, "batch": 8, "steps": 6, "log_every": 2, "device": "cpu"}
TOLD = {**TINY, "semi_supervised": "xent", "supervision": "labels(n=50, factors=['scale', 'shape'])"}
ROOMS = "rooms(size=8)"


@pytest.fixture(autouse=True)
def small_critics(monkeypatch):
    for name in ("factor_vae", "info_vae"):
        monkeypatch.setattr(
            f"unweave.methods.{name}.Discriminator", lambda latents, **_: Discriminator(latents, width=16, depth=2)
        )


def labelled_case(case, cls, semi_supervised="xent"):
    """The tiny problem of the other tests, with two factors of 3 and 5 classes told, and one label unknown."""
    c = case(few_labels(cls), semi_supervised=semi_supervised)
    c.method.label_sizes = (3, 5)
    labels = torch.tensor([[0, 4], [2, 1], [1, -1], [2, 2], [0, 0]])
    c.batch = c.batch._replace(labelled=c.random(torch.rand, 5, 1, 8, 8), labels=labels)
    return c


def term_by_hand(mean, labels, flavour):
    """Over single numbers; the places of 3 and of 5 classes are written out."""
    places = {"xent": [[0, 0.5, 1], [0, 0.25, 0.5, 0.75, 1]]}
    places["l2"] = places["cov"] = [
        [c / math.sqrt(2 / 3) for c in (-1, 0, 1)],
        [c / math.sqrt(2) for c in (-2, -1, 0, 1, 2)],
    ]
    pairs = [
        [(row, places[flavour][i][y[i]]) for row, y in zip(mean, labels, strict=True) if y[i] >= 0] for i in (0, 1)
    ]
    if flavour == "cov":
        entries = [
            (i, j, np.cov([m[j] for m, _ in rows], [y for _, y in rows], ddof=0)[0, 1])
            for i, rows in enumerate(pairs)
            for j in range(len(mean[0]))
        ]
        return sum(cov**2 for i, j, cov in entries if i != j)
    found = [(m[i], y) for i, rows in enumerate(pairs) for m, y in rows]
    if flavour == "l2":
        return sum((m - y) ** 2 for m, y in found) / len(mean)
    return sum(y * math.log1p(math.exp(-m)) + (1 - y) * math.log1p(math.exp(m)) for m, y in found) / len(mean)


@pytest.mark.parametrize("flavour", list(LABEL_TERMS))
@pytest.mark.parametrize("name", COMPOSE)
def test_loss_is_the_methods_and_the_term(case, name, flavour):
    """gamma_sup times the sum over 64 labelled images, or the covariances; nothing else of the method changes."""
    plain, told = case(METHODS[name]), labelled_case(case, METHODS[name], flavour)
    hyper = {knob: about.default for knob, about in hyper_params(METHODS[name]).items()}
    mean = told.method.autoencoder.posterior(told.batch.labelled)[0].tolist()
    term = term_by_hand(mean, told.batch.labels.tolist(), flavour)
    before, after = plain.out(**hyper), told.out(**hyper, gamma_sup=3.0)
    assert after.logs["label_loss"].item() == pytest.approx(term, rel=1e-6)
    expected = before.losses["model"].item() + 3.0 * (term if flavour == "cov" else 64 * term)
    assert after.losses["model"].item() == after.logs["loss"].item() == pytest.approx(expected, rel=1e-6)
    assert after.losses.keys() == before.losses.keys() and after.logs.keys() == before.logs.keys() | {"label_loss"}
    for logged in before.logs.keys() - {"loss"}:
        torch.testing.assert_close(after.logs[logged], before.logs[logged])


def test_what_it_makes_of_a_class():
    cls = METHODS["beta_vae"]
    told = few_labels(cls)
    assert told is few_labels(cls) is few_labels(told) is variant(cls, {"semi_supervised": "l2"})
    assert variant(cls, {"beta": 2}) is cls
    assert issubclass(told, cls) and (told.__name__, told.__module__) == (cls.__name__, cls.__module__)
    assert list(hyper_params(told)) == ["beta", "gamma_sup"] and hyper_params(told)["beta"] == hyper_params(cls)["beta"]
    assert hyper_params(told)["gamma_sup"].default == 4.0 and hyper_params(cls).keys() == {"beta"}
    assert [*static_arguments(cls), "semi_supervised"] == list(static_arguments(told))
    info = uw.DataInfo((1, 8, 8), 100, labels=(3, 5), labelled=10)
    assert told(info, net="small").needs == ("x", "labelled", "labels")
    assert few_labels(METHODS["factor_vae"])(info, net="small").needs == ("x", "x_other", "labelled", "labels")
    one_batch = few_labels(METHODS["factor_vae"])(info, net="small", one_batch=True)
    assert one_batch.needs == ("x", "labelled", "labels")
    assert set(few_labels(METHODS["info_vae"])(info, net="small").players) == {"model"}


class TwoPhases(Method):
    """A method whose model moves in two phases."""

    players = {"model": ("autoencoder",), "discriminator": ("discriminator",)}
    phases = {"judge": ("discriminator",), "first": ("model",), "second": ("model",)}

    def __init__(self, data, *, latents=2):
        super().__init__()
        self.latents, self.discriminator = latents, nn.Linear(1, 1)
        self.autoencoder = AutoEncoder(data.shape, latents, "small", "bernoulli")

    def forward(self, batch, noise, hyper, step, phase=""):
        loss = self.autoencoder.posterior(batch.x)[0].square().mean()
        if phase == "judge":
            return Out({"discriminator": self.discriminator.weight.sum()}, {"judge": loss})
        return Out({"model": loss}, {"loss" if phase == "first" else "again": loss})


def test_told_once_a_step():
    method = few_labels(TwoPhases)(uw.DataInfo((1, 8, 8), 100, labels=(2,), labelled=10))
    batch = uw.Batch(
        x=torch.rand(4, 1, 8, 8), labelled=torch.rand(4, 1, 8, 8), labels=torch.tensor([[0], [1], [1], [0]])
    )
    outs = {p: method(batch, {}, method.Hyper(torch.tensor(1.0)), torch.tensor(0), phase=p) for p in method.phases}
    assert [set(out.logs) for out in outs.values()] == [{"judge"}, {"loss", "label_loss"}, {"again"}]
    assert outs["first"].losses["model"] > 10.0 > outs["second"].losses["model"]


@pytest.mark.parametrize("name", COMPOSE)
def test_one_step_moves_each_player_by_its_own_loss(name):
    _, config, cls, data = prepare(name, ROOMS, **TOLD)
    method = build(cls, config, data)
    program, state = build_program(config, method, data), initial_state(method)
    after, logs = train_step(program, state)
    assert all(map(math.isfinite, logs.values())) and "label_loss" in logs
    for names in player_parameters(method).values():
        assert any(not torch.equal(after.params[n], state.params[n]) for n in names)
    still = program.optimizers["model"]._replace(lr=torch.tensor([0.0, 0.0, 1.0, 0.0]))
    held, _ = train_step(program._replace(optimizers={**program.optimizers, "model": still}), state)
    assert all(torch.equal(held.params[n], state.params[n]) for n in program.parameter_names["model"])


@pytest.mark.parametrize("method", ["beta_vae", "factor_vae"])
def test_among_others_as_alone(method, tmp_path):
    """A fleet with labels of each run's own is those runs, and `compare` scores it."""
    runs = [{**TOLD, "method": method, "data": ROOMS, "seed": s, "gamma_sup": g} for s, g in ((0, 1), (1, 8))]
    together = uw.fit(runs, out=tmp_path / "together", strategy="batched")
    for run, trained in zip(runs, together, strict=True):
        alone = uw.train(**run, out=tmp_path / f"alone{run['seed']}")
        for (n, a), b in zip(trained.method.state_dict().items(), alone.method.state_dict().values(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4, msg=n)
        assert trained.folder.logs()[-1] == pytest.approx(alone.folder.logs()[-1], rel=1e-4, abs=1e-4)
    plain = uw.train(method, ROOMS, **TINY, out=tmp_path / "plain")
    frame = uw.score_runs([*together, plain.folder.path], metrics=["mig"], num_samples=200)
    assert frame["method"].tolist() == [method] * 3 and frame["mig"].notna().all()
    assert frame["semi_supervised"].fillna("none").tolist() == ["xent", "xent", "none"]


def test_killed_and_resumed_loaded_and_repeated(tmp_path):
    class Killed(Exception):
        pass

    def kill(progress):
        if progress.step == 4:
            raise Killed

    options = {**TOLD, "checkpoint_every": 2, "semi_supervised": "l2", "gamma_sup": "linear(0, 8, 4)"}
    whole = uw.train("beta_vae", ROOMS, out=tmp_path / "whole", **options)
    for cut in ("one", "two"):
        with pytest.raises(Killed):
            uw.train("beta_vae", ROOMS, out=tmp_path / cut, observe=kill, **options)
    for resumed in (uw.resume(tmp_path / "one"), resume_all([tmp_path / "two"])[0], uw.load(tmp_path / "whole")):
        for (n, a), b in zip(whole.method.state_dict().items(), resumed.method.state_dict().values(), strict=True):
            assert torch.equal(a, b), n
        assert whole.folder.logs() == resumed.folder.logs()
    assert (whole.config.method, whole.config.arguments["semi_supervised"]) == ("beta_vae", "l2")
    assert {"semi_supervised=l2", "gamma_sup=linear(0,8,4,0)"} <= {
        word.strip("'") for part in whole.config.command() for word in part.split()
    }


@pytest.mark.parametrize("imprecise", ["n=48, bins=2", "n=48, noise=0.5", "n=48, permute=True", "n=0.01"])
def test_imprecise_labels(imprecise, tmp_path):
    """They are trained on as told: not as the right ones of the same images would be."""
    losses = []
    for n, words in enumerate((imprecise, "n=48")):
        told = {**TOLD, "supervision": f"labels({words}, factors=['scale'])"}
        logs = uw.train("vae", ROOMS, **told, out=tmp_path / f"run{n}").folder.logs()
        losses.append([record["label_loss"] for record in logs])
    assert all(map(math.isfinite, losses[0])) and losses[0] != losses[1]


def bars(unknown=0.0):
    """Two bars of height 0 to 8 side by side; some of the heights may be unknown."""
    every = torch.cartesian_prod(torch.arange(9), torch.arange(9))
    columns = every[:, [0] * 4 + [1] * 4]
    images = (torch.arange(8)[None, :, None] < columns[:, None, :]).float()[:, None]
    heights = np.where(np.random.default_rng(0).random((81, 2)) < unknown, np.nan, every.double().numpy())
    return Arrays(images, heights, names=["left", "right"]), every.numpy()


@pytest.mark.parametrize("flavour", ["xent", "l2"])
def test_the_first_latents_learn_the_labelled_factors(flavour, tmp_path):
    """From 70 % of the heights in 40 images: latent 0 is the right bar and latent 1 the left, as named."""
    data, heights = bars(unknown=0.3)
    options = dict(net="small", latents=3, steps=100, batch=32, lr=4e-3, beta=1, device="cpu", log_every=100)
    told = "labels(n=40, factors=['right', 'left'])"
    trained = uw.train("beta_vae", data, **options, semi_supervised=flavour, supervision=told, out=tmp_path / "told")
    codes = trained.encode(data.images(torch.arange(81)))
    share = np.corrcoef(codes.T, heights.T)[:2, 3:] ** 2  # of the variance of each code, by bar
    assert share[0, 1] > 0.85 and share[1, 0] > 0.85
    assert share[0, 0] < 0.1 and share[1, 1] < 0.1


REFUSED = [
    ("beta_vae", {"supervision": "labels(n=50)"}, "needs only x; leave it 'none', or set semi_supervised=xent"),
    ("beta_vae", {**TOLD, "semi_supervised": "bce"}, "semi_supervised 'bce' is unknown; use one of xent, l2, cov"),
    ("beta_vae", {"semi_supervised": "xent"}, "needs labelled, labels; give e.g. supervision='labels"),
    ("beta_vae", {"gamma_sup": 4}, "gamma_sup 4 is the weight of semi_supervised; give semi_supervised=xent with it"),
    ("beta_vae", {**TOLD, "gamma_sup": -1}, "gamma_sup -1 is out of range"),
    ("vae", {**TOLD, "supervision": "labels(n=9)"}, "latents 4 are fewer than the 6 labelled factors; use latents=6"),
    ("vae", {**TOLD, "supervision": "pairs(k=1)"}, "needs labelled, labels"),
    ("ada_gvae", {"semi_supervised": "xent"}, "does not go with AdaGVAE: it needs pair already"),
    ("ml_vae", {**TOLD}, "does not go with MLVAE: it needs groups already"),
    (
        "aae",
        {**TOLD},
        "does not go with AAE: its code is not the mean of a posterior; use it with a method like beta_vae",
    ),
    ("ada_gvae", {"supervision": "labels(n=50)"}, "needs pair; give e.g. supervision='pairs"),
]


@pytest.mark.parametrize(("method", "given", "said"), REFUSED)
def test_refused_in_one_line(method, given, said, tmp_path):
    with pytest.raises(uw.UserError) as error:
        uw.train(method, ROOMS, **{**TINY, **given}, out=tmp_path / "run")
    assert said in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


def test_without_the_usual_encoder_it_is_refused():
    class Other(Method):
        players = {"model": ("net",)}

        def __init__(self, data, *, latents=2):
            super().__init__()
            self.latents, self.net = latents, nn.Linear(1, 1)

    assert not accepts_labels(Other) and accepts_labels(METHODS["info_vae"])
    with pytest.raises(uw.UserError, match="does not go with Other: its code is not the mean"):
        few_labels(Other)(uw.DataInfo((1, 8, 8), 10, labels=(2,)))


def test_command_line(tmp_path, capsys, monkeypatch):
    def unweave(*words):
        monkeypatch.setattr(sys, "argv", ["unweave", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            app.main()
        return stop.value.code or 0, capsys.readouterr()

    assert "semi_supervised=xent" in unweave("info", "beta_vae")[1].out
    assert "semi_supervised" not in unweave("info", "ada_gvae")[1].out
    words = [
        "--data",
        "digits",
        "--set",
        "net=small",
        "--set",
        "latents=3",
        "--steps",
        3,
        "--batch",
        4,
        "--device",
        "cpu",
    ]
    words += ["--supervision", "labels(n=50)", "--out", tmp_path / "run", "--quiet"]
    assert unweave("train", "beta_vae", *words)[0] == 2
    assert unweave("train", "beta_vae", *words, "--set", "semi_supervised=xent", "--set", "gamma_sup=4")[0] == 0
    assert unweave("evaluate", tmp_path / "run", "--metrics", "mig", "--rows", 100)[0] == 0
