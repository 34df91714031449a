import math

import pytest
import torch
from headed import program_on_digits, trained_on_digits, updated_by_phase
from raises import raises
from torch import nn

from unweave.contract import DataInfo, Part
from unweave.methods.aae import AAE
from unweave.nn.discriminator import Discriminator
from unweave.ops.density_ratio import GENERATOR_LOSSES
from unweave.ops.mmd import KERNELS, unbiased_mmd
from unweave.ops.priors import PRIORS, prior_sample

CLOSE = {"rtol": 1e-5, "atol": 1e-6}  # a discriminator's logits are float32


class Recorder(nn.Module):
    """A discriminator that stores its inputs, codes and prior samples concatenated."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, z_BZ):
        self.seen.append(z_BZ)
        return z_BZ[:, :2]


def out(c, phase):
    return c.method(c.batch, c.noise, c.method.Hyper(), torch.tensor(0), phase=phase)


@pytest.mark.parametrize("generator", list(GENERATOR_LOSSES))
@pytest.mark.parametrize("encoder", ["deterministic", "gaussian"])
def test_losses_by_hand(case, encoder, generator):
    """Section 2: the reconstruction, the discriminator's cross-entropy, and the encoder's loss against it."""
    c = case(AAE, encoder=encoder, generator=generator)
    c.method.discriminator = Discriminator(3, width=20, depth=2).double()
    q, first, second = c.posterior(c.batch.x), out(c, "reconstruction"), out(c, "regularisation")
    z = q.mean + q.stddev * c.noise["eps"] if encoder == "gaussian" else q.mean

    def chance(codes):  # D: the probability of being from the prior
        return c.method.discriminator(codes).softmax(1)[:, 1]

    fooling = {
        "non_saturating": -chance(z).log(),
        "minimax": (1 - chance(z)).log(),
        "ratio": ((1 - chance(z)) / chance(z)).log(),
    }[generator].mean()
    recon = -c.likelihood(z).log_prob(c.batch.x).mean()
    torch.testing.assert_close(first.losses["model"], recon, **CLOSE)
    torch.testing.assert_close(second.losses["encoder"], fooling, **CLOSE)
    discriminator = -0.5 * (chance(c.noise["prior"]).log() + (1 - chance(z)).log()).mean()
    torch.testing.assert_close(second.losses["discriminator"], discriminator, **CLOSE)
    assert set(first.losses) == {"model"} and set(second.losses) == {"discriminator", "encoder"}


def test_discriminator_with_zero_output(case, log2_image):
    c = case(AAE).fix(mean=1.0, var=4.0)
    for parameter in c.method.discriminator.parameters():
        nn.init.zeros_(parameter)
    assert out(c, "reconstruction").losses["model"].item() == pytest.approx(log2_image)
    second = out(c, "regularisation")
    for player in ("encoder", "discriminator"):
        assert second.losses[player].item() == pytest.approx(math.log(2.0))


@pytest.mark.parametrize("prior", list(PRIORS))
def test_the_discriminator_sees_codes_and_the_named_prior(case, prior):
    c = case(AAE, prior=prior, components=2)
    c.method.discriminator = Recorder()
    out(c, "reconstruction")
    assert not c.method.discriminator.seen  # it has no part in the first phase
    out(c, "regularisation")
    codes, drawn = c.method.discriminator.seen[0].chunk(2)
    assert torch.equal(codes, c.method.representation().encode(c.batch.x))
    assert torch.equal(codes, c.method.autoencoder.posterior(c.batch.x)[0]) == (prior != "categorical")
    assert torch.equal(drawn, prior_sample(prior, c.noise, 2))
    assert set(c.noise) == set(PRIORS[prior])  # a deterministic encoder asks for no other noise


@pytest.mark.parametrize("encoder", ["deterministic", "gaussian"])
def test_a_class_and_a_style(case, encoder):
    """With a categorical prior the first coordinates are probabilities; the last one is unchanged."""
    c = case(AAE, prior="categorical", components=2, encoder=encoder)
    found, mean = c.method.representation(), c.method.autoencoder.posterior(c.batch.x)[0]
    codes = found.encode(c.batch.x)
    torch.testing.assert_close(codes[:, :2], mean[:, :2].exp() / mean[:, :2].exp().sum(1, keepdim=True))
    assert torch.equal(codes[:, 2:], mean[:, 2:])
    assert found.parts == (Part("class", 2, classes=True), Part("style", 1)) and found.posterior is None
    assert found.decode(codes).shape == c.batch.x.shape
    assert out(c, "reconstruction").losses["model"].isfinite()


def test_each_phase_updates_its_players(monkeypatch):
    """The generator's loss does not update the decoder."""
    method, program = program_on_digits(monkeypatch, AAE, discriminator_width=64)
    assert updated_by_phase(method, program) == {
        "reconstruction": {"autoencoder.encoder", "autoencoder.decoder"},
        "regularisation": {"autoencoder.encoder", "discriminator"},
    }


