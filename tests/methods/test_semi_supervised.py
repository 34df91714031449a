"""The label term of unsupervised methods: its value, the settings it adds, and runs with it."""

import math
import sys

import numpy as np
import pytest
import torch
from raises import raises
from torch import nn

import unweave as uw
from unweave.cli import app
from unweave.config import resolve_settings
from unweave.contract import Method, Out, hyper_params, player_parameters
from unweave.data.user.arrays import Arrays
from unweave.engine.loop import train_step
from unweave.engine.program import initial_state
from unweave.methods import METHODS
from unweave.methods.semi_supervised import accepts_label_term, add_label_term
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.discriminator import Discriminator
from unweave.ops.label_terms import LABEL_TERMS
from unweave.training.build import build, build_program
from unweave.training.prepare import prepare
from unweave.training.sweep import resume_all

COMPOSE = ["vae", "beta_vae", "annealed_vae", "factor_vae", "beta_tcvae", "dip_vae_i", "dip_vae_ii", "info_vae"]
TINY = {"net": "small", "latents": 4, "batch": 8, "steps": 6, "log_every": 2, "device": "cpu"}
LABELLED = {**TINY, "semi_supervised": "xent", "supervision": "labels(n=50, factors=['scale', 'shape'])"}
ROOMS = "rooms(size=8)"


@pytest.fixture(autouse=True)
def small_discriminators(monkeypatch):
    for name in ("factor_vae", "info_vae"):
        monkeypatch.setattr(
            f"unweave.methods.{name}.Discriminator", lambda latents, **_: Discriminator(latents, width=16, depth=2)
        )


def labelled_case(case, cls, semi_supervised="xent"):
    """The small problem of the other tests with labels of two factors with 3 and 5 classes, one of them unknown."""
    c = case(cls)
    add_label_term(c.method, semi_supervised, uw.DataInfo((1, 8, 8), 100, labels=(3, 5), labelled=10))
    labels = torch.tensor([[0, 4], [2, 1], [1, -1], [2, 2], [0, 0]])
    c.batch = c.batch._replace(labelled=c.random(torch.rand, 5, 1, 8, 8), labels=labels)
    return c


def term_by_hand(mean, labels, name):
    """Compute the term with loops over numbers; the targets of 3 and of 5 classes are written out."""
    targets = {"xent": [[0, 0.5, 1], [0, 0.25, 0.5, 0.75, 1]]}
    targets["l2"] = targets["cov"] = [
        [c / math.sqrt(2 / 3) for c in (-1, 0, 1)],
        [c / math.sqrt(2) for c in (-2, -1, 0, 1, 2)],
    ]
    pairs = [[(row, targets[name][i][y[i]]) for row, y in zip(mean, labels, strict=True) if y[i] >= 0] for i in (0, 1)]
    if name == "cov":
        entries = [
            (i, j, np.cov([m[j] for m, _ in rows], [y for _, y in rows], ddof=0)[0, 1])
            for i, rows in enumerate(pairs)
            for j in range(len(mean[0]))
        ]
        return sum(cov**2 for i, j, cov in entries if i != j)
    found = [(m[i], y) for i, rows in enumerate(pairs) for m, y in rows]
    if name == "l2":
        return sum((m - y) ** 2 for m, y in found) / len(mean)
    return sum(y * math.log1p(math.exp(-m)) + (1 - y) * math.log1p(math.exp(m)) for m, y in found) / len(mean)


@pytest.mark.parametrize("term", list(LABEL_TERMS))
@pytest.mark.parametrize("name", COMPOSE)
def test_loss_is_that_of_the_method_plus_the_term(case, name, term):
    """The term is gamma_sup times the sum over 64 labelled images, or the covariances; all other logs are equal."""
    plain, labelled = case(METHODS[name]), labelled_case(case, METHODS[name], term)
    hyper = {key: param.default for key, param in hyper_params(METHODS[name]).items()}
    mean = labelled.method.autoencoder.posterior(labelled.batch.labelled)[0].tolist()
    value = term_by_hand(mean, labelled.batch.labels.tolist(), term)
    before, after = plain.out(**hyper), labelled.out(**hyper, gamma_sup=3.0)
    assert after.logs["label_loss"].item() == pytest.approx(value, rel=1e-6)
    expected = before.losses["model"].item() + 3.0 * (value if term == "cov" else 64 * value)
    assert after.losses["model"].item() == after.logs["loss"].item() == pytest.approx(expected, rel=1e-6)
    assert after.losses.keys() == before.losses.keys() and after.logs.keys() == before.logs.keys() | {"label_loss"}
    for logged in before.logs.keys() - {"loss"}:
        torch.testing.assert_close(after.logs[logged], before.logs[logged])


