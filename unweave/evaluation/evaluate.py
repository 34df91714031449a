"""Scores of a run, a Representation or arrays. Observations are encoded once for all metrics."""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.config.devices import find_device
from unweave.config.run_config import MAX_SEED
from unweave.contract import Representation
from unweave.data import Dataset, load_data, parse_supervision
from unweave.data.metadata import DatasetMetadata
from unweave.errors import UserError, check_choice, check_integer, invalid, renamed_arguments
from unweave.evaluation.codes import EncodedDataset, encode_dataset, encode_run, may_store, sample_codes
from unweave.evaluation.stored_scores import read_scores, write_scores
from unweave.metrics.histogram_mi import entropies, mutual_information_matrix
from unweave.metrics.inputs import FactorTypes, MetricInputs, array_error, read_table, select_rows
from unweave.metrics.npz import read_npz
from unweave.metrics.registry import METRICS
from unweave.metrics.runner import ScoringInputs, choose, score
from unweave.model import TrainedModel, load
from unweave.ops.divergence import kl_standard, kl_to_mean
from unweave.runs import RunFolder

SHUFFLES = 3  # of the factors, to estimate the bias of mutual information
MIG_ROWS = 10_000  # rows of the table of mutual information, as in disentanglement_lib
ACTIVE_THRESHOLD = 0.01  # nats; latents with less information are inactive


class Evaluation(NamedTuple):
    """Scores of one model, and the tables they are based on."""

    scores: dict[str, float]
    factor_names: tuple[str, ...]
    information: np.ndarray  # mutual information in nats [Z, K]
    entropies: np.ndarray  # of the factors, in nats [K]
    kl: np.ndarray  # mean KL of each latent to the prior in nats [Z]; nan without a posterior
    rows: int
    seed: int
    intervals: dict[str, tuple[float, float]] = {}  # 95 % intervals of the scores that have one
    skipped: dict[str, str] = {}  # metrics that do not apply or are not finite, with the reason
    importance: np.ndarray | None = None  # of each code for predicting each factor, if DCI was computed [Z, K]
    codes: str = ""  # fingerprint of model, data and observations
    carried: np.ndarray | None = None  # information of each latent about the observation in nats [Z]; None: the KL
    known: np.ndarray | None = None  # number of known values of each factor among the rows of `information` [K]
    chance: np.ndarray | None = None  # mean `information` about shuffled factors [Z, K]
    luck: np.ndarray | None = None  # largest excess over `chance` of any latent and shuffle [K]
    data_digest: str = ""  # `Dataset.digest` of the data that were encoded; "" for arrays

    @property
    def latent_information(self) -> np.ndarray:
        """Information of each latent about the observation in nats [Z]; nan without a posterior."""
        return self.kl if self.carried is None else self.carried

    @property
    def active(self) -> np.ndarray:
        """True for each latent with information about the observation [Z]."""
        return ~(self.latent_information < ACTIVE_THRESHOLD)

    @property
    def nats(self) -> np.ndarray:
        """Earlier name of `latent_information`."""
        return self.latent_information

    @property
    def alive(self) -> np.ndarray:
        """Earlier name of `active`."""
        return self.active

    def as_json(self) -> dict[str, Any]:
        fields = self._asdict() | {"factor_names": list(self.factor_names)}
        stored = {n: value.tolist() if isinstance(value, np.ndarray) else value for n, value in fields.items()}
        for name in ("kl", "carried"):
            stored[name] = stored[name] and [None if np.isnan(value) else value for value in stored[name]]
        return stored


