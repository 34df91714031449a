import pytest
import torch
from headed import Headed, chance, discriminator_by_hand, program_on_digits, trained_on_digits, updated_by_phase
from raises import raises

from unweave.contract import DataInfo
from unweave.methods.aae_reduce import AAEReduce
from unweave.metrics import cluster_error
from unweave.ops.separation import repulsion

CLOSE = {"rtol": 1e-5, "atol": 1e-6}  # a discriminator's logits are float32 at most
ENCODER = {"autoencoder.encoder"}
FACTOR = "labels(n=100, factors=['digit'], balanced=True)"


@pytest.mark.parametrize("labels", [(4,), ()])
def test_reconstruction_by_hand(labels):
    """The decoder sees the sum of style and place; places closer than eta push each other away."""
    c = Headed(AAEReduce, labels=labels, clusters=4)
    style, logits = c.raw(c.batch.x + 0.5 * c.noise["input"])
    code = style + sum(logits.softmax(1)[:, k : k + 1] * c.method.cluster_heads[k] for k in range(4))
    out = c.out("reconstruction", eta=9.0, sigma=0.5)
    places, close = c.method.cluster_heads, 0.0
    for i in range(4):
        for j in range(i):
            close += max(0.0, 9.0 - torch.dist(places[i], places[j]).item())
    assert close > 0 and out.logs["repulsion"].item() == pytest.approx(close)
    torch.testing.assert_close(out.losses["model"], c.recon(code) + close)


@pytest.mark.parametrize("labels", [(4,), ()])
def test_only_the_style_is_drawn_to_the_normal_prior(labels):
    c = Headed(AAEReduce, labels=labels, clusters=4)
    style, logits = c.raw(c.batch.x + 0.5 * c.noise["input"])
    classes, method = logits.softmax(1), c.method
    out = c.out("regularisation", sigma=0.5)
    discriminators = discriminator_by_hand(method.style_discriminator, style, c.noise["prior"])
    discriminators = discriminators + discriminator_by_hand(method.class_discriminator, classes, c.one_hot(4))
    torch.testing.assert_close(out.losses["discriminators"], discriminators, **CLOSE)
    fooling = (
        -chance(method.style_discriminator, style).log().mean()
        - chance(method.class_discriminator, classes).log().mean()
    )
    torch.testing.assert_close(out.losses["encoder"], fooling, **CLOSE)


def test_classification_by_hand():
    c = Headed(AAEReduce)
    logits, labels = c.raw(c.batch.labelled + 0.5 * c.noise["input"])[1], c.batch.labels[:, 0]
    right = torch.stack([logits.softmax(1)[b, labels[b]] for b in range(6)])
    torch.testing.assert_close(c.out("classification", sigma=0.5).losses["classifier"], -right.log().mean())


def test_only_close_cluster_heads_repel_each_other():
    """Of the distances 5, 1 and sqrt(18), only those below 4.5 are penalised."""
    places = torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]], requires_grad=True)
    cost = repulsion(places, torch.tensor(4.5))
    assert cost.item() == pytest.approx(3.5 + 4.5 - 18**0.5)
    (slope,) = torch.autograd.grad(cost, places)
    torch.testing.assert_close(slope[0], torch.tensor([0.0, 1.0]))  # down the slope is away from its neighbour
    assert repulsion(places, torch.tensor(0.9)).item() == 0.0
    same = torch.zeros(2, 2, requires_grad=True)
    assert torch.autograd.grad(repulsion(same, torch.tensor(1.0)), same)[0].isfinite().all()


@pytest.mark.parametrize("supervision", ["none", FACTOR])
def test_each_phase_updates_its_players(monkeypatch, supervision):
    method, program = program_on_digits(monkeypatch, AAEReduce, supervision)
    expected = {
        "reconstruction": ENCODER | {"autoencoder.decoder", "cluster_heads"},
        "regularisation": ENCODER | {"style_discriminator", "class_discriminator"},
    }
    if supervision != "none":
        expected["classification"] = ENCODER
    assert updated_by_phase(method, program) == expected
    assert method.clusters == (20 if supervision == "none" else 10)
    assert method.needs == (("x",) if supervision == "none" else ("x", "labelled", "labels"))
    assert set(AAEReduce.players) == {
        "model",
        "discriminators",
        "encoder",
        "classifier",
    }  # what an instance says is its own


def test_representation_is_the_sum():
    for labels in ((4,), ()):
        c = Headed(AAEReduce, labels=labels, clusters=4, latents=2)
        found, x = c.method.representation(), c.batch.x
        style = c.method.autoencoder.posterior(x)[0][:, :2]
        probabilities = c.method.probabilities(x)
        code = found.encode(x)
        torch.testing.assert_close(code, style + probabilities @ c.method.cluster_heads)
        assert found.latents == 2 and found.decode(code).shape == x.shape and found.posterior is None
        assert (found.classify is None) == (not labels) == (found.cluster is not None)
        assert torch.equal(found.classify(x)[0] if labels else found.cluster(x), probabilities)


def test_user_errors():
    with raises("clusters", value=5):
        AAEReduce(DataInfo((1, 8, 8), 10, (4,)), net="small", clusters=5)
    with raises("supervision"):
        AAEReduce(DataInfo((1, 8, 8), 10, (4, 3)), net="small")
    with raises("clusters", value=1):
        AAEReduce(DataInfo((1, 8, 8), 10), net="small", clusters=1)


def test_two_numbers_hold_the_digit(monkeypatch):
    """With 100 labels the nearest centre predicts the digit; random predictions are correct in 1 of 10 cases."""
    method, _, images, digits = trained_on_digits(monkeypatch, AAEReduce, FACTOR, steps=250)
    found = method.representation()
    with torch.no_grad():
        code, (classes,) = found.encode(images), found.classify(images)
    centres = torch.stack([code[digits == d].mean(0) for d in range(10)])
    assert code.shape == (1797, 2)
    assert (classes.argmax(1) != digits).float().mean() < 0.4
    assert (torch.cdist(code, centres).argmin(1) == digits).float().mean() > 0.4


def test_two_numbers_without_labels(monkeypatch):
    method, _, images, digits = trained_on_digits(monkeypatch, AAEReduce, steps=250)
    with torch.no_grad():
        assert cluster_error(method.probabilities(images), digits) < 0.6