def test_the_generator_loss_updates_only_the_encoder(case):
    c = case(AAE)
    last = c.method.autoencoder.encoder[-1]
    by_generator = torch.autograd.grad(out(c, "regularisation").losses["encoder"], last.weight)[0]
    assert by_generator[:3].abs().max() > 0 and by_generator[3:].abs().max() == 0


def test_codes_approach_the_uniform_prior(monkeypatch):
    """Uniform in -1..1: the standard deviations of the codes approach the root of a third."""
    method, logs, images, _ = trained_on_digits(
        monkeypatch, AAE, steps=300, latents=2, prior="uniform", discriminator_width=64
    )
    with torch.no_grad():
        codes = method.representation().encode(images)
    assert codes.std(0).tolist() == pytest.approx([3**-0.5] * 2, rel=0.35)
    assert codes.mean(0).abs().max() < 0.35 and (codes.abs() < 1.2).float().mean() > 0.9
    assert logs["recon"] < 35


def draws(prior, count, seed):
    draw = torch.Generator().manual_seed(seed)
    noise = {"prior": torch.randn(count, 2, generator=draw), "place": torch.rand(count, 1, generator=draw)}
    return prior_sample(prior, noise)


@pytest.mark.parametrize("prior", ["mixture", "swiss_roll"])
def test_codes_take_the_shape_of_the_prior(monkeypatch, prior):
    """Codes are closer to the prior than samples of a normal distribution with its mean and covariance."""
    recipe = {
        "batch_norm": True,
        "discriminator_steps": 3,
        "discriminator_width": 64,
        "discriminator_depth": 4,
        "likelihood": "gaussian",
    }
    recipe |= {"latents": 2, "prior": prior, "lr": "linear(2e-3, 0, 300)"}
    before, _ = program_on_digits(monkeypatch, AAE, **recipe)
    method, _, images, _ = trained_on_digits(monkeypatch, AAE, steps=300, **recipe)
    wanted, like = draws(prior, len(images), 0), draws(prior, len(images), 1)
    noise = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(2))
    like = like.mean(0) + noise @ torch.linalg.cholesky(torch.cov(like.T)).T
    with torch.no_grad():
        first, codes = (m.representation().encode(images) for m in (before, method))

    def apart(sample):
        return unbiased_mmd(sample, wanted, KERNELS["imq"]).item()

    def astray(sample):  # how far from the nearest draw: a filled disk has the moments of the shape, and lies beside it
        return torch.cdist(sample, wanted).min(1).values.mean().item()

    assert apart(codes) < 0.1 * apart(first) and apart(codes) < apart(like)
    assert astray(codes) < 0.55 * astray(like)  # 0.37 and 0.23 here; 0.18 and 0.44 the ends of three starts


def test_every_repetition_is_a_phase(case):
    """Each repetition is a phase with its own batch; all have the same losses."""
    c = case(AAE, discriminator_steps=3)
    discriminator_steps = ["regularisation", "regularisation_2", "regularisation_3"]
    assert list(c.method.phases) == ["reconstruction", *discriminator_steps]
    assert {c.method.phases[name] for name in discriminator_steps} == {("discriminator", "encoder")}
    first, last = out(c, discriminator_steps[0]), out(c, discriminator_steps[-1])
    assert torch.equal(first.losses["encoder"], last.losses["encoder"]) and "discriminator" in last.losses
    assert list(case(AAE).method.phases) == list(AAE.phases)  # one unless more are asked for


def test_a_normalised_encoder_uses_the_moments_of_the_batch(case):
    """In training; the running averages used afterwards come from the batches of the reconstruction phase."""
    c = case(AAE, batch_norm=True)
    c.method.discriminator = Recorder()
    first, second = out(c, "reconstruction"), out(c, "regularisation")
    codes = c.method.discriminator.seen[0].chunk(2)[0]
    outputs, state = c.method.autoencoder.encoder.batch(c.batch.x, "autoencoder.encoder")
    assert torch.equal(codes, outputs[:, :3]) and not second.state
    assert state and all(torch.equal(first.state[name], value) for name, value in state.items())
    assert set(state) <= set(c.method.state_dict()) and not out(case(AAE), "reconstruction").state


def test_a_deterministic_encoder_has_no_posterior(case):
    x = case(AAE).batch.x
    for encoder in ("deterministic", "gaussian"):
        method = case(AAE, encoder=encoder).method
        found = method.representation()
        assert (found.posterior is None) == (encoder == "deterministic")
        assert torch.equal(found.encode(x), method.autoencoder.posterior(x)[0])


INVALID = [
    ({"encoder": "other"}, "encoder", "other"),
    ({"prior": "other"}, "prior", "other"),
    ({"generator": "other"}, "generator", "other"),
    ({"latents": 1, "prior": "mixture"}, "latents", 1),
    ({"prior": "categorical"}, "latents", 10),
    ({"components": 1}, "components", 1),
    ({"discriminator_steps": 0}, "discriminator_steps", 0),
]


@pytest.mark.parametrize(("arguments", "argument", "value"), INVALID)
def test_user_errors(arguments, argument, value):
    with raises(argument, value=value):
        AAE(DataInfo((1, 8, 8), 10), net="small", **arguments)
