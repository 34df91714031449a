"""Information under the aggregate posterior: against the closed forms of Gaussians, and known answers."""

import doctest

import numpy as np
import pytest
import torch
from raises import raises

from unweave.metrics import posterior
from unweave.metrics.posterior import (
    kl_decomposition,
    log_mixture,
    mig_score_from_posterior,
    posterior_information_matrix,
    sample_posteriors,
)

RNG = np.random.default_rng(0)
GRID = np.stack(np.unravel_index(np.arange(60), (4, 3, 5)), axis=1)
MEANS = GRID - GRID.mean(axis=0)


def gaussian_rows(rows, spread, noise):
    """Rows whose means are Gaussian with covariance `spread`, each with posterior variance `noise`."""
    means = RNG.multivariate_normal(np.zeros(len(spread)), spread, size=rows)
    return means, np.full(means.shape, np.log(noise))


def test_information_with_the_row_number_is_the_closed_form():
    means, logvar = gaussian_rows(2000, np.diag([1.0, 0.25, 1e-9]), 0.2)
    found = posterior_information_matrix(means, logvar, np.arange(2000)[:, None], samples=2000)[:, 0]
    expected = 0.5 * np.log1p(np.array([1.0, 0.25, 0.0]) / 0.2)
    np.testing.assert_allclose(found, expected, atol=0.05)


def test_information_with_a_noisy_factor_is_the_closed_form():
    """The mean is a Gaussian factor plus Gaussian noise: I = 1/2 log(total variance / noise variance)."""
    factor = RNG.normal(size=6000)
    means = (factor + RNG.normal(scale=0.5, size=6000))[:, None]
    cut = np.digitize(factor, np.quantile(factor, np.linspace(0, 1, 61)[1:-1]))  # 60 values: nearly continuous
    found = posterior_information_matrix(means, np.full_like(means, np.log(0.25)), cut[:, None], samples=3000)
    assert found[0, 0] == pytest.approx(0.5 * np.log(1.5 / 0.5), abs=0.05)


def test_parts_of_the_kl_are_the_closed_forms_and_add_up():
    spread = np.array([[1.0, 0.6], [0.6, 0.8]])
    means, logvar = gaussian_rows(4000, spread, 0.3)
    parts = kl_decomposition(means.astype(np.float32), logvar.astype(np.float32), samples=4000)
    total = spread + 0.3 * np.eye(2)
    variance = np.diag(total)
    tolerance = 0.04  # a few standard errors of 4,000 rows and samples
    assert parts["index_code_mi"] == pytest.approx(0.5 * np.linalg.slogdet(np.eye(2) + spread / 0.3)[1], abs=tolerance)
    assert parts["total_correlation"] == pytest.approx(
        0.5 * (np.log(variance).sum() - np.linalg.slogdet(total)[1]), abs=tolerance
    )
    assert parts["dimension_wise_kl"] == pytest.approx(0.5 * (variance - 1 - np.log(variance)).sum(), abs=tolerance)
    added = parts["index_code_mi"] + parts["total_correlation"] + parts["dimension_wise_kl"]
    assert added == pytest.approx(parts["kl"], abs=tolerance)


def test_size_corrects_the_estimate_from_a_part_of_the_data():
    means, logvar = gaussian_rows(20_000, np.eye(3), 0.01)
    truth = 0.5 * 3 * np.log1p(1 / 0.01)
    part = kl_decomposition(means[:500], logvar[:500], samples=1000)
    corrected = kl_decomposition(means[:500], logvar[:500], samples=1000, size=20_000)
    assert part["index_code_mi"] <= np.log(500) + 1e-6  # no more than the rows can tell
    assert abs(corrected["index_code_mi"] - truth) < abs(part["index_code_mi"] - truth)
    with raises("size", value=3):
        kl_decomposition(means[:500], logvar[:500], size=3)


def test_posteriors_equal_to_the_prior_have_no_kl():
    parts = kl_decomposition(np.zeros((50, 3)), np.zeros((50, 3)), samples=100)
    np.testing.assert_allclose(list(parts.values()), 0.0, atol=1e-5)
    single = kl_decomposition(np.ones((1, 2)), np.zeros((1, 2)), samples=10)
    assert single["index_code_mi"] == pytest.approx(0.0, abs=1e-6) and single["kl"] == pytest.approx(1.0)


