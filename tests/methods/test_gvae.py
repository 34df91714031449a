import math

import pytest
import torch
from torch.distributions import Bernoulli, Normal, kl_divergence

from unweave.contract import Batch
from unweave.methods.gvae import GVAE
from unweave.ops.sharing import average_of_gaussians

GROUPS, MEMBERS, LATENTS, CONTENT = 4, 3, 3, 2


@pytest.fixture
def grouped(case):
    """A tiny method with a batch of groups."""

    def make(**arguments):
        c = case(GVAE, latents=LATENTS, content=CONTENT, **arguments)
        c.batch = Batch(groups=c.random(torch.rand, GROUPS, MEMBERS, 1, 8, 8))
        c.noise = {"eps": c.random(torch.randn, GROUPS, MEMBERS, LATENTS)}
        return c

    return make


def test_average_by_hand():
    """N(0, 1) and N(3, 1/2): mean 3/2, variance 3/4; of standard deviations or logarithms it would be less."""
    mean, logvar = average_of_gaussians(torch.tensor([[0.0], [3.0]]), torch.tensor([[1.0], [0.5]]).log(), 0)
    assert mean.item() == 1.5 and logvar.exp().item() == pytest.approx(0.75)


def test_average_of_equal_posteriors_is_each_of_them():
    """No evidence accumulates, unlike with a product."""
    for logvar in (-40.0, 0.0, 3.0):
        mean, group = average_of_gaussians(torch.full((5,), 7.0), torch.full((5,), logvar), 0)
        assert mean.item() == pytest.approx(7.0) and group.item() == pytest.approx(logvar, abs=1e-5)


@pytest.mark.parametrize("per_member", [False, True])
def test_loss_is_the_groups_elbo(grouped, per_member):
    """By torch.distributions over whole tensors: the bound of a group over the number of its members."""
    c = grouped(per_member=per_member)
    own = c.posterior(c.batch.groups.flatten(0, 1)).base_dist
    mean, variance = (part.unflatten(0, (GROUPS, MEMBERS)) for part in (own.mean, own.variance))
    content = Normal(mean[..., :CONTENT].mean(1), variance[..., :CONTENT].mean(1).sqrt())
    style = Normal(mean[..., CONTENT:], variance[..., CONTENT:].sqrt())
    eps_c, eps_s = c.noise["eps"].split([CONTENT, LATENTS - CONTENT], 2)
    z = torch.cat([content.mean[:, None] + content.stddev[:, None] * eps_c, style.mean + style.stddev * eps_s], 2)
    pixels = Bernoulli(logits=c.method.autoencoder.decoder(z.flatten(0, 1)), validate_args=False)
    recon_B = -pixels.log_prob(c.batch.groups.flatten(0, 1)).flatten(1).sum(1).unflatten(0, (GROUPS, MEMBERS)).sum(1)
    prior = Normal(0.0, 1.0)
    kl_B = kl_divergence(style, prior).sum((1, 2))
    kl_B = kl_B + (MEMBERS if per_member else 1) * kl_divergence(content, prior).sum(1)
    torch.testing.assert_close(c.out(beta=2.5).losses["model"], ((recon_B + 2.5 * kl_B) / MEMBERS).mean())


def test_by_hand(grouped, log2_image):
    """All posteriors are N(1, 4): the group posterior is equal, and counts once for three images."""
    out = grouped().fix(mean=1.0, var=4.0).out(beta=10.0)
    each = 2.0 - math.log(2.0)
    assert out.logs["content_kl"].item() == pytest.approx(CONTENT * each)
    assert out.losses["model"].item() == pytest.approx(log2_image + 10.0 * each * (1 + CONTENT / MEMBERS))


def test_encoding_a_group_averages_its_content(grouped):
    c = grouped()
    images, encode = c.batch.groups[0], c.method.representation().encode
    torch.testing.assert_close(c.method.encode_group(images[:1]), encode(images[:1]))
    codes, own = c.method.encode_group(images), encode(images)
    torch.testing.assert_close(codes[:, :CONTENT], own[:, :CONTENT].mean(0).expand(MEMBERS, -1))
    torch.testing.assert_close(codes[:, CONTENT:], own[:, CONTENT:])


def test_the_style_of_a_member_does_not_affect_the_others(case, fixed_posterior):
    """Of one group of two: the content mean reaches both by half, a style mean only its owner.

    The KL per image is 1/4 (c^2 + s_1^2 + s_2^2) + constants with c = (1 + 3) / 2 counted once.
    """
    c = case(GVAE, latents=2, content=1)
    c.batch, c.noise = Batch(groups=torch.zeros(1, 2, 1, 8, 8)), {"eps": torch.zeros(1, 2, 2).double()}
    c.method.autoencoder = fixed_posterior([[1.0, -4.0], [3.0, 6.0]], [[1.0, 1.0], [1.0, 1.0]])
    grad = torch.autograd.grad(c.out(beta=1.0).losses["model"], c.method.autoencoder.mean_BZ)[0]
    torch.testing.assert_close(grad, 0.5 * torch.tensor([[1.0, -4.0], [1.0, 6.0]]).double())
