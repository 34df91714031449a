"""All metrics: declared properties, known answers, edge cases, invalid input."""

import functools
import inspect
import json
import math

import numpy as np
import pytest
import torch
from raises import raises

from unweave.metrics import METRICS, describe
from unweave.metrics.inputs import read_table, varying_factors
from unweave.metrics.runner import flatten_scores
from unweave.metrics.solvers import predictors

SIZES = (4, 3, 5)
GRID = np.stack(np.unravel_index(np.arange(60), SIZES), axis=1)  # every combination once: factors independent
FACTORS = GRID.repeat(8, axis=0)
PERFECT = FACTORS - FACTORS.mean(axis=0)
NOISY = PERFECT + np.random.default_rng(0).normal(scale=0.3, size=PERFECT.shape)
NOISE = np.random.default_rng(1).normal(size=PERFECT.shape)


@pytest.fixture(autouse=True, scope="module")
def _few_trees():
    """A tenth of the trees of DCI, to save time."""
    boost = predictors.boost
    predictors.boost = functools.partial(boost, stages=10)
    yield
    predictors.boost = boost


def call(name, codes, factors, quick=True, **options):
    """Scores of a metric by name, as in the result of `evaluate`."""
    metric = METRICS[name]
    known = metric.test_options if quick else {}
    arguments = [codes, factors]
    if "groups" in metric.needs:
        arguments += [[column % 2 for column in range(np.shape(table)[-1])] for table in (codes, factors)]
    if "posterior" in metric.needs:
        same = torch if isinstance(codes, torch.Tensor) else np
        arguments = [codes, same.full(np.shape(codes), -4.0), factors]
    return flatten_scores(name, metric.function(*arguments, **known, **options))


def in_range(name, values):
    metric = METRICS[name]
    least, most = sorted((metric.worst, metric.best))
    return all(type(v) is float and math.isfinite(v) and least <= v <= most for v in values.values())


# --- declared properties ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METRICS)
def test_declaration(name):
    metric = METRICS[name]
    parameters = inspect.signature(metric.function).parameters
    assert metric.better in ("higher", "lower", "neither")
    assert metric.better == "neither" or (metric.better == "higher") == (metric.best > metric.worst)
    assert set(metric.invariant) <= {"permutation", "scale", "sign"} and "permutation" in metric.invariant
    assert (
        metric.title
        and metric.definition
        and metric.description.endswith((".", "none."))
        and "\n" not in metric.description
    )
    optional = [p for p in parameters.values() if p.default is not p.empty and p.name != "factors"]
    assert all(p.kind is p.KEYWORD_ONLY for p in optional), "options are keyword-only"
    result = call(name, NOISY, FACTORS, quick=False)
    assert set(result) == ({f"{name}.{part}" for part in metric.parts} or {name})
    assert all(describe(score).description for score in result)
    json.dumps(result)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(
    "codes", [PERFECT, NOISY, NOISE, np.zeros_like(NOISY)], ids=["perfect", "noisy", "noise", "dead"]
)
def test_scores_are_floats_in_their_range(name, codes):
    assert in_range(name, call(name, codes, FACTORS))


CHANGES = {
    "permutation": lambda codes: codes[:, [2, 0, 1]],
    "scale": lambda codes: codes * [0.5, 8.0, 2.0],  # powers of two: the same roundings
    "sign": lambda codes: codes * [-1.0, 1.0, -1.0],
}


# Groups would have to be permuted together with the codes, and variances scaled.
APART = [("groups", "permutation"), ("posterior", "scale")]
INVARIANT = [
    (name, change)
    for name, metric in METRICS.items()
    for change in metric.invariant
    if not any(need in metric.needs and change == apart for need, apart in APART)
]


@pytest.mark.parametrize(("name", "change"), INVARIANT)
def test_invariances_hold(name, change):
    before, after = call(name, NOISY, FACTORS), call(name, CHANGES[change](NOISY), FACTORS)
    # Random metrics draw other samples for permuted codes.
    tolerance = 0.1 if METRICS[name].random else 1e-6
    assert after == pytest.approx(before, abs=tolerance)


@pytest.mark.parametrize("name", METRICS)
def test_equal_seeds_give_equal_scores(name):
    options = {"seed": 7} if METRICS[name].random else {}
    assert call(name, NOISY, FACTORS, **options) == call(name, NOISY, FACTORS, **options)


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.split])
def test_a_test_set_is_used(name):
    with_test = call(name, NOISY, FACTORS, test=(NOISY[::2], FACTORS[::2]))
    assert in_range(name, with_test)
    with raises("test"):
        call(name, NOISY, FACTORS, test=(NOISY[:, :1], FACTORS))


@pytest.mark.parametrize("name", METRICS)
def test_tensors_and_arrays_score_the_same(name):
    arrays = call(name, NOISY, FACTORS)
    assert call(name, torch.tensor(NOISY), torch.tensor(FACTORS)) == pytest.approx(arrays, abs=1e-9)


# --- known answers ---------------------------------------------------------------------------------------------------

