import math

import pytest
import torch
from headed import moved_by_phase, program_on_digits, trained_on_digits
from torch import nn

from unweave.contract import DataInfo, Part, UserError
from unweave.methods.aae import AAE
from unweave.nn.critic import Critic
from unweave.ops.density_ratio import GENERATORS
from unweave.ops.priors import PRIORS, prior_sample

CLOSE = {"rtol": 1e-5, "atol": 1e-6}  # a critic's logits are float32


class Recorder(nn.Module):
    """A critic that keeps what it was shown: codes and prior as one."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, z_BZ):
        self.seen.append(z_BZ)
        return z_BZ[:, :2]


def out(c, phase):
    return c.method(c.batch, c.noise, c.method.Hyper(), torch.tensor(0), phase=phase)


@pytest.mark.parametrize("generator", list(GENERATORS))
@pytest.mark.parametrize("encoder", ["deterministic", "gaussian"])
def test_losses_by_hand(case, encoder, generator):
    """Section 2: reconstruction; then the critic's cross-entropy, and the encoder as a generator against it."""
    c = case(AAE, encoder=encoder, generator=generator)
    c.method.critic = Critic(3, width=20, depth=2).double()
    q, first, second = c.posterior(c.batch.x), out(c, "reconstruction"), out(c, "regularisation")
    z = q.mean + q.stddev * c.noise["eps"] if encoder == "gaussian" else q.mean

    def chance(codes):  # D: the probability of being from the prior
        return c.method.critic(codes).softmax(1)[:, 1]

    fooling = {
        "non_saturating": -chance(z).log(),
        "minimax": (1 - chance(z)).log(),
        "ratio": ((1 - chance(z)) / chance(z)).log(),
    }[generator].mean()
    recon = -c.likelihood(z).log_prob(c.batch.x).mean()
    torch.testing.assert_close(first.losses["model"], recon, **CLOSE)
    torch.testing.assert_close(second.losses["encoder"], fooling, **CLOSE)
    critic = -0.5 * (chance(c.noise["prior"]).log() + (1 - chance(z)).log()).mean()
    torch.testing.assert_close(second.losses["critic"], critic, **CLOSE)
    assert set(first.losses) == {"model"} and set(second.losses) == {"critic", "encoder"}


def test_critic_without_an_opinion(case, log2_image):
    c = case(AAE).fix(mean=1.0, var=4.0)
    for parameter in c.method.critic.parameters():
        nn.init.zeros_(parameter)
    assert out(c, "reconstruction").losses["model"].item() == pytest.approx(log2_image)
    second = out(c, "regularisation")
    for player in ("encoder", "critic"):
        assert second.losses[player].item() == pytest.approx(math.log(2.0))


@pytest.mark.parametrize("prior", list(PRIORS))
def test_the_critic_sees_codes_and_the_named_prior(case, prior):
    c = case(AAE, prior=prior, components=2)
    c.method.critic = Recorder()
    out(c, "reconstruction")
    assert not c.method.critic.seen  # it has no part in the first phase
    out(c, "regularisation")
    codes, drawn = c.method.critic.seen[0].chunk(2)
    assert torch.equal(codes, c.method.representation().encode(c.batch.x))
    assert torch.equal(codes, c.method.autoencoder.posterior(c.batch.x)[0]) == (prior != "categorical")
    assert torch.equal(drawn, prior_sample(prior, c.noise, 2))
    assert set(c.noise) == set(PRIORS[prior])  # a deterministic encoder asks for no other noise


@pytest.mark.parametrize("encoder", ["deterministic", "gaussian"])
def test_a_class_and_a_style(case, encoder):
    """With a categorical prior the first coordinates are probabilities, and the last one is as it was."""
    c = case(AAE, prior="categorical", components=2, encoder=encoder)
    found, mean = c.method.representation(), c.method.autoencoder.posterior(c.batch.x)[0]
    codes = found.encode(c.batch.x)
    torch.testing.assert_close(codes[:, :2], mean[:, :2].exp() / mean[:, :2].exp().sum(1, keepdim=True))
    assert torch.equal(codes[:, 2:], mean[:, 2:])
    assert found.parts == (Part("class", 2, classes=True), Part("style", 1)) and found.posterior is None
    assert found.decode(codes).shape == c.batch.x.shape
    assert out(c, "reconstruction").losses["model"].isfinite()


def test_each_phase_moves_its_players(monkeypatch):
    """And the decoder is not moved by the generator's loss."""
    method, program = program_on_digits(monkeypatch, AAE)
    assert moved_by_phase(method, program) == {
        "reconstruction": {"autoencoder.encoder", "autoencoder.decoder"},
        "regularisation": {"autoencoder.encoder", "critic"},
    }


def test_the_generator_moves_the_codes_alone(case):
    c = case(AAE)
    last = c.method.autoencoder.encoder[-1]
    by_generator = torch.autograd.grad(out(c, "regularisation").losses["encoder"], last.weight)[0]
    assert by_generator[:3].abs().max() > 0 and by_generator[3:].abs().max() == 0


def test_codes_come_to_fill_the_prior(monkeypatch):
    """Uniform from -1 to 1: the codes' deviations, far from it at first, end near the root of a third."""
    method, logs, images, _ = trained_on_digits(monkeypatch, AAE, steps=300, latents=2, prior="uniform")
    with torch.no_grad():
        codes = method.representation().encode(images)
    assert codes.std(0).tolist() == pytest.approx([3**-0.5] * 2, rel=0.35)
    assert codes.mean(0).abs().max() < 0.35 and (codes.abs() < 1.2).float().mean() > 0.9
    assert logs["recon"] < 35


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
    with pytest.raises(UserError, match="latents 10 is too small for prior 'categorical'; use 11 or more"):
        AAE(data, net="small", prior="categorical")
    with pytest.raises(UserError, match="components 1 is too small; use 2 or more"):
        AAE(data, net="small", components=1)
