import functools

import numpy as np
import pytest
import torch
from raises import raises
from torch import nn
from torch.distributions import Independent, Normal, kl_divergence

import unweave as uw
from unweave.contract import Batch, DataInfo
from unweave.data.user.arrays import Arrays
from unweave.methods.group_tcvae import GroupTCVAE
from unweave.nn.discriminator import Discriminator, log_ratio
from unweave.ops.permutation import LEVELS, permute_blocks

PAIRS, LATENTS, CONTENT = 6, 4, 1
SHARED = torch.tensor([0, 1, 1, 0, 1, 0])


@pytest.fixture
def paired(case):
    """A tiny method with a batch of pairs, some of which share their content and some their style."""

    def make(**arguments):
        c = case(GroupTCVAE, batch=PAIRS, latents=LATENTS, **{"content": CONTENT, **arguments})
        c.batch = c.batch._replace(shared=SHARED)
        c.noise["perm"] = c.random(torch.rand, PAIRS)
        return c

    return make


class Recorder(nn.Module):
    """A discriminator that stores its inputs."""

    def __init__(self):
        super().__init__()
        self.seen = []
        self.scale = nn.Parameter(torch.ones((), dtype=torch.float64))

    def forward(self, z_BZ):
        self.seen.append(z_BZ)
        return self.scale * torch.stack([z_BZ.square().sum(1), z_BZ.sum(1)], 1)


@pytest.mark.parametrize("level", LEVELS)
def test_losses_are_equation_3(paired, level):
    """Pair by pair and image by image, with the sign of the last term as a penalty."""
    c = paired(level=level)
    c.method.discriminator = Discriminator(LATENTS, width=20, depth=2).double()
    images, eps = (c.batch.x, c.batch.pair), (c.noise["eps"], c.noise["eps_pair"])
    total, real, made = 0.0, [], []
    for i in range(2):
        q, other = c.posterior(images[i]), c.posterior(images[1 - i])
        z = q.mean + q.stddev * eps[i]
        prior = Independent(Normal(torch.zeros_like(z), 1.0), 1)
        odds = c.method.discriminator(z).double().softmax(1)
        total = total - c.likelihood(z).log_prob(images[i]) + kl_divergence(q, prior)
        total = total + 3.0 * (odds[:, 0] / odds[:, 1]).log()
        for b, shared in enumerate(SHARED):
            group = slice(CONTENT, None) if shared else slice(0, CONTENT)
            near, far = (Normal(of.mean[b, group], of.stddev[b, group]) for of in (q, other))
            total[b] = total[b] + 5.0 * kl_divergence(near, far).sum()
        real.append(z)
        made.append(permute_blocks(z, c.noise["perm"], level, CONTENT))
    out = c.out(beta=3.0, gamma=5.0)
    close = {"rtol": 1e-5, "atol": 1e-6}  # a discriminator's logits are float32
    torch.testing.assert_close(out.losses["model"], 0.5 * total.mean(), **close)
    chance = [c.method.discriminator(torch.cat(of)).double().softmax(1) for of in (real, made)]
    discriminator = -0.5 * (chance[0][:, 0].log() + chance[1][:, 1].log()).mean()
    torch.testing.assert_close(out.losses["discriminator"].double(), discriminator, **close)