def test_the_term_adds_two_settings():
    arguments, hyper = resolve_settings(METHODS["beta_vae"], {"semi_supervised": "l2"})
    assert arguments["semi_supervised"] == "l2" and hyper == {"beta": 4.0, "gamma_sup": 4.0}
    arguments, hyper = resolve_settings(METHODS["beta_vae"], {})
    assert "semi_supervised" not in arguments and "gamma_sup" not in hyper


@pytest.mark.parametrize(
    ("name", "arguments", "needs"),
    [
        ("beta_vae", {}, ("x",)),
        ("factor_vae", {}, ("x", "x_other")),
        ("factor_vae", {"one_batch": True}, ("x",)),
    ],
)
def test_the_term_changes_one_method_object(name, arguments, needs):
    cls, info = METHODS[name], uw.DataInfo((1, 8, 8), 100, labels=(3, 5), labelled=10)
    method, plain = (cls(info, net="small", **arguments) for _ in range(2))
    add_label_term(method, "xent", info)
    assert type(method) is cls and method.needs == (*needs, "labelled", "labels")
    assert list(hyper_params(method)) == [*hyper_params(cls), "gamma_sup"]
    assert method.state_dict().keys() == plain.state_dict().keys()
    assert plain.needs == needs and "gamma_sup" not in hyper_params(plain)


class TwoPhases(Method):
    """A method whose model is updated in two phases."""

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


def test_the_term_is_added_in_one_phase():
    info = uw.DataInfo((1, 8, 8), 100, labels=(2,), labelled=10)
    method = TwoPhases(info)
    add_label_term(method, "xent", info)
    batch = uw.Batch(
        x=torch.rand(4, 1, 8, 8), labelled=torch.rand(4, 1, 8, 8), labels=torch.tensor([[0], [1], [1], [0]])
    )
    outs = {p: method(batch, {}, method.Hyper(torch.tensor(1.0)), torch.tensor(0), phase=p) for p in method.phases}
    assert [set(out.logs) for out in outs.values()] == [{"judge"}, {"loss", "label_loss"}, {"again"}]
    assert outs["first"].losses["model"] > 10.0 > outs["second"].losses["model"]


@pytest.mark.parametrize("name", COMPOSE)
def test_each_player_is_updated_by_its_own_loss(name):
    run = prepare(name, ROOMS, **LABELLED)
    config, cls, data = run.config, run.cls, run.data
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
def test_a_fleet_equals_single_runs(method, tmp_path):
    """Replicas have their own labels."""
    runs = [{**LABELLED, "method": method, "data": ROOMS, "seed": s, "gamma_sup": g} for s, g in ((0, 1), (1, 8))]
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


def test_a_resumed_and_a_loaded_run_equal_the_uninterrupted_one(tmp_path):
    class Killed(Exception):
        pass

    def kill(progress):
        if progress.step == 4:
            raise Killed

    options = {**LABELLED, "checkpoint_every": 2, "semi_supervised": "l2", "gamma_sup": "linear(0, 8, 4)"}
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
    """Training uses the imprecise labels, not the correct ones of the same images."""
    losses = []
    for k, words in enumerate((imprecise, "n=48")):
        labelled = {**LABELLED, "supervision": f"labels({words}, factors=['scale'])"}
        logs = uw.train("vae", ROOMS, **labelled, out=tmp_path / f"run{k}").folder.logs()
        losses.append([record["label_loss"] for record in logs])
    assert all(map(math.isfinite, losses[0])) and losses[0] != losses[1]