def test_mixture_is_the_plain_sum():
    drawn = sample_posteriors(MEANS, np.full((60, 3), -1.0), samples=40, seed=0, device=None)
    density = torch.distributions.Normal(drawn.mean_DN[:, None], torch.exp(0.5 * drawn.logvar_DN[:, None]))
    plain = density.log_prob(drawn.z_DS[:, :, None]).exp().mean(2).log()
    torch.testing.assert_close(log_mixture(drawn), plain)
    rows, samples = torch.arange(0, 60, 3), torch.tensor([1, 5])
    some = density.log_prob(drawn.z_DS[:, :, None]).exp()[:, :, rows].mean(2).log()[:, samples]
    torch.testing.assert_close(log_mixture(drawn, rows, samples), some)


def test_score_of_narrow_wide_and_duplicated_posteriors():
    narrow = np.full((60, 3), -10.0)
    assert mig_score_from_posterior(MEANS, narrow, GRID, samples=500) == pytest.approx(1.0, abs=1e-4)
    assert mig_score_from_posterior(MEANS[:, [2, 0, 1]], narrow, GRID, samples=500) == pytest.approx(1.0, abs=1e-4)
    assert mig_score_from_posterior(0 * MEANS, 0 * narrow, GRID, samples=500) == pytest.approx(0.0, abs=1e-9)
    twice = mig_score_from_posterior(np.hstack([MEANS, MEANS]), np.hstack([narrow, narrow]), GRID, samples=500)
    assert twice == pytest.approx(0.0, abs=0.01)
    blurred = mig_score_from_posterior(MEANS, np.zeros((60, 3)), GRID, samples=2000)
    assert 0.2 < blurred < 0.7  # reduced by the noise of the posterior; the means score 1


def test_samples_are_drawn_by_the_seed_and_float32_is_enough():
    logvar = np.full((60, 3), -1.0)
    score = mig_score_from_posterior(MEANS, logvar, GRID, samples=200, seed=3)
    assert score == mig_score_from_posterior(MEANS, logvar, GRID, samples=200, seed=3)
    assert score != mig_score_from_posterior(MEANS, logvar, GRID, samples=200, seed=4)
    tensors = (torch.tensor(MEANS, dtype=torch.float32), torch.tensor(logvar, dtype=torch.float32))
    assert mig_score_from_posterior(*tensors, torch.tensor(GRID), samples=200, seed=3) == pytest.approx(score, abs=1e-5)


def test_densities_are_summed_in_parts(monkeypatch):
    logvar = np.full((60, 3), -1.0)
    whole = kl_decomposition(MEANS, logvar, samples=50)
    monkeypatch.setattr(posterior, "CHUNK", {"cpu": 100})
    in_parts = kl_decomposition(MEANS, logvar, samples=50)
    assert in_parts == pytest.approx(whole)


def test_missing_factor_values_are_left_out():
    factors = GRID.astype(float)
    factors[::7, 0] = np.nan
    found = posterior_information_matrix(MEANS, np.full((60, 3), -10.0), factors, samples=300)
    assert found[0, 0] == pytest.approx(np.log(4), abs=0.1) and np.isfinite(found).all()


@pytest.mark.parametrize(
    ("mean", "logvar", "argument", "value"),
    [
        ([[np.nan]], [[0.0]], "mean", "NaN or infinity"),
        ([[0.0]], [[np.inf]], "logvar", "NaN or infinity"),
        (torch.tensor([[np.inf]]), torch.zeros(1, 1), "mean", "NaN or infinity"),
        ([[0.0]], [[0.0, 0.0]], "logvar", "shape (1, 2)"),
        ([[0.0]], [[-200.0]], "logvar", "-200 to -200"),
        ([0.0], [0.0], "mean", "shape (1,)"),
    ],
)
def test_invalid_arrays(mean, logvar, argument, value):
    with raises(argument, value=value):
        kl_decomposition(mean, logvar)


def test_docstring_examples():
    result = doctest.testmod(posterior)
    assert result.attempted > 0 and result.failed == 0