def test_shared_kl_of_two_pairs_by_hand(case, fixed_posterior):
    """Two latents, one of them content. Rows: first images of pairs 0 and 1, then their partners.

    Contents N(0, 1) and N(1, 1) of pair 0 are 1/2 nat apart in both directions; its styles are far apart, and so are
    the contents of pair 1. The styles N(0, 1) and N(0, 4) of pair 1 are (log 4 + 1/4 - 1) / 2 in one direction and
    (4 - 1 - log 4) / 2 back: 9/16 in the mean. If content and style are exchanged, it is the two distant
    ones: 10^2 / 2 and 20^2 / 2.
    """
    c = case(GroupTCVAE, batch=2, latents=2)
    c.method.autoencoder = fixed_posterior([[0, 0], [0, 0], [1, 10], [20, 0]], [[1, 1], [1, 1], [1, 1], [1, 4]])
    c.noise["perm"] = c.random(torch.rand, 2)
    for shared, expected in (([0, 1], (0.5 + 9 / 16) / 2), ([1, 0], (50 + 200) / 2), ([0, 0], (0.5 + 200) / 2)):
        c.batch = c.batch._replace(shared=torch.tensor(shared))
        out, without = c.out(beta=0.0, gamma=2.0), c.out(beta=0.0, gamma=0.0)
        assert out.logs["shared_kl"].item() == pytest.approx(expected)
        assert (out.losses["model"] - without.losses["model"]).item() == pytest.approx(2.0 * expected)


def test_only_shared_parts_are_drawn_together(case, fixed_posterior):
    """The sign of the last term: down its gradient the shared means approach each other; as printed they would flee."""
    c = case(GroupTCVAE, batch=2, latents=2)
    c.method.autoencoder = fixed_posterior([[0, 0], [0, 0], [1, 5], [5, -1]], np.ones((4, 2)))
    c.noise["perm"] = c.random(torch.rand, 2)
    c.batch = c.batch._replace(shared=torch.tensor([0, 1]))
    means = c.method.autoencoder.mean_BZ
    grad = sum(
        w * torch.autograd.grad(c.out(beta=0.0, gamma=g).losses["model"], means)[0] for g, w in ((1, 1), (0, -1))
    )
    expected = torch.tensor([[-0.5, 0.0], [0.0, 0.5], [0.5, 0.0], [0.0, -0.5]], dtype=torch.float64)
    torch.testing.assert_close(grad, expected)


def test_by_hand(paired, log2_image):
    """With posteriors N(1, 4) and a discriminator with zero output, the loss is that of the VAE."""
    c = paired().fix(mean=1.0, var=4.0)
    for parameter in c.method.discriminator.parameters():
        nn.init.zeros_(parameter)
    out = c.out(beta=35.0, gamma=9.0)
    each = 2.0 - np.log(2.0)
    assert out.losses["model"].item() == pytest.approx(log2_image + LATENTS * each)
    assert out.losses["discriminator"].item() == pytest.approx(np.log(2.0))
    assert out.logs["content_kl"].item() == pytest.approx(CONTENT * each)
    assert out.logs["style_kl"].item() == pytest.approx((LATENTS - CONTENT) * each)
    assert out.logs["tc"].item() == out.logs["shared_kl"].item() == 0.0


@pytest.mark.parametrize("level", LEVELS)
def test_samples_of_the_factorisation_never_mix_a_pair(paired, level):
    """First images among themselves, partners among themselves: a pair's two codes are not independent."""
    c = paired(level=level)
    c.method.discriminator = Recorder()
    c.out(beta=1.0, gamma=1.0)
    scored, (joint, product) = c.method.discriminator.seen[0], c.method.discriminator.seen[1].chunk(2)
    assert torch.equal(scored, joint) and not c.method.discriminator.seen[1].requires_grad
    for codes, samples in zip(joint.chunk(2), product.chunk(2), strict=True):
        assert torch.equal(codes.sort(0).values, samples.sort(0).values)
        assert not (codes == samples).all(1).any()


def test_the_discriminators_loss_does_not_reach_the_autoencoder(paired):
    c = paired()
    out = c.out(beta=1.0, gamma=1.0)
    weights = list(c.method.autoencoder.parameters())
    assert all(g is None for g in torch.autograd.grad(out.losses["discriminator"], weights, allow_unused=True))
    assert torch.autograd.grad(out.logs["tc"], c.method.autoencoder.encoder[0][0].weight)[0].abs().max() > 0


BLOCKS = {"inter": ([0, 1], [2, 3]), "inter_intra_one": ([0, 1], [2], [3]), "inter_intra_all": ([0], [1], [2], [3])}


