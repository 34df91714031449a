"""Many metrics of one table: which of them apply, what each is handed, and how sure the scores are."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unweave.errors import UserError
from unweave.metrics.histogram_mi import bin_table
from unweave.metrics.inputs import Floats, MetricInputs, select_rows, varying_factors
from unweave.metrics.metric import Metric
from unweave.metrics.registry import METRICS
from unweave.metrics.resample import bootstrap_counts, bootstrap_interval, bootstrap_rows


class ScoringInputs(NamedTuple):
    """All there may be to score; only the table must be there."""

    table: MetricInputs
    test: MetricInputs | None = None
    logvar: Floats | None = None  # of the posteriors whose means are the codes [N, D]
    groups: tuple[Sequence[Hashable], Sequence[Hashable]] | None = None  # of the codes [D], of the factors [K]
    seed: int = 0
    device: str | None = None


class Scores(NamedTuple):
    """Numbers by name, and an interval for those that have one."""

    values: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    importance: Floats | None = None  # of each code for each factor [D, K], if a metric needed it


def choose(metrics: str | Sequence[str] | None, given: ScoringInputs) -> tuple[list[str], dict[str, str]]:
    """The names to compute, and those that "quick" or "all" leave out here with the reason.

    What is named one by one is computed, or its own error says why it cannot be.
    """
    if metrics is not None and not isinstance(metrics, str):
        for name in metrics:
            if why := _lacking(METRICS[name], given):
                raise UserError(f"metric '{name}' cannot be computed: {why}")
        return list(metrics), {}
    if metrics not in (None, "quick", "all"):
        raise UserError(f"metrics '{metrics}' is not understood; use quick, all or a list of names")
    quick = [name for name, metric in METRICS.items() if metric.quick and not _lacking(metric, given)]
    names = list(METRICS) if metrics == "all" else quick
    reasons = {name: why for name in names if (why := _lacking(METRICS[name], given) or _silent(METRICS[name], given))}
    return [name for name in names if name not in reasons], reasons


def _lacking(metric: Metric, given: ScoringInputs) -> str:
    """What the metric needs and is not there."""
    if "posterior" in metric.needs and given.logvar is None:
        return "it needs the posterior, mean and logvar"
    if "groups" in metric.needs and given.groups is None:
        return "it needs groups of codes and of factors"
    return ""


def _silent(metric: Metric, given: ScoringInputs) -> str:
    """Why the metric could be computed and would say nothing."""
    differing = _differing(given.table)
    return f"only {differing} of {metric.factors} factors that it needs vary" if differing < metric.factors else ""


def _differing(table: MetricInputs) -> int:
    try:
        return len(varying_factors(table)) if len(table.factor_types) else 0
    except UserError:
        return 0


def score(given: ScoringInputs, names: Sequence[str], *, resamples: int = 0) -> Scores:
    """Every named metric, with intervals from so many resamples of the table."""
    if resamples < 0:
        raise UserError(f"resamples {resamples} is negative; use 0 for none, or about 200")
    order = np.random.default_rng(given.seed).permutation(len(given.table.codes))
    values: dict[str, float] = {}
    importance = None
    tables: dict[int | None, ScoringInputs] = {None: given}
    for name in names:
        metric = METRICS[name]
        if metric.rows not in tables:
            tables[metric.rows] = _part(given, order[: metric.rows])
        arguments, options = _arguments(metric, tables[metric.rows]), _options(metric, given)
        if metric.with_importance is None:
            found = metric.function(*arguments, **options)
        else:
            found, importance = metric.with_importance(*arguments, **options)
        values |= flat(name, found)
    intervals = _intervals(tables, names, values, resamples) if resamples else {}
    return Scores(values, intervals, importance)


def _part(given: ScoringInputs, rows: np.ndarray) -> ScoringInputs:
    logvar = None if given.logvar is None else given.logvar[rows]
    return given._replace(table=select_rows(given.table, rows), logvar=logvar)


def _arguments(metric: Metric, given: ScoringInputs) -> list[Any]:
    if "posterior" in metric.needs:
        # Encoders give 32-bit numbers; their mixture densities need no more, and take half the time.
        return [given.table.codes.astype(np.float32), np.asarray(given.logvar, np.float32), given.table.factors]
    groups = list(given.groups or ()) if "groups" in metric.needs else []
    return [given.table.codes, given.table.factors, *groups]


def _options(metric: Metric, given: ScoringInputs) -> dict[str, Any]:
    """What of all that evaluate knows this metric takes."""
    test = None if given.test is None else (given.test.codes, given.test.factors)
    offered = {"factor_types": given.table.factor_types, "seed": given.seed, "test": test, "device": given.device}
    accepted = inspect.signature(metric.function).parameters
    return {name: value for name, value in offered.items() if name in accepted and value is not None}


def flat(name: str, result: float | Mapping[str, float]) -> dict[str, float]:
    """{"dci": {"completeness": 1.0}} is told as {"dci.completeness": 1.0}."""
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
                found |= _again(name, given, resamples)
    metrics = {name: METRICS[name.partition(".")[0]] for name in found}
    told = {name: bootstrap_interval(values[name], found[name], m.worst, m.best) for name, m in metrics.items()}
    return {name: ends for name, ends in told.items() if ends is not None}


def _again(name: str, given: ScoringInputs, resamples: int) -> dict[str, np.ndarray]:
    """A score of drawn rows, once per resample; what is random in it is drawn anew each time."""
    metric = METRICS[name]

    def once(table: MetricInputs, number: int) -> dict[str, float]:
        drawn = given._replace(table=table, seed=given.seed + 1 + number)
        return flat(name, metric.function(*_arguments(metric, drawn), **_options(metric, drawn)))

    return bootstrap_rows(given.table, once, resamples=resamples, seed=given.seed)
