import pytest
import torch
from headed import Headed, chance, discriminator_by_hand, program_on_digits, trained_on_digits, updated_by_phase
from raises import raises

import unweave as uw
from unweave.contract import DataInfo, Part
from unweave.methods.aae_semi import AAESemi

CLOSE = {"rtol": 1e-5, "atol": 1e-6}  # a discriminator's logits are float32 at most
FACTOR = "labels(n=100, factors=['digit'], balanced=True)"


def codes(c, x, sigma):
    style, logits = c.raw(x + sigma * c.noise["input"])
    return style, logits.exp() / logits.exp().sum(1, keepdim=True)


def test_reconstruction_by_hand():
    """Images with noise are encoded; the reconstruction is compared with the clean images."""
    c = Headed(AAESemi)
    style, classes = codes(c, c.batch.x, 0.5)
    out = c.out("reconstruction", sigma=0.5)
    torch.testing.assert_close(out.losses["model"], c.recon(torch.cat([style, classes], 1)))
    assert set(out.losses) == {"model"} and set(out.logs) == {"recon"}


def test_regularisation_by_hand():
    """Two losses: the style with N(0, 1), the class with one-hot vectors; players get the sums."""
    c = Headed(AAESemi)
    style, classes = codes(c, c.batch.x, 0.5)
    out = c.out("regularisation", sigma=0.5)
    method, one_hot = c.method, c.one_hot(4)
    assert one_hot.sum(1).tolist() == [1.0] * 6
    discriminators = discriminator_by_hand(method.style_discriminator, style, c.noise["prior"])
    discriminators = discriminators + discriminator_by_hand(method.class_discriminator, classes, one_hot)
    torch.testing.assert_close(out.losses["discriminators"], discriminators, **CLOSE)
    fooling = (
        -chance(method.style_discriminator, style).log().mean()
        - chance(method.class_discriminator, classes).log().mean()
    )
    torch.testing.assert_close(out.losses["encoder"], fooling, **CLOSE)


def test_classification_by_hand():
    c = Headed(AAESemi)
    _, classes = codes(c, c.batch.labelled, 0.5)
    out = c.out("classification", sigma=0.5)
    labels = c.batch.labels[:, 0]
    right = torch.stack([classes[b, labels[b]] for b in range(6)])
    torch.testing.assert_close(out.losses["classifier"], -right.log().mean())
    assert out.logs["accuracy"].item() == pytest.approx((classes.argmax(1) == labels).double().mean().item())


def test_unknown_labels_are_ignored():
    c = Headed(AAESemi)
    whole = c.out("classification", sigma=0.0)
    c.batch = c.batch._replace(labels=torch.where(torch.arange(6)[:, None] < 3, c.batch.labels, -1))
    some = c.out("classification", sigma=0.0)
    logits = c.raw(c.batch.labelled)[1]
    first = -torch.stack([logits.log_softmax(1)[b, c.batch.labels[b, 0]] for b in range(3)]).sum() / 6
    torch.testing.assert_close(some.losses["classifier"], first)
    assert some.losses["classifier"] < whole.losses["classifier"] and some.logs["accuracy"] >= whole.logs["accuracy"]


def test_each_phase_updates_its_players(monkeypatch):
    method, program = program_on_digits(monkeypatch, AAESemi, FACTOR)
    encoder = {"autoencoder.encoder"}
    assert updated_by_phase(method, program) == {
        "reconstruction": encoder | {"autoencoder.decoder"},
        "regularisation": encoder | {"style_discriminator", "class_discriminator"},
        "classification": encoder,
    }


def test_code_is_style_then_class():
    method, x = Headed(AAESemi).method, torch.rand(5, 1, 8, 8, dtype=torch.float64)
    found = method.representation()
    code, (classes,) = found.encode(x), found.classify(x)
    assert found.latents == 7 and found.posterior is None
    assert found.parts == (Part("style", 3), Part("class", 4, classes=True))
    assert torch.equal(code[:, 3:], classes)
    torch.testing.assert_close(classes.sum(1), torch.ones(5, dtype=torch.float64))
    assert found.decode(code).shape == x.shape


def test_user_errors():
    for labels in ((), (3, 4)):
        with raises("supervision"):
            AAESemi(DataInfo((1, 8, 8), 10, labels), net="small")
    with pytest.raises(uw.UserError):
        uw.train("aae_semi", "digits", net="small", steps=1)
    with raises("latents", value=0):
        AAESemi(DataInfo((1, 8, 8), 10, (3,)), net="small", latents=0)


def test_100_labels_of_1797_digits(monkeypatch):
    """Random predictions are wrong in 9 of 10 cases. With another class, an image is decoded to another digit."""
    method, logs, images, digits = trained_on_digits(monkeypatch, AAESemi, FACTOR, steps=300, latents=2)
    found, other = method.representation(), (digits + 1) % 10
    with torch.no_grad():
        (classes,) = found.classify(images)
        swapped = torch.cat([found.encode(images)[:, :2], torch.eye(10)[other]], 1)
        (read,) = found.classify(found.decode(swapped))
    assert (classes.argmax(1) != digits).float().mean() < 0.2
    assert logs["recon"] < 32  # log 2 a pixel is 44
    assert (read.argmax(1) == other).float().mean() > 0.4