@pytest.mark.parametrize("level", LEVELS)
def test_a_trained_discriminator_knows_the_total_correlation(case, level):
    """Normal codes, two latents of content and two of style: 0.18, 0.70 and 1.21 nats for the three levels."""
    cov = torch.tensor([[1.0, 0.8, 0.5, 0.3], [0.8, 1.0, 0.5, 0.3], [0.5, 0.5, 1.0, 0.8], [0.3, 0.3, 0.8, 1.0]])
    known = 0.5 * (sum(cov[block][:, block].logdet() for block in BLOCKS[level]) - cov.logdet())
    method = case(GroupTCVAE, latents=4, level=level).method
    torch.manual_seed(0)
    method.discriminator = Discriminator(4, width=64, depth=2)
    adam = torch.optim.Adam(method.discriminator.parameters(), lr=3e-3)
    mixing = torch.linalg.cholesky(cov)
    for _ in range(300):
        loss, _ = method._discriminator_loss(torch.randn(512, 4) @ mixing.T, torch.rand(256))
        adam.zero_grad()
        loss.backward()
        adam.step()
    with torch.no_grad():
        found = log_ratio(method.discriminator, torch.randn(20_000, 4) @ mixing.T).mean()
    assert found.item() == pytest.approx(known.item(), abs=0.1)


def bars():
    """64 images 16 x 16: a block of 8 heights on the left, another on the right."""
    factors = np.indices((8, 8)).reshape(2, 64).T
    images = np.zeros((64, 1, 16, 16), np.float32)
    for image, (left, right) in zip(images[:, 0], factors, strict=True):
        image[left + 1 : left + 7, :8] = 1.0
        image[right + 1 : right + 7, 8:] = 1.0
    return Arrays(images, factors, names=["left", "right"])


@pytest.mark.parametrize(("content", "other"), [("left", "right"), ("right", "left")])
def test_content_is_the_declared_factor(content, other, monkeypatch, tmp_path):
    """The same seed and images; only what the pairs share differs, and the content latent follows it."""
    monkeypatch.setattr("unweave.methods.group_tcvae.Discriminator", functools.partial(Discriminator, depth=2))
    data = bars()
    supervision = f"match(content=['{content}'])"
    options = dict(
        net="small", latents=2, batch=32, steps=120, lr=2e-3, discriminator_width=64, supervision=supervision
    )
    run = uw.train("group_tcvae", data, out=tmp_path / "run", **options)
    every = torch.arange(64)
    codes, factors = run.encode(data.images(every)), data.factors(every).numpy()
    found = np.abs(np.corrcoef(np.c_[codes, factors], rowvar=False)[:2, 2:])
    place = data.factor_names.index(content)
    assert found[0, place] > 0.9 and found[1, 1 - place] > 0.9
    assert found[0, 1 - place] < 0.25 and found[1, place] < 0.25


def test_parts_and_user_errors():
    info = DataInfo((1, 8, 8), 10)
    method = GroupTCVAE(info, latents=5, net="small")
    assert [(part.name, part.size) for part in method.representation().parts] == [("content", 2), ("style", 3)]
    with raises("level", value="all", accepted=["inter", "inter_intra_one", "inter_intra_all"]):
        GroupTCVAE(info, net="small", level="all")
    with raises("content", value=5):
        GroupTCVAE(info, latents=5, net="small", content=5)
    hyper = GroupTCVAE.Hyper(torch.tensor(1.0), torch.tensor(1.0))
    few = Batch(x=torch.zeros(1, 1, 8, 8), pair=torch.zeros(1, 1, 8, 8), shared=torch.zeros(1, dtype=torch.int64))
    noise = {"eps": torch.zeros(1, 5), "eps_pair": torch.zeros(1, 5), "perm": torch.zeros(1)}
    with raises("batch", value=1):
        method(few, noise, hyper, torch.tensor(0))
