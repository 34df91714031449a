import math

import pytest
import torch
from torch import nn

from unweave.contract import DataInfo, UserError
from unweave.methods.aae import AAE
from unweave.nn.critic import Critic
from unweave.ops.density_ratio import GENERATORS
from unweave.ops.priors import PRIORS, prior_sample

CLOSE = {"rtol": 1e-5, "atol": 1e-6}  # a critic's logits are float32


class Recorder(nn.Module):
    """A critic that keeps what it was shown: the codes, then codes and prior as one."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, z_BZ):
        self.seen.append(z_BZ)
        return z_BZ[:, :2]


@pytest.mark.parametrize("generator", list(GENERATORS))
@pytest.mark.parametrize("encoder", ["deterministic", "gaussian"])
def test_losses_by_hand(case, encoder, generator):
    """Section 2: reconstruction, the critic's cross-entropy, and the encoder as a generator against it."""
    c = case(AAE, encoder=encoder, generator=generator)
    c.method.critic = Critic(3, width=20, depth=2).double()
    q, out = c.posterior(c.batch.x), c.out(lambda_=3.0)
    z = q.mean + q.stddev * c.noise["eps"] if encoder == "gaussian" else q.mean

    def chance(codes):  # D: the probability of being from the prior
        return c.method.critic(codes).softmax(1)[:, 1]

    fooling = {
        "non_saturating": -chance(z).log(),
        "minimax": (1 - chance(z)).log(),
        "ratio": ((1 - chance(z)) / chance(z)).log(),
    }[generator].mean()
    recon = -c.likelihood(z).log_prob(c.batch.x).mean()
    torch.testing.assert_close(out.losses["model"], recon + 3.0 * fooling, **CLOSE)
    critic = -0.5 * (chance(c.noise["prior"]).log() + (1 - chance(z)).log()).mean()
    torch.testing.assert_close(out.losses["critic"], critic, **CLOSE)


def test_critic_without_an_opinion(case, log2_image):
    c = case(AAE).fix(mean=1.0, var=4.0)
    for parameter in c.method.critic.parameters():
        nn.init.zeros_(parameter)
    out = c.out(lambda_=2.0)
    assert out.losses["model"].item() == pytest.approx(log2_image + 2 * math.log(2.0))
    assert out.losses["critic"].item() == pytest.approx(math.log(2.0))


@pytest.mark.parametrize("prior", list(PRIORS))
def test_the_critic_sees_codes_and_the_named_prior(case, prior):
    c = case(AAE, prior=prior)
    c.method.critic = Recorder()
    c.out(lambda_=1.0)
    scored, (codes, drawn) = c.method.critic.seen[0], c.method.critic.seen[1].chunk(2)
    assert torch.equal(scored, codes) and not codes.requires_grad
    assert torch.equal(drawn, prior_sample(prior, c.noise))
    assert set(c.noise) == set(PRIORS[prior])  # a deterministic encoder asks for no other noise


def test_no_loss_reaches_the_other_player_but_the_generators(case):
    c = case(AAE)
    out = c.out(lambda_=1.0)
    weights = list(c.method.autoencoder.parameters())
    assert all(g is None for g in torch.autograd.grad(out.losses["critic"], weights, allow_unused=True))
    last = c.method.autoencoder.encoder[-1]
    by_generator = torch.autograd.grad(out.logs["generator"], last.weight)[0]
    assert by_generator[:3].abs().max() > 0 and by_generator[3:].abs().max() == 0


def test_a_deterministic_encoder_has_no_posterior(case):
    x = case(AAE).batch.x
    for encoder in ("deterministic", "gaussian"):
        method = case(AAE, encoder=encoder).method
        found = method.representation()
        assert (found.posterior is None) == (encoder == "deterministic")
        assert torch.equal(found.encode(x), method.autoencoder.posterior(x)[0])


def test_unknown_names_and_too_few_latents():
    data = DataInfo((1, 8, 8), 10)
    for argument in ("encoder", "prior", "generator"):
        with pytest.raises(UserError, match=f"{argument} 'other' is unknown; use one of "):
            AAE(data, net="small", **{argument: "other"})
    with pytest.raises(UserError, match="latents 1 is too small for prior 'mixture'; use 2 or more"):
        AAE(data, net="small", latents=1, prior="mixture")
