import math

import pytest
import torch

from unweave.ops.priors import COMPONENTS, PRIORS, one_hot_sample, prior_sample

DRAWS = {"normal": torch.randn, "uniform": torch.rand}


def sample(prior, count=5000, latents=3, components=COMPONENTS):
    draw, sizes = torch.Generator().manual_seed(0), {"B": count, "Z": latents}
    noise = {
        name: DRAWS[want.kind](*(sizes.get(d, d) for d in want.dims), generator=draw)
        for name, want in PRIORS[prior].items()
    }
    return prior_sample(prior, noise, components)


@pytest.mark.parametrize("prior", list(PRIORS))
def test_shape_and_the_other_latents(prior):
    z_BZ = sample(prior, components=2)
    assert z_BZ.shape == (5000, 3) and z_BZ.isfinite().all()
    spread = 1.0 if prior != "uniform" else math.sqrt(1 / 3)
    assert z_BZ[:, 2].mean().abs() < 0.06 and z_BZ[:, 2].std().item() == pytest.approx(spread, abs=0.04)


def test_uniform_fills_its_box():
    z_BZ = sample("uniform")
    assert -1 <= z_BZ.min() < -0.99 and 0.99 < z_BZ.max() <= 1


def test_the_mixture_has_ten_gaussians_of_equal_weight():
    z_BZ = sample("mixture")
    angle = torch.atan2(z_BZ[:, 1], z_BZ[:, 0]) / (2 * math.pi / COMPONENTS)
    counts = torch.bincount(angle.round().long() % COMPONENTS, minlength=COMPONENTS)
    assert counts.min() > 400 and counts.max() < 600
    assert (angle - angle.round()).abs().mean() < 0.12  # evenly spread angles would have 1/4
    assert z_BZ[:, :2].norm(dim=1).mean().item() == pytest.approx(2.0, abs=0.05)


def test_the_mixture_has_as_many_gaussians_as_asked_for():
    z_BZ = sample("mixture", components=3)
    angle = torch.atan2(z_BZ[:, 1], z_BZ[:, 0]) / (2 * math.pi / 3)
    assert (angle - angle.round()).abs().mean() < 0.05 and (angle.round().long() % 3).bincount().min() > 1500


def test_a_class_times_a_style():
    """Means and covariances are those of independent parts: p (1 - p) and -p^2 among the classes, 1 in the style."""
    z_BZ = sample("categorical", count=40_000, latents=6, components=4)
    class_BY = z_BZ[:, :4]
    assert set(class_BY.unique().tolist()) == {0.0, 1.0} and (class_BY.sum(1) == 1).all()
    expected = torch.eye(6)
    expected[:4, :4] = torch.eye(4) / 4 - 1 / 16
    torch.testing.assert_close(z_BZ.mean(0), torch.tensor([0.25] * 4 + [0.0] * 2), atol=0.02, rtol=0.0)
    torch.testing.assert_close(z_BZ.T.cov(), expected, atol=0.03, rtol=0.0)


def test_swiss_roll_is_a_spiral_of_even_density():
    z_BZ = sample("swiss_roll")
    radius, angle = z_BZ[:, :2].norm(dim=1) / 0.2, torch.atan2(z_BZ[:, 1], z_BZ[:, 0])
    turns = (radius - angle) / (2 * math.pi)
    assert (turns - turns.round()).abs().mean() < 0.05  # radius and angle agree up to whole turns
    outer = (radius > 3 * math.pi).float().mean().item()  # a length grows as the square of the angle
    assert outer == pytest.approx((4.5**2 - 3**2) / (4.5**2 - 1.5**2), abs=0.03)


def test_one_hot_samples_are_one_hot_and_uniform():
    place = torch.rand(20_000, generator=torch.Generator().manual_seed(0))
    found = one_hot_sample(place, 7)
    assert found.shape == (20_000, 7) and set(found.unique().tolist()) == {0.0, 1.0}
    assert (found.sum(1) == 1).all()
    expected = 20_000 / 7
    assert ((found.sum(0) - expected) ** 2 / expected).sum() < 22.5  # chi-square with 6 degrees of freedom, p = 0.001


@pytest.mark.parametrize("classes", [1, 2, 3, 9, 10, 17, 30, 1000])
def test_the_ends_of_the_unit_interval_are_the_first_and_the_last_class(classes):
    """The largest number the noise may be is 1 - 2^-24: it must not be rounded to a class there is not."""
    found = one_hot_sample(torch.tensor([0.0, 1.0 - 2.0**-24]), classes)
    assert found.argmax(1).tolist() == [0, classes - 1] and found.sum().item() == 2.0
