"""Tests that every likelihood passes."""

import pytest
import torch
from raises import raises

import unweave as uw
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.likelihoods import LIKELIHOODS, find_likelihood

table = pytest.mark.parametrize("name", LIKELIHOODS)


@table
def test_the_density_is_normalised(name):
    """The probabilities of black and white sum to one, or the density over the real numbers integrates to one."""
    likelihood, outputs = find_likelihood(name), torch.tensor([-3.0, 0.0, 0.7], dtype=torch.float64)
    grey = torch.full((200,), 0.5, dtype=torch.float64)
    discrete = set(likelihood.observed(grey, torch.tensor(0)).tolist()) <= {0.0, 1.0}
    values, width = (torch.arange(2.0), 1.0) if discrete else (torch.arange(-60.0, 60.0, 1e-3), 1e-3)
    values = values.to(outputs)
    for output in outputs:
        density = (-likelihood.pixel_nll(values, output.expand_as(values))).exp()
        assert density.sum().item() * width == pytest.approx(1.0, rel=1e-3)


@table
def test_nll_and_mean(name):
    """Sums over pixels and channels, in nats, with finite gradients; the mean has the shape of the images."""
    torch.manual_seed(0)
    likelihood, x = find_likelihood(name), torch.rand(4, 3, 8, 8)
    output = (5.0 * torch.randn(4, 3, 8, 8)).requires_grad_()
    nll_B = likelihood.nll(x, output)
    torch.testing.assert_close(nll_B, likelihood.pixel_nll(x, output).sum((1, 2, 3)))
    (gradient,) = torch.autograd.grad(nll_B.sum(), output)
    assert gradient.isfinite().all() and gradient.abs().sum() > 0
    assert likelihood.mean(output).shape == x.shape and likelihood.mean(output).isfinite().all()
    assert likelihood.mean(output.bfloat16()).dtype == torch.float32
    assert likelihood.low <= 0.0 and likelihood.high >= 1.0 and likelihood.help


@table
def test_a_vae_trains_with_it(name, tmp_path):
    settings = {"likelihood": name, "net": "small", "latents": 3, "batch": 8, "lr": 3e-3, "log_every": 20}
    trained = uw.train("vae", "digits", steps=60, device="cpu", out=tmp_path / "run", **settings)
    logs, images = trained.folder.logs(), trained.data.images(torch.arange(3))
    assert logs[-1]["recon"] < logs[0]["recon"]
    loaded = uw.load(tmp_path / "run")
    assert loaded.decode(loaded.encode(images)).shape == tuple(images.shape)


def test_an_unknown_likelihood():
    with raises("likelihood", value="unknown", accepted=tuple(LIKELIHOODS)):
        AutoEncoder((1, 64, 64), 10, "locatello", "unknown")
