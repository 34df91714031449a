"""Score many runs: models of equal form encode together, and all metrics read the stored codes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from unweave.config import read_config
from unweave.config.devices import find_device
from unweave.contract import Method
from unweave.data import Dataset
from unweave.errors import UserError, UserNotice, invalid, renamed_arguments
from unweave.evaluation.codes import (
    fingerprint,
    load_codes,
    make_encoded_dataset,
    sample_indices,
    save_codes,
    warn_if_sampled,
)
from unweave.evaluation.evaluate import check_options, evaluate
from unweave.evaluation.run_table import AnyRun, Unscored, error_text, run_table, unscored_notice
from unweave.evaluation.stored_scores import read_scores
from unweave.model import TrainedModel, load
from unweave.nn.batch_size import bytes_per_item, call_bytes
from unweave.nn.conv import conv_implementation
from unweave.runs import RunFolder, list_runs

if TYPE_CHECKING:
    import pandas as pd

_IMAGES_AT_ONCE = 16_384  # over all models together, if they fit into memory
_MIN_IMAGES = 16  # in one call; fewer models are encoded together if these do not fit


class _Posterior(nn.Module):
    """Module that maps images to means and log-variances, or to codes, and can be vmapped over its weights."""

    def __init__(self, method: Method) -> None:
        super().__init__()
        self.method = method

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        model = self.method.representation()
        return (model.require("encode")(images),) if model.posterior is None else model.posterior(images)


def encode_models(methods: Sequence[Method], data: Dataset, index_N: Tensor) -> list[tuple[Tensor, Tensor | None]]:
    """Return codes [N, Z] and log-variances (None without a posterior) of the same observations for every model."""
    modules = [_Posterior(method) for method in methods]
    with torch.no_grad(), conv_implementation("fleet"):
        budget = call_bytes(index_N.device) // bytes_per_item(modules[0], data.shape, index_N.device)
        size = max(1, budget // _MIN_IMAGES)  # models in one call
        groups = [modules[start : start + size] for start in range(0, len(modules), size)]
        return [codes for group in groups for codes in _encode_together(group, data, index_N, budget // len(group))]


def _encode_together(
    modules: Sequence[_Posterior], data: Dataset, index_N: Tensor, num_images: int
) -> list[tuple[Tensor, Tensor | None]]:
    """Return the codes and log-variances of every module, from at most `num_images` images per call."""
    params, buffers = stack_module_state(modules)  # type: ignore[arg-type]

    def one(state: dict[str, Tensor], images: Tensor) -> tuple[Tensor, ...]:
        return functional_call(modules[0], state, (images,))

    batches = []
    for part in index_N.split(max(1, min(num_images, max(_MIN_IMAGES, _IMAGES_AT_ONCE // len(modules))))):
        batches.append([t.float().cpu() for t in vmap(one, (0, None))({**params, **buffers}, data.images(part))])
    outputs = [torch.cat(parts, dim=1) for parts in zip(*batches, strict=True)]
    return [(outputs[0][k], outputs[1][k] if len(outputs) > 1 else None) for k in range(len(modules))]


def encode_runs(runs: Sequence[TrainedModel], *, num_samples: int | None, seed: int) -> None:
    """Compute the codes of every run and store them in its folder, from which `evaluate` reads them."""
    groups: dict[str, list[TrainedModel]] = {}  # the runs with models of the same form and the same data
    for run in runs:
        groups.setdefault(f"{run.config.model_key()} {run.data.digest}", []).append(run)
    for group in groups.values():
        warn_if_sampled(group[0].data)
        with suppress(UserError, OSError):  # `evaluate` encodes these runs one by one, so that the error names a run
            _encode_group(group, num_samples, seed)


def _encode_group(group: Sequence[TrainedModel], num_samples: int | None, seed: int) -> None:
    """Encode the same observations with all models of a group that have no stored codes."""
    data = group[0].data
    digests = [fingerprint(run.method, data, seed) for run in group]
    writable = [k for k, run in enumerate(group) if run.folder.writable]
    todo = [k for k in writable if load_codes(group[k].folder, digests[k], num_samples, data) is None]
    if not todo:
        return
    index = sample_indices(data, num_samples, seed)
    for k, (codes, logvar) in zip(todo, encode_models([group[k].method for k in todo], data, index), strict=True):
        save_codes(group[k].folder, make_encoded_dataset(data, index, codes, logvar), digests[k])


@renamed_arguments(rows="num_samples")
def score_runs(
    runs: Sequence[AnyRun | str | Path],
    *,
    metrics: str | Sequence[str] | None = None,
    num_samples: int | None = 10_000,
    seed: int = 0,
    device: str = "cpu",
    stored: bool = False,
) -> pd.DataFrame:
    """Return a table with one row per run: settings that vary and scores. Its `attrs` name the settings and the scores.

    A run that cannot be scored has no scores; the column `not_scored` and a UserNotice give the reason. With
    stored=True, scores in a run's scores.json that belong to the same codes are not computed again.
    """
    if not runs:
        raise invalid("runs", list(runs), "a list of at least one run")
    check_options(metrics, num_samples, seed)
    device = find_device(device)
    opened = open_runs(runs, lambda path: load(path, device=device))
    trained = [run for run in opened if isinstance(run, TrainedModel)]
    for name in sorted({run.config.method for run in trained if not _has_encoder(run)}):
        warnings.warn(f"runs of {name} have no scores, because the method has no encoder", UserNotice, stacklevel=3)
    encoders = [run for run in opened if _has_encoder(run)]
    encode_runs(encoders, num_samples=None if num_samples is None else num_samples + num_samples // 2, seed=seed)

    def score(run: TrainedModel) -> Mapping[str, float]:
        known = _stored_scores(run, metrics, num_samples, seed) if stored else None
        if known is not None:
            return known
        return evaluate(run, metrics=metrics, num_samples=num_samples, seed=seed, device=device).scores

    rows = [_try(score, run) if _has_encoder(run) else (run, {}) for run in opened]
    for run, _ in rows:
        if isinstance(run, Unscored):
            warnings.warn(unscored_notice(run.folder.path, run.reason), UserNotice, stacklevel=3)
    return run_table(*zip(*rows, strict=True))


def _has_encoder(run: AnyRun) -> TypeGuard[TrainedModel]:
    return isinstance(run, TrainedModel) and run.representation.encode is not None


def open_runs(runs: Sequence[AnyRun | str | Path], load_run: Callable[[str | Path], TrainedModel]) -> list[AnyRun]:
    """Load the runs that are given as paths. One of several runs that cannot be loaded is `Unscored`.

    One whose configuration cannot be read is left out, with a notice.
    """
    opened: list[AnyRun] = []
    for run in runs:
        if not isinstance(run, str | Path):
            opened.append(run)
            continue
        try:
            opened.append(load_run(run) if len(runs) == 1 else _open_run(run, load_run))
        except UserError as error:
            if len(runs) == 1 or not RunFolder(run).has("config.json"):  # the only one, or not a run
                raise
            warnings.warn(unscored_notice(run, str(error)), UserNotice, stacklevel=4)
    if not opened:
        raise invalid("run", str(runs[0]), "a run folder whose config.json can be read")
    return opened


def _open_run(path: str | Path, load_run: Callable[[str | Path], TrainedModel]) -> TrainedModel | Unscored:
    folder = RunFolder.open(path)
    config = read_config(folder)
    try:
        return load_run(path)
    except (UserError, OSError) as error:
        return Unscored(folder, config, error_text(error))


def _try(score: Callable[[TrainedModel], Mapping[str, float]], run: TrainedModel) -> tuple[AnyRun, Mapping[str, float]]:
    """Return the run with its scores, or as one that cannot be scored."""
    try:
        return run, score(run)
    except (UserError, OSError) as error:
        return Unscored(run.folder, run.config, error_text(error)), {}


def _stored_scores(
    run: TrainedModel, metrics: str | Sequence[str] | None, num_samples: int | None, seed: int
) -> dict[str, float] | None:
    """Return the stored scores of these metrics if all are stored and belong to the current codes."""
    stored = read_scores(run.folder)
    if metrics is None or isinstance(metrics, str) or not stored:
        return None
    try:
        scores = stored["scores"].items()
        chosen = {name: float(value) for name, value in scores if name.partition(".")[0] in metrics and isfinite(value)}
        same = stored["seed"] == seed and stored["rows"] in (num_samples, run.data.size)
        same = same and set(metrics) <= {name.partition(".")[0] for name in chosen}
        return chosen if same and stored["codes"] == fingerprint(run.method, run.data, seed) else None
    except (UserError, KeyError, AttributeError, TypeError, ValueError):
        return None  # written by another version: compute again


def find_runs(paths: Sequence[str | Path]) -> list[Path]:
    """Return the run folders among these paths, or directly below them."""
    found: list[Path] = []
    for path in map(Path, paths):
        inside = [path] if (path / "config.json").is_file() else [run.path for run in list_runs(path)]
        if not inside:
            raise invalid("run", str(path), "a run folder, or a folder that contains run folders")
        found += inside
    return found
