"""The second stage computed again in NumPy, one code and one class at a time."""

import math

import numpy as np
import pytest
import torch
from raises import raises

import unweave as uw
from unweave.contract import Batch, DataInfo, Part
from unweave.data.user.arrays import Arrays
from unweave.methods.m1_m2 import M1M2, M1M2Labels

INFO, CODES, STYLE, CLASSES, BATCH = DataInfo((1, 8, 8), 100, (3,), 20), 3, 2, 3, 4


@pytest.fixture
def method():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        first = M1M2(INFO, latents=CODES, net="small")
        second = M1M2Labels(INFO, style=STYLE, previous=first).double()
        for parameter in second.upper.parameters():
            torch.nn.init.normal_(parameter, std=0.2)
    return second


@pytest.fixture
def batch():
    x, labelled = torch.rand(2, BATCH, 1, 8, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return Batch(x=x, labelled=labelled, labels=torch.tensor([[0], [2], [1], [2]]))


def drawn_noise(method):
    draw, sizes = torch.Generator().manual_seed(2), {"B": BATCH, "Z": STYLE}
    shapes = {name: [sizes.get(d, d) for d in noise.dims] for name, noise in method.noise.items()}
    return {name: torch.randn(shape, generator=draw, dtype=torch.float64) for name, shape in shapes.items()}


def drawn_codes(method, x, eps):
    mean, logvar = method.autoencoder.posterior(x)
    return (mean + (0.5 * logvar).exp() * eps).detach().numpy()


def softplus(values):
    return np.log1p(np.exp(values))


def linear(w, name, x):
    return w[f"{name}.weight"] @ x + w[f"{name}.bias"]


def bound(w, code, label, eps):
    """L(z1, y) = -log p(z1|y,z2) - log p(y) + KL(q(z2|z1,y) || p(z2)), with this noise."""
    y = np.eye(CLASSES)[label]
    hidden = softplus(linear(w, "encoder.trunk", code) + w["encoder.label.weight"] @ y)
    mean, logvar = np.split(linear(w, "encoder.head", hidden), 2)
    z2 = mean + np.exp(logvar / 2) * eps
    hidden = softplus(linear(w, "decoder.0", np.concatenate([z2, y])))
    centre, spread = np.split(linear(w, "decoder.2", hidden), 2)
    var = np.exp(spread)
    density = sum(-0.5 * math.log(2 * math.pi * v) - (c - m) ** 2 / (2 * v) for c, m, v in zip(code, centre, var))
    return -density + math.log(CLASSES) + 0.5 * (np.exp(logvar) + mean**2 - 1 - logvar).sum()


def chances(w, code):
    logits = linear(w, "classifier.2", softplus(linear(w, "classifier.0", code)))
    return np.exp(logits) / np.exp(logits).sum()


def test_equation_9_of_codes_by_hand(method, batch):
    noise = drawn_noise(method)
    w = {name: parameter.detach().numpy() for name, parameter in method.upper.named_parameters()}
    known = drawn_codes(method, batch.labelled, noise["code_labelled"])
    codes = drawn_codes(method, batch.x, noise["code"])
    labels, share = [0, 2, 1, 2], 20 / 100
    labelled = np.mean([bound(w, known[i], labels[i], noise["eps_labelled"][i].numpy()) for i in range(BATCH)])
    unlabelled = []
    for code, eps in zip(codes, noise["eps"].numpy(), strict=True):
        q = chances(w, code)
        unlabelled.append(sum(q[y] * (bound(w, code, y, eps) + math.log(q[y])) for y in range(CLASSES)))
    cross = -np.mean([math.log(chances(w, known[i])[labels[i]]) for i in range(BATCH)])
    prior = 0.5 * sum((value**2).sum() for value in w.values())
    expected = share * labelled + (1 - share) * np.mean(unlabelled) + 0.4 * cross + 3.0 * prior / 100
    hyper = method.Hyper(*torch.tensor([0.4, 3.0], dtype=torch.float64))
    assert method(batch, noise, hyper, torch.tensor(0)).losses["upper"].item() == pytest.approx(expected, rel=1e-9)


def test_unused_coordinates_are_masked(method, batch):
    first, hyper, noise = M1M2(INFO, latents=CODES, net="small"), method.Hyper(*torch.ones(2)), drawn_noise(method)
    first.autoencoder, first.kl_Z = method.autoencoder.float(), torch.tensor([2.0, 0.001, 0.5])
    with torch.random.fork_rng():
        torch.manual_seed(3)
        fewer = M1M2Labels(INFO, style=STYLE, previous=first).double()

    def outcome(eps_of_unused):
        noise["code"][:, 1] = noise["code_labelled"][:, 1] = eps_of_unused
        loss = fewer(batch, noise, hyper, torch.tensor(0)).losses["upper"]
        return loss, torch.autograd.grad(loss - 0.5 * _square(fewer) / 100, fewer.upper.decoder[2].weight)[0]

    loss, slope = outcome(0.0)
    assert outcome(5.0)[0] == loss
    assert slope[[1, CODES + 1]].abs().max() < 1e-12 < slope[[0, 2]].abs().min()
    changed = fewer.representation().encode(batch.x).detach()
    fewer.autoencoder.encoder[-1].bias.data[1] += 3.0  # the mean of the unused one
    torch.testing.assert_close(fewer.representation().encode(batch.x).detach(), changed)


def _square(method):
    return sum(parameter.square().sum() for parameter in method.upper.parameters())


def test_weights_from_before_there_was_a_choice_use_all_coordinates(method):
    old = {name: value for name, value in method.state_dict().items() if not name.endswith("used_Z")}
    method.upper.nll.used_Z.zero_()
    method.load_state_dict(old)
    assert method.upper.nll.used_Z.tolist() == [1.0] * CODES


def test_the_first_stage_averages_the_kl_of_each_coordinate(batch):
    first = M1M2(INFO, latents=CODES, net="small").double()
    noise = {"eps": torch.randn(BATCH, CODES, dtype=torch.float64)}
    mean, logvar = first.autoencoder.posterior(batch.x)
    kl = 0.5 * (mean.square() + logvar.exp() - 1.0 - logvar).mean(0)
    state = first(batch, noise, None, torch.tensor(0)).state
    torch.testing.assert_close(state["kl_Z"], 0.99 * torch.ones(CODES) + 0.01 * kl.detach(), check_dtype=False)


def test_style_and_class_decode_through_the_mean_code(method, batch):
    found = method.representation()
    assert found.latents == STYLE + CLASSES and found.posterior is None
    assert found.parts == (Part("style", STYLE), Part("class", CLASSES, classes=True))
    codes = found.encode(batch.x)
    w = {name: parameter.detach().numpy() for name, parameter in method.upper.named_parameters()}
    q = chances(w, method.autoencoder.posterior(batch.x)[0][1].detach().numpy())
    np.testing.assert_allclose(codes[1, STYLE:].detach().numpy(), q)
    np.testing.assert_allclose(found.classify(batch.x)[0][1].detach().numpy(), q)
    centre = linear(w, "decoder.2", softplus(linear(w, "decoder.0", codes[1].detach().numpy())))[:CODES]
    image = method.autoencoder.decode(torch.tensor(centre)[None])
    torch.testing.assert_close(found.decode(codes)[1:2], image)


def test_two_stages_learn_from_few_labels_and_load(tmp_path):
    """A white bar in one of three places; the labels of six pictures."""
    images = np.zeros((60, 1, 8, 8), np.float32)
    for row in range(60):
        images[row, :, 2 * (row % 3) : 2 * (row % 3) + 4] = 1.0
    data = Arrays(images, np.arange(60)[:, None] % 3, names=["place"])
    options = dict(steps=150, batch=16, lr=3e-3, latents=2, style=2, net="small", decay=0.0, device="cpu")
    run = uw.train("m1_m2", data, supervision="labels(n=6, balanced=True)", out=tmp_path / "run", **options)
    assert isinstance(run.method, M1M2Labels) and uw.class_error(run) == {"place": 0.0}
    assert uw.predict(uw.load(tmp_path / "run", data=data)).equals(uw.predict(run))


def test_the_second_stage_of_a_fleet_equals_that_of_a_single_run(tmp_path):
    given = dict(method="m1_m2", data="digits", supervision="labels(n=20)", net="small", latents=3, steps=6, batch=4)
    runs = [{**given, "seed": seed, "device": "cpu", "style": 2, "binarize": True} for seed in (0, 1)]
    together = uw.fit(runs, out=tmp_path / "many", strategy="batched")
    alone = uw.train(**runs[1], out=tmp_path / "one")
    weights = zip(together[1].method.state_dict().items(), alone.method.state_dict().values(), strict=True)
    for (name, one), other in weights:
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5, msg=name)


def test_user_errors():
    with raises("style", value=0):
        M1M2(INFO, net="small", style=0)
    with raises("supervision"):
        M1M2(INFO._replace(labels=()), net="small")
