import math

import pytest
import torch
from raises import raises
from torch.distributions import Bernoulli, Normal, kl_divergence

from unweave.contract import Batch, DataInfo
from unweave.methods.ml_vae import MLVAE
from unweave.nn.grouped import group_posterior
from unweave.ops.sharing import product_of_gaussians

GROUPS, MEMBERS, LATENTS, CONTENT = 4, 3, 3, 2


@pytest.fixture
def grouped(case):
    """A tiny method with a batch of groups."""

    def make(**arguments):
        c = case(MLVAE, latents=LATENTS, **{"content": CONTENT, **arguments})
        c.batch = Batch(groups=c.random(torch.rand, GROUPS, MEMBERS, 1, 8, 8))
        c.noise = {"eps": c.random(torch.randn, GROUPS, MEMBERS, LATENTS)}
        return c

    return make


def test_product_by_hand():
    """N(0, 1) N(3, 1/2): precisions 1 + 2 = 3, mean (0 + 2 * 3) / 3 = 2. Twice the variance would be 2/3."""
    mean, logvar = product_of_gaussians(torch.tensor([[0.0], [3.0]]), torch.tensor([[1.0], [0.5]]).log(), 0)
    assert mean.item() == pytest.approx(2.0) and logvar.exp().item() == pytest.approx(1.0 / 3.0)


def test_product_is_the_normalised_product_of_the_densities():
    """Over a grid, for three members: the product of their densities over its integral."""
    means, variances = torch.tensor([-1.0, 0.5, 2.0]).double(), torch.tensor([0.3, 2.0, 1.0]).double()
    mean, logvar = product_of_gaussians(means, variances.log(), 0)
    grid = torch.linspace(-12.0, 12.0, 4801, dtype=torch.float64)
    density = Normal(means[:, None], variances.sqrt()[:, None]).log_prob(grid).sum(0).exp()
    density /= density.sum() * (grid[1] - grid[0])
    torch.testing.assert_close(density, Normal(mean, (0.5 * logvar).exp()).log_prob(grid).exp())


def test_evidence_accumulates():
    """G equal posteriors have one G-th of the variance, and one posterior is unchanged."""
    for logvar in (-40.0, 0.0, 3.0):
        mean, group = product_of_gaussians(torch.full((5,), 7.0), torch.full((5,), logvar), 0)
        assert mean.item() == pytest.approx(7.0) and group.item() == pytest.approx(logvar - math.log(5.0), rel=1e-6)
    alone = torch.tensor([[1.5, -2.0]]), torch.tensor([[0.3, -1.0]])
    for part, same in zip(product_of_gaussians(*alone, 0), alone, strict=True):
        torch.testing.assert_close(part, same[0])


@pytest.mark.parametrize("per_member", [False, True])
def test_loss_is_the_groups_elbo(grouped, per_member):
    """Group by group and member by member: the paper's bound of a group over the number of its members."""
    c = grouped(per_member=per_member)
    prior, losses = Normal(0.0, 1.0), []
    for images, eps in zip(c.batch.groups, c.noise["eps"], strict=True):
        own = c.posterior(images).base_dist
        precision = (1.0 / own.variance[:, :CONTENT]).sum(0)
        mean = (own.mean / own.variance)[:, :CONTENT].sum(0) / precision
        content = Normal(mean, precision.rsqrt())
        total = (MEMBERS if per_member else 1) * 2.5 * kl_divergence(content, prior).sum()
        for i in range(MEMBERS):
            style = Normal(own.mean[i, CONTENT:], own.stddev[i, CONTENT:])
            z = torch.cat([q.mean + q.stddev * e for q, e in ((content, eps[i, :CONTENT]), (style, eps[i, CONTENT:]))])
            logits = c.method.autoencoder.decoder(z[None])[0]
            total = total - Bernoulli(logits=logits, validate_args=False).log_prob(images[i]).sum()
            total = total + 2.5 * kl_divergence(style, prior).sum()
        losses.append(total / MEMBERS)
    torch.testing.assert_close(c.out(beta=2.5).losses["model"], torch.stack(losses).mean())


def test_by_hand(grouped, log2_image):
    """All posteriors N(1, 3): the content is N(1, 1) with KL 1/2 a latent, the style N(1, 3) with 1/2 (3 - log 3)."""
    out = grouped().fix(mean=1.0, var=3.0).out(beta=10.0)
    style = 0.5 * (3.0 - math.log(3.0))
    assert out.logs["content_kl"].item() == pytest.approx(CONTENT * 0.5)
    assert out.logs["style_kl"].item() == pytest.approx(style)
    assert out.losses["model"].item() == pytest.approx(log2_image + 10.0 * (style + CONTENT * 0.5 / MEMBERS))


def test_an_image_is_a_group_of_one_and_a_group_gathers_evidence(grouped):
    c = grouped()
    images, encode = c.batch.groups[0], c.method.representation().encode
    torch.testing.assert_close(c.method.encode_group(images[:1]), encode(images[:1]))
    codes, own = c.method.encode_group(images), encode(images)
    assert codes.shape == (MEMBERS, LATENTS) and not codes.requires_grad
    torch.testing.assert_close(codes[:, CONTENT:], own[:, CONTENT:])
    variance = c.posterior(images).base_dist.variance[:, :CONTENT]
    expected = (own[:, :CONTENT] / variance).sum(0) / (1.0 / variance).sum(0)
    torch.testing.assert_close(codes[:, :CONTENT], expected.expand(MEMBERS, -1))
    torch.testing.assert_close(c.method.encode_group(c.batch.groups)[0], codes)
    torch.testing.assert_close(c.method.encode_group(images.flip(0)), codes.flip(0))  # of no order


def test_variance_of_the_content_falls_with_every_member(grouped):
    c = grouped()
    of = [
        group_posterior(c.method.autoencoder, c.batch.groups[:, :n], CONTENT, product_of_gaussians) for n in (1, 2, 3)
    ]
    variances = [logvar[:, 0, :CONTENT].exp() for _, logvar in of]
    assert (variances[1] < variances[0]).all() and (variances[2] < variances[1]).all()


def test_user_errors():
    info = DataInfo((1, 8, 8), 10)
    assert MLVAE(info, latents=5, net="small").content == 2
    for content in (-1, 4, 9):
        with raises("content", value=content):
            MLVAE(info, latents=4, net="small", content=content)
    with raises("latents", value=1):
        MLVAE(info, latents=1, net="small")
    with raises("images", value=[8, 8]):
        MLVAE(info, latents=2, net="small").encode_group(torch.zeros(8, 8))
