"""How codes fill the prior: Gaussians of known covariance, equal laws, class counts by hand."""

import math
import tracemalloc

import numpy as np
import pytest
import torch
from raises import raises

from unweave.metrics import aggregate_posterior
from unweave.metrics.aggregate_posterior import class_divergence, label_error, log_det_covariance, prior_mmd
from unweave.ops.mmd import inverse_multiquadratic, unbiased_mmd


def normal(rows, latents, seed=5):
    return np.random.default_rng(seed).standard_normal((rows, latents))


def test_mmd_is_that_of_the_training_objective_whatever_the_blocks(monkeypatch):
    codes = 0.5 * normal(70, 3) + 0.2
    prior = torch.as_tensor(np.random.default_rng(4).standard_normal((70, 3)))
    expected = float(unbiased_mmd(torch.as_tensor(codes), prior, inverse_multiquadratic))
    assert prior_mmd(codes, seed=4) == pytest.approx(expected, abs=1e-6)
    monkeypatch.setattr(aggregate_posterior, "BLOCK", 16)
    assert prior_mmd(torch.as_tensor(codes), seed=4) == pytest.approx(expected, abs=1e-6)


def test_mmd_of_the_priors_own_law_is_about_zero_and_of_either_sign():
    found = [prior_mmd(normal(400, 4, seed), seed=100 + seed) for seed in range(20)]
    assert abs(np.mean(found)) < 1e-3 and min(found) < 0 < max(found)


def test_mmd_grows_with_the_distance():
    z = normal(500, 4)
    found = [prior_mmd(codes) for codes in (z, 0.7 * z, 0.2 * z, 0.0 * z)]
    assert found == sorted(found) and found[-1] > 0.2
    assert prior_mmd(z + 100.0) < 2.0


def test_mmd_of_many_codes_takes_little_memory():
    codes = normal(3000, 5)
    tracemalloc.start()  # numpy; torch's blocks are bounded by BLOCK
    prior_mmd(codes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e6  # all pairs would be 36e6


def test_log_determinant_of_known_covariances():
    z = normal(20_000, 3)
    turn = np.linalg.qr(normal(3, 3))[0]
    assert log_det_covariance(z) == pytest.approx(0.0, abs=0.05)
    scaled = z * [0.5, 1.0, 4.0] @ turn + 7.0
    assert log_det_covariance(scaled) == pytest.approx(2 * math.log(0.5 * 4.0), abs=0.05)
    exact = np.linalg.slogdet(np.cov(scaled.T))[1]
    assert log_det_covariance(scaled) == pytest.approx(exact, abs=1e-9)


def test_a_direction_without_codes_counts_a_finite_number():
    z = normal(1000, 1)
    assert log_det_covariance(np.hstack([z, np.ones_like(z)])) == pytest.approx(np.log(z.var(ddof=1)) + math.log(1e-12))
    assert log_det_covariance(np.hstack([z, z])) < -20


def test_class_divergence_by_hand():
    assert class_divergence([3, 3], [10, 10]) == 0.0
    assert class_divergence([1, 3], [0.5, 0.5]) == pytest.approx(0.25 * math.log(0.5) + 0.75 * math.log(1.5))
    assert class_divergence([0, 7, 0], [1, 1, 1]) == pytest.approx(math.log(3))
    assert class_divergence([1, 1], [1, 0]) == math.inf
    assert class_divergence([1, 0], [1, 0]) == 0.0


def test_label_error_of_codes_that_tell_the_class_and_of_codes_that_do_not():
    labels = np.arange(900) % 3
    known = labels[:, None] * 10.0 + normal(900, 2)
    assert label_error(known, labels, labels=100) == 0.0
    assert label_error(normal(900, 2), labels, labels=100) == pytest.approx(2 / 3, abs=0.08)
    assert label_error(known, labels, labels=1) == pytest.approx(2 / 3, abs=0.01)


def test_a_ring_around_another_class_is_classified():
    z = normal(2000, 2)
    inside = (z**2).sum(1) < 1.4  # no line divides them
    assert label_error(z, inside.astype(int), labels=1000) < 0.05


@pytest.mark.parametrize(
    ("call", "argument", "value"),
    [
        (lambda: prior_mmd([[1.0]]), "codes", "1 rows"),
        (lambda: prior_mmd([[1.0], [math.nan]]), "codes", "NaN or infinity"),
        (lambda: log_det_covariance([1.0]), "codes", "shape (1,)"),
        (lambda: class_divergence([1, 2], [1, 2, 3]), "found", "2 classes"),
        (lambda: class_divergence([0, 0], [1, 2]), "found", [0.0, 0.0]),
        (lambda: class_divergence([1, 2], [-1, 2]), "true", [-1.0, 2.0]),
        (lambda: label_error(normal(5, 2), [0] * 4), "classes", "4 entries"),
        (lambda: label_error(normal(5, 2), [0] * 5), "labels", 1000),
    ],
)
def test_invalid_arguments(call, argument, value):
    with raises(argument, value=value):
        call()
