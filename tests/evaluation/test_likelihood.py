"""Marginal likelihoods with a known value."""

import math

import pytest
import torch
from raises import raises

import unweave as uw
from unweave.data import load_data
from unweave.evaluation.codes import sample_indices
from unweave.evaluation.likelihood import marginal_nll

SMALL = {"net": "small", "steps": 3, "batch": 16, "latents": 2}


def trained(method, tmp_path, data="digits(size=16)", **settings):
    return uw.train(method, data, out=tmp_path / method, **{**SMALL, **settings})


class Shifted(torch.nn.Module):
    """Adds a constant to its input."""

    def __init__(self, by):
        super().__init__()
        self.by = by

    def forward(self, x):
        return x + self.by


def by_integration(run, images):
    """log p(x) by numerical integration over a grid of two latents."""
    axis = torch.linspace(-5.0, 5.0, 81)
    z_GZ = torch.cartesian_prod(axis, axis)
    prior_G = -0.5 * z_GZ.square().sum(1) - math.log(2 * math.pi) + 2 * math.log(float(axis[1] - axis[0]))
    model = run.method.autoencoder
    with torch.no_grad():
        nll = [torch.cat([model.nll(x.expand(len(z), -1, -1, -1), z) for z in z_GZ.split(4096)]) for x in images]
    return torch.stack([(prior_G - each).logsumexp(0) for each in nll])


@pytest.mark.parametrize(("method", "lr"), [("vae", 1e-3), ("aae", "x10")])
def test_the_estimate_is_the_integral_over_codes(tmp_path, method, lr):
    run = trained(method, tmp_path, likelihood="gaussian", steps=40, lr=lr)
    images = run.data.images(sample_indices(run.data, 4, 0))
    found = marginal_nll(run, run.data, num_samples=4, chains=60, steps=60)
    assert torch.allclose(found, -by_integration(run, images), atol=0.3)


def test_more_chains_have_a_smaller_bias(tmp_path):
    run = trained("vae", tmp_path, likelihood="gaussian", steps=100, lr=1e-3)
    one, many = (marginal_nll(run, run.data, num_samples=50, chains=n, steps=2).mean() for n in (1, 32))
    assert many < one


def test_grey_pixels_are_drawn_for_a_bernoulli_likelihood(tmp_path):
    """A decoder of black images: a white pixel costs 10 nats, a black one 0."""
    run = trained("vae", tmp_path)
    with torch.no_grad():
        for parameter in run.method.autoencoder.decoder.parameters():
            parameter.zero_()
    decoder = run.method.autoencoder.decoder
    run.method.autoencoder.decoder = torch.nn.Sequential(decoder, Shifted(-10.0))
    found = marginal_nll(run, run.data, num_samples=40)
    white = found / 10.0  # how many
    assert torch.allclose(white, white.round(), atol=0.2) and len(white.round().unique()) > 10
    grey = run.data.images(sample_indices(run.data, 40, 0)).flatten(1).sum(1)
    assert abs(float((white - grey).mean())) < 4.0 and not torch.allclose(grey, grey.round(), atol=0.05)


def test_the_same_seed_gives_the_same_and_another_other_images(tmp_path):
    run = trained("vae", tmp_path)
    first, again, other = (marginal_nll(run, run.data, num_samples=5, steps=5, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first, again) and not torch.equal(first, other)


@pytest.mark.parametrize(
    ("method", "settings"), [("aae", {"prior": "uniform"}), ("aae_cluster", {"clusters": 3}), ("aae_reduce", {})]
)
def test_a_code_with_another_prior_raises(tmp_path, method, settings):
    run = trained(method, tmp_path, **settings)
    with raises("method", value=method):
        marginal_nll(run, load_data("digits(size=16)"), num_samples=2)
