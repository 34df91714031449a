"""A run or a Representation, times data, times metrics: scores. Observations are encoded once for all metrics."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.contract import Representation
from unweave.data import Dataset, load_data
from unweave.errors import UserError, check_choice
from unweave.evaluation.codes import EncodedDataset, encode_dataset, encode_run, sample_codes
from unweave.metrics.histogram_mi import entropies, mutual_information_matrix
from unweave.metrics.inputs import FactorTypes, MetricInputs, read_table, select_rows
from unweave.metrics.npz import NpzArrays, read_npz
from unweave.metrics.registry import METRICS
from unweave.metrics.runner import ScoringInputs, choose, score
from unweave.model import TrainedModel, load
from unweave.ops.divergence import kl_standard, kl_to_mean
from unweave.runs import RunFolder

SHUFFLES = 3  # by which it is known what chance alone counts
MIG_ROWS = 10_000  # histogram estimates of information depend on the number of rows: the field's number
ACTIVE_THRESHOLD = 0.01  # nats under which a latent carries nothing


class Evaluation(NamedTuple):
    """Scores of one model, and the tables behind them."""

    scores: dict[str, float]
    factor_names: tuple[str, ...]
    information: np.ndarray  # mutual information in nats [Z, K]
    entropies: np.ndarray  # of the factors, in nats [K]
    kl: np.ndarray  # mean KL of each latent to the prior in nats [Z]; nan without a posterior
    rows: int
    seed: int
    intervals: dict[str, tuple[float, float]] = {}  # 95 %, of the scores that have one
    skipped: dict[str, str] = {}  # metrics that were asked for by "all" and why they do not apply
    importance: np.ndarray | None = None  # of each code in predicting each factor, if DCI was computed [Z, K]
    codes: str = ""  # fingerprint of the codes: model, data and which observations
    carried: np.ndarray | None = None  # nats of each latent about an observation [Z]; left out, its KL
    known: np.ndarray | None = None  # of how many of the observations behind `information` each factor is known [K]
    chance: np.ndarray | None = None  # nats of `information` that counting would find if there were none [Z, K]
    luck: np.ndarray | None = None  # how far above `chance` a latent comes by luck, the luckiest of all tried [K]

    @property
    def latent_information(self) -> np.ndarray:
        """How much each latent carries about an observation [Z]; nan without a posterior."""
        return self.kl if self.carried is None else self.carried

    @property
    def active(self) -> np.ndarray:
        """Which latents carry anything [Z]."""
        return ~(self.latent_information < ACTIVE_THRESHOLD)

    def as_json(self) -> dict[str, Any]:
        tables = {name: getattr(self, name).tolist() for name in ("information", "entropies")}
        for name in ("importance", "known", "chance", "luck"):
            values = getattr(self, name)
            tables[name] = None if values is None else values.tolist()
        for name in ("kl", "carried"):
            values = getattr(self, name)
            found = None if values is None else [None if np.isnan(value) else float(value) for value in values]
            tables[name] = found
        return {**self._asdict(), "factor_names": list(self.factor_names), **tables}


def evaluate(
    what: str | Path | TrainedModel | Representation,
    data: str | Dataset | None = None,
    *,
    metrics: str | Sequence[str] | None = None,
    num_samples: int | None = 10_000,
    seed: int = 0,
    device: str = "cpu",
    save: bool = True,
    resamples: int = 0,
    groups: tuple[Sequence[Hashable], Sequence[Hashable]] | None = None,
    codes: str = "mean",
) -> Evaluation:
    """Scores of a run, a trained model, or any Representation (then `data` says on what).

    `metrics` are names, "all", or None for the quick ones; `resamples` is how often the table is drawn again for
    the intervals, 0 for none; `groups` are a label per code and a label per factor, for group-MIG: left out, they are
    the content and the style of a run that was told of them. `codes` are the posteriors' means, or with "sampled" a
    draw from each, whose scores are not kept in the run's folder.
    """
    names = _named(metrics)
    check_choice("codes", codes, ("mean", "sampled"))
    if isinstance(what, str | Path):
        what = load(what, device=device)
    if num_samples is not None and num_samples < 2:
        raise UserError(f"rows {num_samples} is too small; use 2 or more, or all")
    if data is None and not isinstance(what, TrainedModel):
        raise UserError("data is missing; a Representation needs data to be evaluated on, such as data='sprites'")
    dataset = load_data(data) if data is not None else what.data  # type: ignore[union-attr]
    # What fits a predictor is tested on rows of its own, half as many again, as the field does it.
    more = num_samples // 2 if num_samples is not None and any(METRICS[name].split for name in names) else 0
    wanted = None if num_samples is None else num_samples + more
    mark = ""
    if isinstance(what, TrainedModel):
        groups = groups or content_and_style(what, dataset)
        table, mark = encode_run(what.folder, what.method, dataset, num_samples=wanted, seed=seed, save=save)
    else:
        table = encode_dataset(what, dataset, num_samples=wanted, seed=seed)
    if codes == "sampled":
        table, mark = sample_codes(table, seed), f"{mark} sampled".strip()
    given = _given(table, dataset, num_samples if more else None, seed)._replace(
        groups=groups, device=_metric_device(device)
    )
    result = score_table(given, metrics, dataset.factor_names, resamples)._replace(codes=mark)
    if isinstance(what, TrainedModel) and save and codes == "mean":
        what.folder.write_json("scores.json", _with_earlier(what.folder, result))
    return result


def content_and_style(run: TrainedModel, data: Dataset) -> tuple[list[str], list[str | None]] | None:
    """Which codes and which factors are content and which style (None: neither); None if that is not told of both."""
    parts, supervision, names = run.representation.parts, run.supervision, run.data.factor_names
    shared = {names[k] for k in supervision.shared}
    if not shared or not shared <= set(data.factor_names) or not {"content", "style"} <= {part.name for part in parts}:
        return None
    codes = [part.name for part in parts for _ in range(part.size)]
    style = set(data.factor_names) if supervision.style is None else {names[k] for k in supervision.style}
    return codes, ["content" if name in shared else "style" if name in style else None for name in data.factor_names]


def _named(metrics: str | Sequence[str] | None) -> list[str]:
    """Every metric that may be computed."""
    if metrics is None or isinstance(metrics, str):
        return [name for name, metric in METRICS.items() if metrics == "all" or metric.quick]
    for name in metrics:
        check_choice("metric", name, METRICS)
    return list(metrics)


def _metric_device(device: str) -> str | None:
    return device if device.startswith("cuda") else None


def _given(table: EncodedDataset, data: Dataset, rows: int | None, seed: int) -> ScoringInputs:
    """The first `rows` to score and the rest to test on; with None, or if that is all there are, all to score."""
    everything = MetricInputs(table.codes.astype(np.float64), table.factors.astype(np.float64), data.factor_types)
    logvar = table.logvar
    if rows is None or rows >= len(table.codes) or len(table.codes) == data.size:
        return ScoringInputs(everything, logvar=logvar, seed=seed)
    order = np.arange(len(table.codes))
    first, rest = select_rows(everything, order[:rows]), select_rows(everything, order[rows:])
    return ScoringInputs(first, rest, None if logvar is None else logvar[:rows], seed=seed)


def _with_earlier(folder: RunFolder, result: Evaluation) -> dict[str, Any]:
    """The scores, beside those that were computed before of the very same codes."""
    told = result.as_json()
    try:
        earlier = folder.read_json("scores.json") if (folder.path / "scores.json").is_file() else {}
        if all(earlier.get(name) == told[name] for name in ("codes", "rows", "seed")):
            for name in ("scores", "intervals"):
                told[name] = {**earlier[name], **told[name]}
            told["importance"] = told["importance"] or earlier["importance"]
    except (UserError, KeyError, AttributeError, TypeError):
        pass  # scores of another version, or damaged: written anew
    return told


def evaluate_arrays(
    codes: Any,
    factors: Any,
    *,
    names: Sequence[str] | None = None,
    test: tuple[Any, Any] | None = None,
    logvar: Any = None,
    factor_types: FactorTypes = None,
    groups: tuple[Sequence[Hashable], Sequence[Hashable]] | None = None,
    metrics: str | Sequence[str] | None = None,
    resamples: int = 0,
    seed: int = 0,
    device: str = "cpu",
) -> Evaluation:
    """Scores of codes [N, D] and factors [N, K] from anywhere; `logvar` makes the codes means of posteriors."""
    _named(metrics)
    table = read_table(codes, factors, factor_types=factor_types)
    told = tuple(names) if names is not None else tuple(f"factor {k}" for k in range(len(table.factor_types)))
    if len(told) != len(table.factor_types):
        raise UserError(
            f"names: has {len(told)} entries; accepted is one for each of the {len(table.factor_types)} factors"
        )
    held_out = None if test is None else read_table(*test, factor_types=table.factor_types)
    spread = None if logvar is None else _like(table.codes, logvar)
    given = ScoringInputs(table, held_out, spread, groups, seed, _metric_device(device))
    return score_table(given, metrics, told, resamples)


def evaluate_npz(path: str | Path, **options: Any) -> Evaluation:
    """Scores of an .npz, with the options of `evaluate_arrays`."""
    found = read_npz(path)
    options = {"names": found.names, "test": found.test, "logvar": found.logvar, **options}
    return evaluate_arrays(found.codes, found.factors, **options)


def _like(codes: np.ndarray, logvar: Any) -> np.ndarray:
    spread = np.asarray(logvar.detach().cpu() if isinstance(logvar, Tensor) else logvar, dtype=np.float64)
    if spread.shape != codes.shape:
        raise UserError(f"logvar: has shape {spread.shape}; accepted is that of codes, {codes.shape}")
    return spread


def score_table(
    given: ScoringInputs, metrics: str | Sequence[str] | None, factor_names: tuple[str, ...], resamples: int
) -> Evaluation:
    """Every metric that is asked for and applies, and the tables behind them."""
    chosen, skipped = choose(metrics, given)
    found = score(given, chosen, resamples=resamples)
    order = np.random.default_rng(given.seed).permutation(len(given.table.codes))[:MIG_ROWS]
    part = select_rows(given.table, order)
    information = chance = np.zeros((part.codes.shape[1], 0))
    entropy = luck = np.zeros(0)
    if len(part.factor_types):
        chance, luck = _counted_by_chance(part, given.seed)
        information = mutual_information_matrix(part.codes, part.factors, factor_types=part.factor_types)
        entropy = entropies(part.factors, factor_types=part.factor_types)
    kl = carried = np.full(part.codes.shape[1], np.nan)
    if given.logvar is not None:
        mean_ND, logvar_ND = torch.as_tensor(given.table.codes), torch.as_tensor(given.logvar)
        kl, carried = kl_standard(mean_ND, logvar_ND).mean(0).numpy(), kl_to_mean(mean_ND, logvar_ND).numpy()
    rows, seed = len(given.table.codes), given.seed
    tables = Evaluation(found.values, factor_names, information, entropy, kl, rows, seed, found.intervals, skipped)
    known = (~np.isnan(np.asarray(part.factors, dtype=np.float64))).sum(0)
    return tables._replace(importance=found.importance, carried=carried, known=known, chance=chance, luck=luck)


def _counted_by_chance(part: MetricInputs, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The nats [Z, K] that counting finds where there are none, each factor's known values being shuffled: the mean.

    And by how much [K] the luckiest latent is above that.
    """
    draw, found = np.random.default_rng([seed, 2]), []
    for _ in range(SHUFFLES):
        shuffled = np.array(part.factors, dtype=np.float64)
        for column in shuffled.T:
            rows = np.flatnonzero(~np.isnan(column))
            column[rows] = column[draw.permutation(rows)]
        found.append(mutual_information_matrix(part.codes, shuffled, factor_types=part.factor_types))
    chance_ZK = np.mean(found, axis=0)
    return chance_ZK, (found - chance_ZK).max((0, 1))


__all__ = [
    "EncodedDataset",
    "Evaluation",
    "NpzArrays",
    "encode_dataset",
    "evaluate",
    "evaluate_arrays",
    "read_npz",
    "score_table",
]