TURN = np.array([[1, -1, 0], [1, 1, 0], [0, 0, np.sqrt(2)]]) / np.sqrt(2)  # an eighth of a circle in two of the codes
STANDARD = PERFECT / PERFECT.std(axis=0)
ANGLE = 2 * np.pi * FACTORS[:, :1] / SIZES[0]
HALVES = np.column_stack([FACTORS[:, 0] // 2, FACTORS[:, 0] % 2])
CODES = {
    "identity": PERFECT,
    "permuted": PERFECT[:, [1, 2, 0]],
    "rotation": STANDARD @ TURN,
    "duplicated": np.hstack([PERFECT, PERFECT]),
    "circle": np.hstack([np.sin(ANGLE).round(9), np.cos(ANGLE).round(9), PERFECT[:, 1:]]),
    "random": NOISE,
    "split": np.hstack([HALVES, PERFECT[:, 1:]]),
}
# By hand: the sine of four angles has 3/4 of their information (one bit and half of the other), a half 1 bit of 2.
LOGS = np.log([4, 3, 5]).sum()
# score -> answers in the order of CODES; a pair is a range, None is not tested
ANSWERS = {
    "mig": (1.0, 1.0, 1 / 3, 0.0, 2 / 3, (0.0, 0.1), 2 / 3),
    "mig_sup": (1.0, 1.0, 1 / 3, 1.0, 3.5 / 4, (0.0, 0.1), 3 / 4),
    "modularity": (1.0, 1.0, (0.5, 0.9), 1.0, 1.0, None, 1.0),
    "dcimig": (1.0, 1.0, (0.4, 0.5), 1.0, 1 - np.log(4) / 4 / LOGS, (0.0, 0.1), 1 - np.log(2) / LOGS),
    "jemmig": (1.0, 1.0, (0.4, 0.8), (0.5, 0.8), (0.8, 0.95), (0.0, 0.2), (0.8, 0.95)),
    "irs": (1.0, 1.0, (0.4, 0.8), 1.0, 1.0, (0.0, 0.4), 1.0),
    "mcc": (1.0, 1.0, (2 * np.sqrt(0.5) + 1) / 3, 1.0, (0.8, 0.95), (0.0, 0.2), (2 / np.sqrt(5) + 2) / 3),
    "infomec.modularity": (1.0, 1.0, 0.5, 1.0, 1.0, None, 1.0),
    "infomec.compactness": (1.0, 1.0, 0.5, 0.4, 7 / 9, None, 7 / 9),
    "infomec.explicitness": ((0.9, 1.0), (0.9, 1.0), (0.9, 1.0), (0.9, 1.0), (0.9, 1.0), (0.0, 0.1), (0.9, 1.0)),
    "factor_vae": (1.0, 1.0, (0.5, 0.9), 1.0, 1.0, (0.2, 0.5), 1.0),
    "beta_vae": (1.0, 1.0, (0.5, 0.9), 1.0, 1.0, (0.2, 0.5), 1.0),
    "dci.disentanglement": (1.0, 1.0, (0.4, 0.8), 1.0, 1.0, (0.0, 0.1), 1.0),
    "dci.completeness": (1.0, 1.0, (0.4, 0.8), (0.5, 0.75), (0.75, 0.9), (0.0, 0.1), (0.75, 0.9)),
    "dci.informativeness": (1.0, 1.0, (0.9, 1.0), 1.0, 1.0, (0.1, 0.4), 1.0),
    "sap": ((0.25, 0.6), (0.25, 0.6), (0.0, 0.25), 0.0, (0.15, 0.6), (0.0, 0.1), (0.15, 0.6)),
    "explicitness": (1.0, 1.0, (0.98, 1.0), 1.0, (0.98, 1.0), (0.4, 0.6), (0.98, 1.0)),
    "mig_posterior": ((0.98, 1.0), (0.98, 1.0), (0.2, 0.4), (0.0, 0.02), (0.6, 0.7), (0.0, 0.1), (0.6, 0.7)),
    "group_mig": (1.0, -1 / 3, 1 / 3, 0.0, -2 / 3, (-0.1, 0.1), -2 / 3),
    "kl_decomposition.index_code_mi": (np.log(60), np.log(60), None, np.log(60), np.log(60), None, np.log(60)),
    "kl_decomposition.total_correlation": (0.0, 0.0, None, np.log(60), np.log(2), None, 0.0),
    "gaussian_total_correlation": (0.0, 0.0, 0.0, -1.5 * np.log(2e-12), 0.0, (0.0, 0.02), 0.0),
    "active_dimensions": (3.0, 3.0, 3.0, 6.0, 4.0, 3.0, 4.0),
}


@pytest.mark.parametrize("case", CODES)
@pytest.mark.parametrize("name", sorted({score.partition(".")[0] for score in ANSWERS} & set(METRICS)))
def test_known_answers(name, case):
    found = call(name, CODES[case], FACTORS)
    for score, value in found.items():
        expected = ANSWERS[score][list(CODES).index(case)] if score in ANSWERS else None
        if isinstance(expected, tuple):
            assert expected[0] <= value <= expected[1], score
        elif expected is not None:
            tolerance = 0.02 if METRICS[name].needs == ("posterior",) else 1e-4  # samples
            assert value == pytest.approx(expected, abs=tolerance), score


# --- edge cases ------------------------------------------------------------------------------------------------------

LONELY = FACTORS.copy()
LONELY[0, 0] = 99
MISSING = FACTORS.astype(float)
MISSING[::5, 0], MISSING[::7, 2] = np.nan, np.nan
ABSENT = np.column_stack([FACTORS.astype(float), np.full(len(FACTORS), np.nan)])
MEASURED = np.random.default_rng(3).uniform(size=(300, 2))
INCOMPLETE = np.flatnonzero((FACTORS[:, 0] != FACTORS[:, 2]) & (FACTORS.sum(axis=1) < 7))
EDGES = {
    "a dead code": (np.column_stack([NOISY, np.full(len(NOISY), 0.1)]), FACTORS),
    "all codes dead": (np.full_like(NOISY, -1.3), FACTORS),
    "a factor with one value": (NOISY, np.column_stack([FACTORS, np.full(len(FACTORS), 7)])),
    "a factor value seen once": (NOISY, LONELY),
    "fewer rows than bins": (NOISY[:480:40], FACTORS[:480:40]),
    "K = 1": (NOISY, FACTORS[:, :1]),
    "D = 1": (NOISY[:, :1], FACTORS),
    "D = 1, K = 1": (NOISY[:, :1], FACTORS[:, :1]),
    "D < K": (NOISY[:, :2], FACTORS),
    "N = 50": (NOISY[::10][:50], FACTORS[::10][:50]),
    "integer codes": (FACTORS[:, ::-1].astype(np.int16), FACTORS),
    "boolean codes and factors": (FACTORS > 1, FACTORS > 1),
    "duplicated codes": (np.hstack([NOISY, NOISY]), FACTORS),
    "an incomplete grid": (NOISY[INCOMPLETE], FACTORS[INCOMPLETE]),
    "missing factor values": (NOISY, MISSING),
    "a factor without values": (NOISY, ABSENT),
    "continuous factors": (MEASURED + 0.01, MEASURED),
    "huge codes": (NOISY * 1e30, FACTORS),
    "tiny codes": (NOISY * 1e-30, FACTORS),
    "a code at the float spacing": (np.column_stack([NOISY, np.nextafter(1e8, 2e8 * FACTORS[:, 0])]), FACTORS),
}


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("case", EDGES)
def test_edge_cases_have_a_result(name, case):
    assert in_range(name, call(name, *EDGES[case]))


@pytest.mark.parametrize("name", METRICS)
def test_factors_may_be_floats(name):
    integers, floats = call(name, NOISY, FACTORS), call(name, NOISY, FACTORS.astype(np.float32))
    assert floats == integers


UNGROUPED = [n for n, m in METRICS.items() if "permutation" in m.invariant and "groups" not in m.needs]


@pytest.mark.parametrize("name", UNGROUPED)
def test_a_factor_with_one_value_is_ignored(name):
    more = call(name, NOISY, np.column_stack([FACTORS, np.full(len(FACTORS), 7)]))
    assert more == pytest.approx(call(name, NOISY, FACTORS), abs=0.06 if METRICS[name].random else 1e-9)


BAD_CODES = {
    "NaN": ([[np.nan], [1.0]], [[0], [1]]),
    "infinity": ([[np.inf], [1.0]], [[0], [1]]),
    "one axis": ([0.0, 1.0], [[0], [1]]),
    "no rows": (np.zeros((0, 2)), np.zeros((0, 2))),
}
BAD_FACTORS = {
    "infinity": ([[0.0], [1.0]], [[0], [np.inf]]),
    "other rows": ([[0.0], [1.0]], [[0], [1], [2]]),
    "constant": ([[0.0], [1.0]], [[4], [4]]),
    "one row": ([[0.0]], [[4]]),
    "all missing": ([[0.0], [1.0]], [[np.nan], [np.nan]]),
}


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("case", BAD_CODES)
def test_invalid_codes(name, case):
    with raises("mean" if "posterior" in METRICS[name].needs else "codes"):
        call(name, *BAD_CODES[case])


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.factors])
@pytest.mark.parametrize("case", BAD_FACTORS)
def test_invalid_factors(name, case):
    with raises("factors"):
        call(name, *BAD_FACTORS[case])


LARGE = [name for name, metric in METRICS.items() if "posterior" not in metric.needs]  # those are slow


@functools.cache
def a_million():
    rng = np.random.default_rng(0)
    factors = rng.integers([3, 6], size=(1_000_000, 2), dtype=np.int8)
    return factors + rng.standard_normal(factors.shape, dtype=np.float32), factors


@pytest.mark.parametrize("name", LARGE)
def test_a_million_rows(name):
    assert in_range(name, call(name, *a_million()))


def test_edge_cases():
    assert varying_factors(read_table(*EDGES["a factor without values"])) == [0, 1, 2]
    assert read_table(*EDGES["continuous factors"]).factor_types == ("continuous", "continuous")
    assert len(EDGES["fewer rows than bins"][0]) == 12 and len(INCOMPLETE) > 100
