"""Compute several metrics on one table: choose those that apply, pass their arguments, compute intervals."""

import inspect
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unweave.errors import UserError, check_integer, invalid
from unweave.metrics.histogram_mi import bin_table
from unweave.metrics.inputs import Floats, MetricInputs, select_rows, varying_factors
from unweave.metrics.metric import Metric
from unweave.metrics.registry import METRICS
from unweave.metrics.resample import bootstrap_counts, bootstrap_interval, bootstrap_rows

MAX_RESAMPLES = 100_000


class ScoringInputs(NamedTuple):
    """Input of all metrics; everything but the table is optional."""

    table: MetricInputs
    test: MetricInputs | None = None
    logvar: Floats | None = None  # of the posteriors whose means are the codes [N, D]
    groups: tuple[Sequence[Hashable], Sequence[Hashable]] | None = None  # of the codes [D], of the factors [K]
    seed: int = 0
    device: str | None = None


class Scores(NamedTuple):
    """Scores by name, and the intervals of those that have one."""

    values: dict[str, float]  # finite
    intervals: dict[str, tuple[float, float]]
    undefined: dict[str, str]  # scores that are not a finite number, with the reason
    importance: Floats | None = None  # of each code for each factor [D, K], if a metric computed it


def choose(metrics: str | Sequence[str] | None, given: ScoringInputs) -> tuple[list[str], dict[str, str]]:
    """Return the names of the metrics to compute, and those left out by "quick" or "all" with the reason.

    A metric that is given by name is never left out: if its inputs are missing, this raises.
    """
    if metrics is not None and not isinstance(metrics, str):
        for name in metrics:
            if reason := _missing_input(METRICS[name], given):
                raise UserError(f"metric '{name}' cannot be computed: {reason}", argument="metrics", value=name)
        return list(metrics), {}
    if metrics not in (None, "quick", "all"):
        raise invalid("metrics", metrics, "quick, all or a list of names")
    quick = [name for name, metric in METRICS.items() if metric.quick and not _missing_input(metric, given)]
    names = list(METRICS) if metrics == "all" else quick
    varying, skipped = len(varying_factors(given.table, required=False)), {}
    for name in names:
        if reason := _missing_input(METRICS[name], given):
            skipped[name] = reason
        elif varying < METRICS[name].factors:  # the score would be meaningless
            skipped[name] = f"it needs {METRICS[name].factors} factors that vary, and {varying} do"
    return [name for name in names if name not in skipped], skipped


def _missing_input(metric: Metric, given: ScoringInputs) -> str:
    """Return which input of the metric is missing, or ""."""
    if "posterior" in metric.needs and given.logvar is None:
        return "it needs the posterior, mean and logvar"
    if "groups" in metric.needs and given.groups is None:
        return "it needs groups of codes and of factors"
    return ""


def score(given: ScoringInputs, names: Sequence[str], *, resamples: int = 0) -> Scores:
    """Compute the named metrics, with intervals from this number of resamples of the table.

    A score that is not a finite number is left out, so that no table or average contains it.
    """
    check_integer("resamples", resamples, 0, MAX_RESAMPLES)
    order = np.random.default_rng(given.seed).permutation(len(given.table.codes))
    values: dict[str, float] = {}
    importance = None
    tables: dict[int | None, ScoringInputs] = {None: given}
    for name in names:
        metric = METRICS[name]
        if metric.rows not in tables:
            rows, logvar = order[: metric.rows], given.logvar
            part = given._replace(table=select_rows(given.table, rows), logvar=None if logvar is None else logvar[rows])
            tables[metric.rows] = part
        arguments, options = _arguments(metric, tables[metric.rows]), _options(metric, given)
        if metric.with_importance is None:
            found = metric.function(*arguments, **options)
        else:
            found, importance = metric.with_importance(*arguments, **options)
        values |= flatten_scores(name, found)
    undefined = {name: f"it is {value} for these codes" for name, value in values.items() if not np.isfinite(value)}
    values = {name: value for name, value in values.items() if name not in undefined}
    intervals = _intervals(tables, names, values, resamples) if resamples else {}
    return Scores(values, intervals, undefined, importance)


def _arguments(metric: Metric, given: ScoringInputs) -> list[Any]:
    if "posterior" in metric.needs:
        # Encoders return float32, which is enough for mixture densities and takes half the time.
        return [given.table.codes.astype(np.float32), np.asarray(given.logvar, np.float32), given.table.factors]
    groups = list(given.groups or ()) if "groups" in metric.needs else []
    return [given.table.codes, given.table.factors, *groups]


def _options(metric: Metric, given: ScoringInputs) -> dict[str, Any]:
    """Return the options that the function of the metric accepts."""
    test = None if given.test is None else (given.test.codes, given.test.factors)
    offered = {"factor_types": given.table.factor_types, "seed": given.seed, "test": test, "device": given.device}
    accepted = inspect.signature(metric.function).parameters
    return {name: value for name, value in offered.items() if name in accepted and value is not None}


def flatten_scores(name: str, result: float | Mapping[str, float]) -> dict[str, float]:
    """Return scores by name: parts of a metric are named "dci.completeness"."""
    if isinstance(result, Mapping):
        return {f"{name}.{part}": float(value) for part, value in result.items()}
    return {name: float(result)}


def _intervals(
    tables: Mapping[int | None, ScoringInputs], names: Sequence[str], values: Mapping[str, float], resamples: int
) -> dict[str, tuple[float, float]]:
    found: dict[str, np.ndarray] = {}
    for rows, given in tables.items():
        here = [name for name in names if METRICS[name].rows == rows]
        counted = {name: of for name in here if (of := METRICS[name].from_information) is not None}
        if counted:
            binned = bin_table(given.table)
            found |= bootstrap_counts(binned, counted, resamples=resamples, seed=given.seed)
        for name in here:
            if METRICS[name].bootstrap:
                found |= _resampled(name, given, resamples)
    metrics = {name: METRICS[name.partition(".")[0]] for name in found if name in values}
    intervals = {name: bootstrap_interval(values[name], found[name], m.worst, m.best) for name, m in metrics.items()}
    return {name: ends for name, ends in intervals.items() if ends is not None}


def _resampled(name: str, given: ScoringInputs, resamples: int) -> dict[str, np.ndarray]:
    """Return the scores of a metric on each resample, each with a seed of its own."""
    metric = METRICS[name]

    def score_resample(table: MetricInputs, resample: int) -> dict[str, float]:
        drawn = given._replace(table=table, seed=given.seed + 1 + resample)
        return flatten_scores(name, metric.function(*_arguments(metric, drawn), **_options(metric, drawn)))

    return bootstrap_rows(given.table, score_resample, resamples=resamples, seed=given.seed)
