import math

import numpy as np
import pytest
import torch
from raises import raises

import unweave as uw
from unweave.contract import Batch, DataInfo
from unweave.data.user.arrays import Arrays
from unweave.methods.m1 import M1, M1Classifier

INFO = DataInfo((1, 8, 8), 100, (3,), 20)


def both(**arguments):
    """The two stages of a small model, in double precision, their classifier with random weights."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        first = M1(INFO, latents=2, net="small", **arguments)
        second = M1Classifier(INFO, **arguments, previous=first).double()
        for parameter in second.classifier.parameters():
            torch.nn.init.normal_(parameter)
    return first.double(), second


@pytest.fixture
def batch():
    draw = torch.Generator().manual_seed(1)
    x, labelled = torch.rand(2, 4, 1, 8, 8, generator=draw, dtype=torch.float64)
    return Batch(x=x, labelled=labelled, labels=torch.tensor([[0], [2], [1], [2]]))


def out(method, batch, **hyper):
    values = {"decay": 0.0, "gamma": 0.0, "balance": 0.0, **hyper}
    return method(batch, {}, method.Hyper(**{n: torch.tensor(v) for n, v in values.items()}), torch.tensor(0))


def scores(method, x):
    """f_c of every image, in NumPy."""
    codes = method.autoencoder.posterior(x)[0].detach().numpy()
    machine = method.classifier
    square = ((codes[:, None] - machine.centres_FZ.numpy()) ** 2).sum(2)
    features = np.exp(-square / (2 * 2.5**2)) @ machine.whitening_FF.numpy()
    return features @ machine.scores.weight.detach().numpy().T + machine.scores.bias.detach().numpy()


def test_the_tsvms_loss_by_hand(batch):
    _, method = both()
    known, other = scores(method, batch.labelled), scores(method, batch.x)
    signs = np.array([[1, -1, -1], [-1, -1, 1], [-1, 1, -1], [-1, -1, 1]])
    hinge = sum(max(0.0, 1 - signs[i, c] * known[i, c]) ** 2 for i in range(4) for c in range(3)) / 4
    order = np.sort(other, axis=1)
    near = sum(math.exp(-3 * ((order[i, 2] - order[i, 1]) / 2) ** 2) for i in range(4)) / 4
    chance = np.exp(2 * other) / np.exp(2 * other).sum(1, keepdims=True)
    shares = [0.25, 0.25, 0.5]  # of the labels 0, 2, 1, 2
    apart = sum(shares[c] * math.log(shares[c] / chance[:, c].mean()) for c in range(3))
    norm = (method.classifier.scores.weight.detach().numpy() ** 2).sum()
    assert out(method, batch).losses["classifier"].item() == pytest.approx(hinge)
    loss = out(method, batch, gamma=0.5, balance=2.0, decay=0.25).losses["classifier"].item()
    assert loss == pytest.approx(hinge + 0.5 * near + 2.0 * apart + 0.125 * norm)


def test_regression_by_hand(batch):
    _, method = both(classifier="regression")
    assert method.needs == ("labelled", "labels")
    codes = method.autoencoder.posterior(batch.labelled)[0].detach().numpy()
    weight, bias = (p.detach().numpy() for p in method.classifier.parameters())
    chance = np.exp(codes @ weight.T + bias)
    chance /= chance.sum(1, keepdims=True)
    cross = -np.mean([math.log(chance[i, y]) for i, y in enumerate([0, 2, 1, 2])])
    loss = out(method, batch._replace(x=None), decay=0.5).losses["classifier"].item()
    assert loss == pytest.approx(cross + 0.25 * (weight**2).sum())
    (found,) = method.representation().classify(batch.labelled)
    np.testing.assert_allclose(found.detach().numpy(), chance)


def test_the_first_stage_is_a_vae(case):
    from unweave.methods.vae import VAE

    c = case(VAE)
    with torch.random.fork_rng():
        method = M1(INFO, latents=3, net="small").double()
    method.autoencoder.load_state_dict(c.method.autoencoder.state_dict())
    terms = c.terms()
    loss = method(c.batch, c.noise, (), torch.tensor(0)).losses["model"]
    torch.testing.assert_close(loss, (terms.recon_B + terms.kl_B).mean())


def test_the_representation_is_the_vaes_with_classes(batch):
    first, second = both()
    mine, theirs = second.representation(), first.representation()
    assert torch.equal(mine.encode(batch.x), theirs.encode(batch.x)) and mine.posterior is not None
    (chance,) = mine.classify(batch.x)
    expected = np.exp(2 * scores(second, batch.x))
    np.testing.assert_allclose(chance.detach().numpy(), expected / expected.sum(1, keepdims=True))
    assert theirs.classify is None


def test_few_labels_are_enough_to_classify_the_digits(tmp_path):
    options = dict(steps=300, batch=32, lr=2e-3, latents=10, net="small", out=tmp_path / "run", device="cpu")
    run = uw.train("m1", "digits(size=16)", supervision="labels(n=100, balanced=True)", **options)
    assert isinstance(run.method, M1Classifier)
    assert uw.class_error(run)["digit"] < 0.45  # 0.9 by guessing
    assert uw.predict(uw.load(tmp_path / "run")).equals(uw.predict(run))


@pytest.mark.parametrize("classifier", ["tsvm", "regression"])
def test_the_second_stage_learns_what_the_codes_hold(classifier, tmp_path):
    """A white bar in one of three places; the labels of six pictures."""
    images = np.zeros((60, 1, 8, 8), np.float32)
    for row in range(60):
        images[row, :, 2 * (row % 3) : 2 * (row % 3) + 4] = 1.0
    data = Arrays(images, np.arange(60)[:, None] % 3, names=["place"])
    options = dict(steps=150, batch=16, lr=3e-3, latents=2, net="small", out=tmp_path / "run", device="cpu")
    run = uw.train("m1", data, supervision="labels(n=6, balanced=True)", classifier=classifier, **options)
    assert uw.class_error(run) == {"place": 0.0}


def test_the_second_stage_of_a_fleet_equals_that_of_a_single_run(tmp_path):
    given = dict(method="m1", data="digits", supervision="labels(n=20)", net="small", latents=3, steps=6, batch=4)
    runs = [{**given, "seed": seed, "device": "cpu"} for seed in (0, 1)]
    together = uw.fit(runs, out=tmp_path / "many", strategy="batched")
    alone = uw.train(**runs[1], out=tmp_path / "one")
    for name, one in together[1].method.state_dict().items():
        if name != "classifier.scores.weight":  # an untrained model draws nearly equal centres: weights may shift
            torch.testing.assert_close(one, alone.method.state_dict()[name], rtol=1e-4, atol=1e-5, msg=name)
    images = alone.data.images(torch.arange(50))
    torch.testing.assert_close(together[1].method._scores(images), alone.method._scores(images), rtol=1e-3, atol=1e-4)


def test_user_errors():
    with raises("classifier", value="svm", accepted=["tsvm", "regression"]):
        M1(INFO, net="small", classifier="svm")
    with raises("width", value=0.0):
        M1(INFO, net="small", width=0.0)
    with pytest.raises(uw.UserError):
        uw.train("m1", "digits")
    with raises("supervision"):
        M1(INFO._replace(labels=(2, 3)), net="small")
    with raises("supervision"):
        M1(INFO._replace(labels=(1,)), net="small")