def bars(unknown=0.0):
    """Two bars of height 0 to 8 side by side; a share of the heights is unknown."""
    every = torch.cartesian_prod(torch.arange(9), torch.arange(9))
    columns = every[:, [0] * 4 + [1] * 4]
    images = (torch.arange(8)[None, :, None] < columns[:, None, :]).float()[:, None]
    heights = np.where(np.random.default_rng(0).random((81, 2)) < unknown, np.nan, every.double().numpy())
    return Arrays(images, heights, names=["left", "right"]), every.numpy()


@pytest.mark.parametrize("term", ["xent", "l2"])
def test_the_first_latents_learn_the_labelled_factors(term, tmp_path):
    """From 70 % of the heights in 40 images, latent 0 learns the first factor of `labels` and latent 1 the second."""
    data, heights = bars(unknown=0.3)
    options = dict(net="small", latents=3, steps=100, batch=32, lr=4e-3, beta=1, device="cpu", log_every=100)
    labels = "labels(n=40, factors=['right', 'left'])"
    trained = uw.train("beta_vae", data, **options, semi_supervised=term, supervision=labels, out=tmp_path / "run")
    codes = trained.encode(data.images(torch.arange(81)))
    share = np.corrcoef(codes.T, heights.T)[:2, 3:] ** 2  # explained variance of each code, by bar
    assert share[0, 1] > 0.85 and share[1, 0] > 0.85
    assert share[0, 0] < 0.1 and share[1, 1] < 0.1


LABELS = "labels(n=50)"
INVALID = [
    ("beta_vae", {"supervision": LABELS}, "supervision", {}),
    ("beta_vae", {**LABELLED, "semi_supervised": "bce"}, "semi_supervised", {"value": "bce", "accepted": LABEL_TERMS}),
    ("beta_vae", {"gamma_sup": 4}, "semi_supervised", {"accepted": LABEL_TERMS}),
    ("beta_vae", {**LABELLED, "gamma_sup": -1}, "gamma_sup", {"value": -1.0}),
    ("vae", {**LABELLED, "supervision": "labels(n=9)"}, "latents", {"value": 4}),
    ("ada_gvae", {"semi_supervised": "xent"}, "semi_supervised", {"value": "xent"}),
    ("ml_vae", LABELLED, "semi_supervised", {"value": "xent"}),
    ("aae", LABELLED, "semi_supervised", {"value": "xent"}),
]


@pytest.mark.parametrize(("method", "given", "argument", "fields"), INVALID)
def test_user_errors(method, given, argument, fields, tmp_path):
    with raises(argument, **fields):
        uw.train(method, ROOMS, **{**TINY, **given}, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("beta_vae", {"semi_supervised": "xent"}),
        ("vae", {**LABELLED, "supervision": "pairs(k=1)"}),
        ("ada_gvae", {"supervision": LABELS}),
    ],
)
def test_supervision_that_does_not_fit(method, given, tmp_path):
    with pytest.raises(uw.UserError):
        uw.train(method, ROOMS, **{**TINY, **given}, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


class NoPosterior(Method):
    players = {"model": ("net",)}

    def __init__(self, data, *, latents=2):
        super().__init__()
        self.latents, self.net = latents, nn.Linear(1, 1)


def test_a_method_without_a_posterior_does_not_accept_the_term():
    assert accepts_label_term(METHODS["info_vae"]) and not accepts_label_term(NoPosterior)
    assert not accepts_label_term(METHODS["aae"]) and not accepts_label_term(METHODS["ada_gvae"])


def test_command_line(tmp_path, capsys, monkeypatch):
    def unweave(*words):
        monkeypatch.setattr(sys, "argv", ["unweave", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            app.main()
        return stop.value.code or 0, capsys.readouterr()

    assert "semi_supervised=xent" in unweave("info", "beta_vae")[1].out
    assert "semi_supervised" not in unweave("info", "ada_gvae")[1].out
    words = ["--data", "digits", "--set", "net=small", "--set", "latents=3", "--steps", 3, "--batch", 4]
    words += ["--device", "cpu", "--supervision", "labels(n=50)", "--out", tmp_path / "run", "--quiet"]
    assert unweave("train", "beta_vae", *words)[0] == 2
    assert unweave("train", "beta_vae", *words, "--set", "semi_supervised=xent", "--set", "gamma_sup=4")[0] == 0
    assert unweave("evaluate", tmp_path / "run", "--metrics", "mig", "--rows", 100)[0] == 0