@renamed_arguments(rows="num_samples")
def evaluate(
    model: str | Path | TrainedModel | Representation,
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
    """Return the scores of a run, a trained model, or a Representation together with `data`.

    `metrics` are names, "all", or None for the quick ones. `resamples` is the number of bootstrap resamples for
    intervals. `groups` are labels of the codes and of the factors, for group-MIG; the default is content and style if
    the run was trained with such groups. `codes` are "mean", the posterior means, or "sampled"; scores of sampled codes
    are not stored in the run folder.
    """
    names = check_options(metrics, num_samples, seed)
    check_choice("codes", codes, ("mean", "sampled"))
    device = find_device(device)
    if isinstance(model, str | Path):
        model = load(model, device=device, with_data=data is None)
    if data is None and not isinstance(model, TrainedModel):
        message = "data is missing; pass data to evaluate a Representation on, such as data='sprites'"
        raise UserError(message, argument="data", accepted="a data set")
    dataset = load_data(data) if data is not None else model.data  # type: ignore[union-attr]
    # Metrics that fit a predictor get half as many rows in addition as test rows.
    more = num_samples // 2 if num_samples is not None and any(METRICS[name].split for name in names) else 0
    total = None if num_samples is None else num_samples + more
    digest = ""
    if isinstance(model, TrainedModel):
        save = save and may_store(model.folder)
        dataset = dataset.to(next(model.method.parameters()).device)
        groups = groups or content_and_style(model, dataset)
        table, digest = encode_run(model.folder, model.method, dataset, num_samples=total, seed=seed, save=save)
    else:
        table = encode_dataset(model, dataset, num_samples=total, seed=seed)
    if codes == "sampled":
        table, digest = sample_codes(table, seed), f"{digest} sampled".strip()
    inputs = _scoring_inputs(table, dataset, num_samples if more else None, seed)
    inputs = inputs._replace(groups=groups, device=_metric_device(device))
    result = score_table(inputs, metrics, dataset.factor_names, resamples)
    result = result._replace(codes=digest, data_digest=dataset.digest)
    if isinstance(model, TrainedModel) and save and codes == "mean":
        write_scores(model.folder, _merge_stored(model.folder, result))
    return result


def content_and_style(run: TrainedModel, data: Dataset) -> tuple[list[str], list[str | None]] | None:
    """Return the labels "content", "style" or None of codes and factors; None without such parts or groups."""
    parts = run.representation.parts
    if not {"content", "style"} <= {part.name for part in parts}:
        return None
    own = data if isinstance(run.data, DatasetMetadata) else run.data  # the data of the run if they were read
    try:
        supervision, names = parse_supervision(run.config.supervision, own), own.factor_names
    except UserError:  # other data lack the factors that were shared
        return None
    shared = {names[k] for k in supervision.shared}
    if not shared or not shared <= set(data.factor_names):
        return None
    codes = [part.name for part in parts for _ in range(part.size)]
    style = set(data.factor_names) if supervision.style is None else {names[k] for k in supervision.style}
    return codes, ["content" if name in shared else "style" if name in style else None for name in data.factor_names]


def check_options(metrics: str | Sequence[str] | None, num_samples: int | None, seed: int) -> list[str]:
    """Return the metrics that may be computed; raise for values that are invalid for every model."""
    names = _candidate_metrics(metrics)
    check_integer("seed", seed, 0, MAX_SEED)
    if num_samples is not None and num_samples < 2:
        raise invalid("num_samples", num_samples, "at least 2, or None for all")
    return names


def _candidate_metrics(metrics: str | Sequence[str] | None) -> list[str]:
    """Return the metrics that may be computed."""
    if isinstance(metrics, str) and metrics not in ("quick", "all"):
        raise invalid("metrics", metrics, "quick, all or a list of names")
    if metrics is None or isinstance(metrics, str):
        return [name for name, metric in METRICS.items() if metrics == "all" or metric.quick]
    for name in metrics:
        check_choice("metric", name, METRICS)
    return list(metrics)


def _metric_device(device: str) -> str | None:
    return device if device.startswith("cuda") else None


def _scoring_inputs(table: EncodedDataset, data: Dataset, rows: int | None, seed: int) -> ScoringInputs:
    """Return the first `rows` as the table and the others as test rows; all as the table for a whole data set."""
    everything = MetricInputs(table.codes.astype(np.float64), table.factors.astype(np.float64), data.factor_types)
    logvar = table.logvar
    if rows is None or rows >= len(table.codes) or len(table.codes) == data.size:
        return ScoringInputs(everything, logvar=logvar, seed=seed)
    order = np.arange(len(table.codes))
    first, rest = select_rows(everything, order[:rows]), select_rows(everything, order[rows:])
    return ScoringInputs(first, rest, None if logvar is None else logvar[:rows], seed=seed)


def _merge_stored(folder: RunFolder, result: Evaluation) -> dict[str, Any]:
    """Return the scores together with stored scores of the same codes."""
    merged = result.as_json()
    try:
        stored = read_scores(folder)
        if all(stored.get(name) == merged[name] for name in ("codes", "rows", "seed")):
            finite = {name: value for name, value in stored["scores"].items() if np.isfinite(value)}
            merged["scores"] = {**finite, **merged["scores"]}
            merged["intervals"] = {**stored["intervals"], **merged["intervals"]}
            merged["importance"] = merged["importance"] or stored["importance"]
    except (KeyError, AttributeError, TypeError):
        pass  # written by another version: replaced
    return merged


@renamed_arguments(kinds="factor_types")
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
    """Return the scores of codes [N, D] and factors [N, K]; with `logvar` the codes are posterior means."""
    _candidate_metrics(metrics)
    check_integer("seed", seed, 0, MAX_SEED)
    device = find_device(device)
    table = read_table(codes, factors, factor_types=factor_types)
    count = len(table.factor_types)
    factor_names = tuple(names) if names is not None else tuple(f"factor {k}" for k in range(count))
    if len(factor_names) != count:
        raise array_error("names", f"{len(factor_names)} names", f"a list of {count} names, one per factor")
    held_out = None if test is None else read_table(*test, factor_types=table.factor_types)
    if logvar is not None:
        logvar = np.asarray(logvar.detach().cpu() if isinstance(logvar, Tensor) else logvar, dtype=np.float64)
        if logvar.shape != table.codes.shape:
            accepted = f"an array like codes, of shape {table.codes.shape}"
            raise array_error("logvar", f"shape {logvar.shape}", accepted)
    inputs = ScoringInputs(table, held_out, logvar, groups, seed, _metric_device(device))
    return score_table(inputs, metrics, factor_names, resamples)


def evaluate_npz(path: str | Path, **options: Any) -> Evaluation:
    """Return the scores of an .npz file, with the options of `evaluate_arrays`."""
    arrays = read_npz(path)
    options = {"names": arrays.names, "test": arrays.test, "logvar": arrays.logvar, **options}
    return evaluate_arrays(arrays.codes, arrays.factors, **options)


def score_table(
    inputs: ScoringInputs, metrics: str | Sequence[str] | None, factor_names: tuple[str, ...], resamples: int
) -> Evaluation:
    """Compute the chosen metrics that apply, and the tables of information."""
    chosen, skipped = choose(metrics, inputs)
    results = score(inputs, chosen, resamples=resamples)
    order = np.random.default_rng(inputs.seed).permutation(len(inputs.table.codes))[:MIG_ROWS]
    part = select_rows(inputs.table, order)
    information = chance = np.zeros((part.codes.shape[1], 0))
    entropy = luck = np.zeros(0)
    if len(part.factor_types):
        chance, luck = _shuffled_information(part, inputs.seed)
        information = mutual_information_matrix(part.codes, part.factors, factor_types=part.factor_types)
        entropy = entropies(part.factors, factor_types=part.factor_types)
    kl = carried = np.full(part.codes.shape[1], np.nan)
    if inputs.logvar is not None:
        mean_ND, logvar_ND = torch.as_tensor(inputs.table.codes), torch.as_tensor(inputs.logvar)
        kl, carried = kl_standard(mean_ND, logvar_ND).mean(0).numpy(), kl_to_mean(mean_ND, logvar_ND).numpy()
    rows, seed = len(inputs.table.codes), inputs.seed
    skipped |= results.undefined
    tables = Evaluation(results.values, factor_names, information, entropy, kl, rows, seed, results.intervals, skipped)
    known = (~np.isnan(np.asarray(part.factors, dtype=np.float64))).sum(0)
    return tables._replace(importance=results.importance, carried=carried, known=known, chance=chance, luck=luck)


def _shuffled_information(part: MetricInputs, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean information about shuffled factors [Z, K] and the largest excess of any latent over it [K]."""
    rng, information = np.random.default_rng([seed, 2]), []
    for _ in range(SHUFFLES):
        shuffled = np.array(part.factors, dtype=np.float64)
        for column in shuffled.T:
            rows = np.flatnonzero(~np.isnan(column))
            column[rows] = column[rng.permutation(rows)]
        information.append(mutual_information_matrix(part.codes, shuffled, factor_types=part.factor_types))
    chance_ZK = np.mean(information, axis=0)
    return chance_ZK, (information - chance_ZK).max((0, 1))
