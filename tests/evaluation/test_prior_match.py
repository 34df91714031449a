"""What the codes of all images are worth, on models whose answers are known."""

import math

import numpy as np
import pytest
import torch
from raises import raises

from unweave.contract import Part, Representation
from unweave.data import load_data
from unweave.data.dataset import Dataset
from unweave.evaluation.codes import encode_dataset
from unweave.evaluation.prior_match import aggregate_posterior_metrics, fit_classifier, sample_posterior_codes


class Shades(Dataset):
    """Images of 8 x 8 of one shade in 0..1, with two classes: dark and bright."""

    name, shape, size = "shades", (1, 8, 8), 1000
    factor_names, factor_sizes, factor_values = ("bright",), (2,), ((0.0, 1.0),)
    grid, options = False, {}

    def images(self, index_B):
        return ((index_B.float() + 0.5) / self.size)[:, None, None, None].expand(-1, 1, 8, 8)

    def factors(self, index_B):
        return (index_B >= self.size // 2).long()[:, None]


def normal_code(images):
    """Code of a shade: its normal quantile, which is N(0, 1) over all images, and a second coordinate of noise."""
    shade = images.mean((1, 2, 3)).double()
    first = math.sqrt(2.0) * torch.erfinv(2.0 * shade - 1.0)
    other = math.sqrt(2.0) * torch.erfinv(2.0 * ((shade * 618.034) % 1.0).clamp(1e-3, 1 - 1e-3) - 1.0)
    return torch.stack([first, other], 1).float()


def shade_of(codes):
    return (0.5 * (1.0 + torch.erf(codes[:, 0] / math.sqrt(2.0))))[:, None, None, None].expand(-1, 1, 8, 8)


PERFECT = Representation(normal_code, 2, shade_of)


@pytest.fixture(scope="module")
def shades():
    return Shades()


@pytest.fixture(scope="module")
def classifier(shades):
    return fit_classifier(shades, "bright", steps=150)


def test_a_perfect_model(shades, classifier):
    found = aggregate_posterior_metrics(PERFECT, shades, classifier, labels=(100, 900, 5000))
    assert classifier.error < 0.02 and classifier.counts_Y.tolist() == [500, 500]
    assert abs(found.mmd) < 0.003 and abs(found.log_det) < 0.15
    assert found.squared_error < 1e-6 and found.class_divergence < 0.005
    assert set(found.label_errors) == {100, 900} and found.label_errors[900] < 0.03


def test_codes_with_half_the_deviation_change_only_the_match_with_the_prior(shades, classifier):
    narrow = Representation(lambda x: 0.5 * normal_code(x), 2, lambda z: shade_of(2.0 * z))
    good, found = (aggregate_posterior_metrics(what, shades, classifier) for what in (PERFECT, narrow))
    assert found.log_det == pytest.approx(good.log_det + 2 * math.log(0.25), abs=1e-3)
    assert found.mmd > good.mmd + 0.01
    assert found.squared_error < 1e-6 and found.label_errors == good.label_errors


def test_a_decoder_of_one_class_has_a_divergence_of_log_2(shades, classifier):
    dark = PERFECT._replace(decode=lambda z: 0.0 * shade_of(z) + 0.1)
    found = aggregate_posterior_metrics(dark, shades, classifier)
    assert found.class_divergence == pytest.approx(math.log(2))
    shade = (np.arange(1000) + 0.5) / 1000
    assert found.squared_error == pytest.approx(64 * ((shade - 0.1) ** 2).mean(), rel=1e-4)


def test_variances_of_the_encoder_count(shades, classifier):
    """Means of variance 0.75 with posteriors of variance 0.25 match the prior; the means do not."""
    quarter = math.log(0.25)
    both = Representation(
        lambda x: math.sqrt(0.75) * normal_code(x),
        2,
        shade_of,
        lambda x: (math.sqrt(0.75) * normal_code(x), torch.full((len(x), 2), quarter)),
    )
    assert aggregate_posterior_metrics(both, shades, classifier).log_det == pytest.approx(0.0, abs=0.2)
    alone = aggregate_posterior_metrics(both._replace(posterior=None), shades, classifier)
    assert alone.log_det == pytest.approx(2 * math.log(0.75), abs=0.15)
    table = encode_dataset(both, shades, num_samples=None, seed=0)
    noise = (sample_posterior_codes(table, np.random.default_rng(0)) - table.codes) / 0.5
    assert noise.var() == pytest.approx(1.0, abs=0.1)


def test_equal_seeds_give_equal_numbers_and_do_not_change_the_global_generator(shades):
    state = torch.get_rng_state()
    first, again, other = (fit_classifier(shades, "bright", steps=3, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert first.error == again.error
    results = [
        aggregate_posterior_metrics(PERFECT, shades, one, num_samples=300, seed=seed)
        for one, seed in ((first, 5), (again, 5), (other, 6))
    ]
    assert results[0] == results[1] != results[2]


def test_digits_are_classified():
    assert fit_classifier(load_data("digits(size=8)"), "digit", steps=300, batch=64).error < 0.15


def test_invalid_arguments(shades, classifier):
    with raises("factor", value="colour"):
        fit_classifier(shades, "colour")
    with raises("net", value="huge"):
        fit_classifier(shades, "bright", net="huge")
    with raises("method"):
        aggregate_posterior_metrics(PERFECT._replace(decode=None), shades, classifier)
    with raises("parts"):
        aggregate_posterior_metrics(PERFECT._replace(parts=(Part("y", 2, classes=True),)), shades, classifier)
