import math

import numpy as np
import pytest
import torch
from raises import raises
from torch import nn

from unweave.methods.factor_vae import FactorVAE
from unweave.nn.discriminator import Discriminator, log_ratio
from unweave.ops.density_ratio import discriminator_loss
from unweave.ops.total_correlation import permute_latents


class Recorder(nn.Module):
    """A discriminator that stores its inputs: the codes, then codes and permuted codes concatenated."""

    def __init__(self):
        super().__init__()
        self.seen = []
        self.scale = nn.Parameter(torch.ones((), dtype=torch.float64))

    def forward(self, z_BZ):
        self.seen.append(z_BZ)
        return self.scale * torch.stack([z_BZ.square().sum(1), z_BZ.sum(1)], 1)


def shuffled(z_BZ, keys_BZ):
    """Algorithm 2's permute_dims, entry by entry: column j in the order of its keys."""
    out = z_BZ.clone()
    for j in range(z_BZ.shape[1]):
        for i, row in enumerate(np.argsort(keys_BZ[:, j].numpy())):
            out[i, j] = z_BZ[row, j]
    return out


@pytest.mark.parametrize("one_batch", [False, True])
def test_losses_are_equation_2_and_algorithm_2(case, one_batch):
    c = case(FactorVAE, one_batch=one_batch)
    c.method.discriminator = Discriminator(3, width=20, depth=2).double()
    terms, out = c.terms(), c.out(gamma=6.4)
    q = c.posterior(c.batch.x_other)
    z = terms.z if one_batch else q.mean + q.stddev * c.noise["eps_second"]

    def joint(codes):  # D: the probability of being a sample of the joint
        return c.method.discriminator(codes).double().softmax(1)[:, 0]

    tc = (joint(terms.z) / (1 - joint(terms.z))).log().mean()
    discriminator = -0.5 * (joint(terms.z).log() + (1 - joint(shuffled(z, c.noise["perm"]))).log()).mean()
    close = {"rtol": 1e-5, "atol": 1e-6}  # a discriminator's logits are float32
    torch.testing.assert_close(out.losses["model"], (terms.recon_B + terms.kl_B).mean() + 6.4 * tc, **close)
    torch.testing.assert_close(out.losses["discriminator"].double(), discriminator, **close)


def test_by_hand(case, log2_image):
    """A discriminator with zero output: the total correlation is 0, the loss log 2, and the accuracy 0."""
    c = case(FactorVAE).fix(mean=1.0, var=4.0)
    for parameter in c.method.discriminator.parameters():
        nn.init.zeros_(parameter)
    out = c.out(gamma=35.0)
    assert out.losses["model"].item() == pytest.approx(log2_image + 3 * (2.0 - math.log(2.0)))
    assert out.losses["discriminator"].item() == pytest.approx(math.log(2.0))
    assert out.logs["tc"].item() == 0.0


@pytest.mark.parametrize("one_batch", [False, True])
def test_which_batch_is_permuted(case, one_batch):
    c = case(FactorVAE, one_batch=one_batch)
    c.method.discriminator = Recorder()
    c.out(gamma=1.0)
    scored, (joint, product) = c.method.discriminator.seen[0], c.method.discriminator.seen[1].chunk(2)
    q = c.posterior(c.batch.x if one_batch else c.batch.x_other)
    z = q.mean + q.stddev * c.noise["eps" if one_batch else "eps_second"]
    assert torch.equal(scored, joint)
    assert torch.equal(product.sort(0).values, z.sort(0).values) and not torch.equal(product, z)
    assert ("x_other" in c.method.needs) != one_batch


def test_the_discriminators_loss_does_not_reach_the_autoencoder(case):
    c = case(FactorVAE)
    out = c.out(gamma=1.0)
    weights = list(c.method.autoencoder.parameters())
    assert all(g is None for g in torch.autograd.grad(out.losses["discriminator"], weights, allow_unused=True))
    to_encoder = torch.autograd.grad(out.logs["tc"], c.method.autoencoder.encoder[0][0].weight)[0]
    assert to_encoder.abs().max() > 0


def test_permuting_keeps_each_latent_and_breaks_the_joint():
    draw = torch.Generator().manual_seed(0)
    z_BZ = torch.randn(500, 1, generator=draw).expand(-1, 3)
    out = permute_latents(z_BZ, torch.rand(500, 3, generator=draw))
    assert torch.equal(out.sort(0).values, z_BZ.sort(0).values)
    off = np.corrcoef(out.numpy(), rowvar=False)[np.triu_indices(3, 1)]
    assert np.abs(off).max() < 0.15  # all were 1; 3.3 standard deviations of 500 independent pairs


@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_a_trained_discriminator_knows_the_total_correlation(case, rho):
    """Two normal latents of correlation rho have -log(1 - rho^2) / 2 nats: 0 and 0.51."""
    method = case(FactorVAE, latents=2).method
    torch.manual_seed(0)
    method.discriminator = Discriminator(2, width=32, depth=2)
    adam = torch.optim.Adam(method.discriminator.parameters(), lr=3e-3)
    mixing = torch.linalg.cholesky(torch.tensor([[1.0, rho], [rho, 1.0]]))
    for _ in range(200):
        joint, other = (torch.randn(256, 2) @ mixing.T for _ in range(2))
        codes = torch.cat([joint, permute_latents(other, torch.rand(256, 2))])
        loss, _ = discriminator_loss(*log_ratio(method.discriminator, codes).chunk(2))
        adam.zero_grad()
        loss.backward()
        adam.step()
    with torch.no_grad():
        logits = method.discriminator(torch.randn(20_000, 2) @ mixing.T)
    assert (logits[:, 0] - logits[:, 1]).mean().item() == pytest.approx(-0.5 * math.log(1 - rho**2), abs=0.12)


def test_the_width_of_the_discriminator(case):
    c = case(FactorVAE, discriminator_width=16)
    assert {layer.out_features for layer in c.method.discriminator.layers if hasattr(layer, "out_features")} == {16, 2}
    with raises("discriminator_width", value=0):
        case(FactorVAE, discriminator_width=0)


def test_the_depth_of_the_discriminator(case):
    assert [
        len(case(FactorVAE, discriminator_width=4, discriminator_depth=n).method.discriminator.layers) for n in (1, 5)
    ] == [3, 11]
    with raises("discriminator_depth", value=0):
        case(FactorVAE, discriminator_depth=0)
