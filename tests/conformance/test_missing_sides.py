"""A method without a decoder or without an encoder trains, loads and is evaluated as far as its other side allows.

GANs and latent optimisation are in tests/extension/test_without_encoder.py.
"""

import pytest
import torch
import torch.nn.functional as F
from raises import raises
from torch import nn

import unweave as uw
from unweave.report import report, save_samples

LATENTS, SHAPE = 3, (1, 8, 8)
ENCODE, DECODE = "a method with encode", "a method with decode"


class EncoderOnly(uw.Method):
    """Classify which of two images is brighter by a linear embedding."""

    needs = ("x", "x_other")
    players = {"model": ("layer",)}
    latents = LATENTS

    def __init__(self, data):
        super().__init__()
        self.layer = nn.Linear(64, LATENTS)

    def encode(self, x):
        return self.layer(x.flatten(1))

    def forward(self, batch, noise, hyper, step):
        sign = (batch.x.mean((1, 2, 3)) - batch.x_other.mean((1, 2, 3))).sign()
        loss = F.softplus(-sign * (self.encode(batch.x) - self.encode(batch.x_other)).sum(1)).mean()
        return uw.Out({"model": loss}, {"loss": loss})

    def representation(self):
        return uw.Representation(self.encode, LATENTS)


class DecoderOnly(uw.Method):
    """Match the mean of generated images to that of the data."""

    players = {"model": ("layer",)}
    noise = {"z": uw.normal("B", "Z")}
    latents = LATENTS

    def __init__(self, data):
        super().__init__()
        self.layer = nn.Linear(LATENTS, 64)

    def decode(self, z):
        return self.layer(z).sigmoid().unflatten(1, SHAPE)

    def forward(self, batch, noise, hyper, step):
        loss = (self.decode(noise["z"]).mean(0) - batch.x.mean(0)).square().sum()
        return uw.Out({"model": loss}, {"loss": loss})

    def representation(self):
        return uw.Representation(None, LATENTS, decode=self.decode)


@pytest.fixture(params=[EncoderOnly, DecoderOnly])
def model(request, tmp_path):
    """A loaded model; one of the sides is missing."""
    cls = request.param
    trained = uw.train(cls, "digits", steps=3, batch=8, device="cpu", out=tmp_path / "run")
    loaded = uw.load(tmp_path / "run", method=cls)
    for (name, saved), tensor in zip(trained.method.state_dict().items(), loaded.method.state_dict().values()):
        assert torch.equal(saved, tensor), name
    return loaded


def test_each_side(model, tmp_path):
    images = model.data.images(torch.arange(4))
    if model.representation.encode is None:
        with raises("method", accepted=ENCODE):
            model.encode(images)
        assert model.decode(torch.zeros(4, LATENTS)).shape == (4, *SHAPE)
    else:
        with raises("method", accepted=DECODE):
            model.decode(torch.zeros(4, LATENTS))
        assert model.encode(images).shape == (4, LATENTS)


def test_evaluate(model):
    if model.representation.encode is None:
        with raises("method", accepted=ENCODE):
            uw.evaluate(model)
    else:
        assert uw.evaluate(model, metrics=["mig"], num_samples=200).scores["mig"] >= 0


def test_report(model, tmp_path):
    page = tmp_path / "report.html"
    if model.representation.encode is None:
        with raises("method", accepted=ENCODE):
            report([model], page)
        assert not page.exists()
    else:
        report([model], page)
        assert page.exists()


def test_save_samples_needs_both_sides(model):
    save_samples(model)
    assert not (model.folder.path / "samples").exists()
