import pytest
import torch
from raises import raises
from torch import nn

from unweave.config import resolve_settings
from unweave.contract import DataInfo, player_parameters
from unweave.methods.aae import AAE
from unweave.methods.beta_vae import BetaVAE
from unweave.methods.info_vae import DIVERGENCES, InfoVAE
from unweave.methods.vae import VAE
from unweave.nn.discriminator import Discriminator
from unweave.ops.mmd import KERNELS, unbiased_mmd
from unweave.ops.stein import stein_surrogate

CLOSE = {"rtol": 1e-5, "atol": 1e-6}  # a discriminator's logits are float32


def ratio(discriminator, z):
    """log D / (1 - D), D the probability of being a code."""
    chance = discriminator(z).softmax(1)[:, 0]
    return (chance / (1 - chance)).log()


def weights(method):
    return list(method.autoencoder.parameters())


def gradients(out, method):
    return torch.autograd.grad(out.losses["model"], weights(method))


@pytest.mark.parametrize("kernel", list(KERNELS))
def test_loss_with_mmd(case, kernel):
    c = case(InfoVAE, kernel=kernel)
    terms, out = c.terms(), c.out(alpha=0.3, lambda_=5.0)
    mmd = unbiased_mmd(terms.z, c.noise["prior"], KERNELS[kernel])
    expected = terms.recon_B.mean() + 0.7 * terms.kl_B.mean() + 4.3 * mmd
    torch.testing.assert_close(out.losses["model"], expected)
    assert out.logs["mmd"].item() == pytest.approx(mmd.item()) and set(out.losses) == {"model"}


def test_loss_with_stein(case):
    c = case(InfoVAE, divergence="stein")
    terms, out = c.terms(), c.out(alpha=0.3, lambda_=5.0)
    expected = terms.recon_B.mean() + 0.7 * terms.kl_B.mean() + 4.3 * stein_surrogate(terms.z)
    torch.testing.assert_close(out.losses["model"], expected)


def test_losses_with_a_discriminator(case):
    c = case(InfoVAE, divergence="adversarial")
    c.method.discriminator = Discriminator(3, width=20, depth=2).double()
    terms, out = c.terms(), c.out(alpha=0.3, lambda_=5.0)
    code, prior = ratio(c.method.discriminator, terms.z), ratio(c.method.discriminator, c.noise["prior"])
    expected = terms.recon_B.mean() + 0.7 * terms.kl_B.mean() + 4.3 * code.mean()
    torch.testing.assert_close(out.losses["model"], expected, **CLOSE)
    entropy = -0.5 * (code.sigmoid().log() + (-prior).sigmoid().log()).mean()
    torch.testing.assert_close(out.losses["discriminator"], entropy, **CLOSE)
    assert all(
        g is None for g in torch.autograd.grad(out.losses["discriminator"], weights(c.method), allow_unused=True)
    )


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_alpha_0_lambda_1_is_the_vae(case, divergence):
    c, vae = case(InfoVAE, divergence=divergence), case(VAE)
    vae.method.autoencoder, vae.batch, vae.noise = c.method.autoencoder, c.batch, c.noise
    ours, theirs = c.out(alpha=0.0, lambda_=1.0), vae.out()
    torch.testing.assert_close(ours.losses["model"], theirs.losses["model"])
    for a, b in zip(gradients(ours, c.method), gradients(theirs, c.method), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_alpha_1_less_lambda_is_beta_vae(case, divergence):
    c, other = case(InfoVAE, divergence=divergence), case(BetaVAE)
    other.method.autoencoder, other.batch, other.noise = c.method.autoencoder, c.batch, c.noise
    ours, theirs = c.out(alpha=-3.0, lambda_=4.0), other.out(beta=4.0)
    torch.testing.assert_close(ours.losses["model"], theirs.losses["model"])
    for a, b in zip(gradients(ours, c.method), gradients(theirs, c.method), strict=True):
        torch.testing.assert_close(a, b)


def test_alpha_1_lambda_1_with_a_discriminator_is_the_aae(case):
    """Of a Gaussian encoder, a normal prior, and the generator that minimises the log-ratio: the sum of its phases."""
    c, other = case(InfoVAE, divergence="adversarial"), case(AAE, encoder="gaussian", generator="ratio")
    for part in ("autoencoder", "discriminator"):
        setattr(other.method, part, getattr(c.method, part))
    ours = c.out(alpha=1.0, lambda_=1.0)
    first, second = (
        other.method(c.batch, c.noise, other.method.Hyper(), torch.tensor(0), phase=phase) for phase in AAE.phases
    )
    theirs = first._replace(losses={"model": first.losses["model"] + second.losses["encoder"]})
    torch.testing.assert_close(ours.losses["model"], theirs.losses["model"])
    torch.testing.assert_close(ours.losses["discriminator"], second.losses["discriminator"])
    for a, b in zip(gradients(ours, c.method), gradients(theirs, c.method), strict=True):
        torch.testing.assert_close(a, b)


def test_only_the_adversarial_divergence_has_a_discriminator(case):
    for divergence in DIVERGENCES:
        method = case(InfoVAE, divergence=divergence).method
        players = {"model", "discriminator"} if divergence == "adversarial" else {"model"}
        assert set(player_parameters(method)) == players
    assert set(InfoVAE.players) == {"model", "discriminator"}  # what an instance says is its own


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_the_divergence_pulls_codes_to_the_prior(case, fixed_posterior, divergence):
    """Codes are shifted by 3 from the prior: a step along the negative gradient reduces their mean."""
    c = case(InfoVAE, divergence=divergence, batch=64)
    c.method.autoencoder = fixed_posterior([[3.0] * 3] * 64, [[1.0] * 3] * 64)
    if divergence == "adversarial":  # the best discriminator of N(3, 1) and N(0, 1): log q / p = 3 sum_j z_j - 13.5
        c.method.discriminator = nn.Linear(3, 2).double()
        with torch.no_grad():
            c.method.discriminator.weight.copy_(torch.tensor([[3.0] * 3, [0.0] * 3]))
            c.method.discriminator.bias.copy_(torch.tensor([-13.5, 0.0]))
    slope = torch.autograd.grad(c.out(alpha=1.0, lambda_=1.0).losses["model"], c.method.autoencoder.mean_BZ)[0]
    assert (slope.mean(0) > 0).all()


@pytest.mark.parametrize(("argument", "value"), [("divergence", "kl"), ("kernel", "linear")])
def test_unknown_names(argument, value):
    with raises(argument, value=value):
        InfoVAE(DataInfo((1, 8, 8), 10), net="small", **{argument: value})


def test_a_negative_weight_of_the_divergence():
    """The weight is alpha + lambda - 1; schedules are not checked."""
    with raises("lambda_", value=2.5, accepted="at least 3 with alpha=-2"):
        resolve_settings(InfoVAE, {"alpha": -2, "lambda_": 2.5})
    with raises("lambda_", value=0.5):
        resolve_settings(InfoVAE, {"lambda_": "0.5", "semi_supervised": "xent"})
    for alpha, lambda_ in ((0.7, 0.3), (-3, 4), (1, 0), (0, "linear(0, 10, 100)")):
        resolve_settings(InfoVAE, {"alpha": alpha, "lambda_": lambda_})
