import math

import pytest
import torch
from torch.distributions import Normal

from unweave.nn.discriminator import Discriminator
from unweave.ops.density_ratio import GENERATOR_LOSSES, discriminator_loss

P, Q = Normal(0.0, 1.0), Normal(1.0, 1.0)


def log_ratio(z):
    return Q.log_prob(z) - P.log_prob(z)


def test_all_vanish_at_equality():
    zero = torch.zeros(5)
    loss, accuracy = discriminator_loss(zero, zero)
    assert math.log(2.0) - loss.item() == pytest.approx(0.0, abs=1e-7)  # the Jensen-Shannon divergence
    assert accuracy.item() == 0.0  # a discriminator with zero output is never more right than wrong
    found = {name: of(zero).mean().item() for name, of in GENERATOR_LOSSES.items()}
    assert found == pytest.approx({"non_saturating": math.log(2.0), "minimax": -math.log(2.0), "ratio": 0.0})


def test_values_at_the_best_discriminator():
    """KL(N(1, 1) || N(0, 1)) is 1/2 nat; the Jensen-Shannon divergence by quadrature."""
    x = torch.linspace(-9.0, 10.0, 20_001, dtype=torch.float64)
    p, q = P.log_prob(x).exp(), Q.log_prob(x).exp()
    m = 0.5 * (p + q)
    js = torch.trapezoid(0.5 * (p * (p / m).log() + q * (q / m).log()), x).item()
    draw = torch.Generator().manual_seed(0)
    z, prior = torch.randn(2, 200_000, generator=draw)
    loss, accuracy = discriminator_loss(log_ratio(z + 1.0), log_ratio(prior))
    assert math.log(2.0) - loss.item() == pytest.approx(js, abs=0.003)
    assert accuracy.item() == pytest.approx(Normal(0.0, 1.0).cdf(torch.tensor(0.5)).item(), abs=0.005)
    assert GENERATOR_LOSSES["ratio"](log_ratio(z + 1.0)).mean().item() == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(("shift", "divergence"), [(0.0, 0.0), (1.0, 0.5)])
def test_a_trained_discriminator_measures_the_divergence(shift, divergence):
    """Of two samples of one distribution near 0, and for comparison of N(1, 1) to N(0, 1), half a nat; on new draws."""
    draw = torch.Generator().manual_seed(0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        discriminator = Discriminator(1, width=32, depth=2)
    optimizer = torch.optim.Adam(discriminator.parameters(), lr=3e-3)

    def ratios(count):
        logits = discriminator(
            torch.cat([torch.randn(count, 1, generator=draw) + shift, torch.randn(count, 1, generator=draw)])
        )
        return (logits[:, 0] - logits[:, 1]).chunk(2)

    for step in range(300):
        optimizer.param_groups[0]["lr"] = 3e-3 * (1 - step / 300)
        loss, _ = discriminator_loss(*ratios(512))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        code_B, prior_B = ratios(50_000)
    assert GENERATOR_LOSSES["ratio"](code_B).mean().item() == pytest.approx(divergence, abs=0.05)
    if not shift:
        loss, accuracy = discriminator_loss(code_B, prior_B)
        assert math.log(2.0) - loss.item() == pytest.approx(0.0, abs=0.005)
        assert accuracy.item() == pytest.approx(0.5, abs=0.02)


def test_generators_are_the_two_logarithms_and_their_sum():
    ratio = torch.linspace(-4.0, 4.0, 9)
    chance = torch.sigmoid(-ratio)  # of being from the prior
    torch.testing.assert_close(GENERATOR_LOSSES["non_saturating"](ratio), -chance.log())
    torch.testing.assert_close(GENERATOR_LOSSES["minimax"](ratio), (1 - chance).log())
    both = GENERATOR_LOSSES["non_saturating"](ratio) + GENERATOR_LOSSES["minimax"](ratio)
    torch.testing.assert_close(GENERATOR_LOSSES["ratio"](ratio), both)
