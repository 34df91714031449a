"""The scores of a study: one row per run in scores.csv, to which several processes may add rows at the same time."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd

from unweave.data.callspec import call_text, parse_call
from unweave.data.published import FILES
from unweave.errors import UserError, UserNotice, invalid
from unweave.evaluation.compare import score_runs
from unweave.evaluation.run_table import Unscored, unscored_notice
from unweave.model import Diverged, TrainedModel
from unweave.runs import write_atomic
from unweave.runs.lock import lock
from unweave.studies.study import RunSpec, Study
from unweave.studies.table import check_settings, read_scores

RunResult = TrainedModel | Diverged | Unscored | None  # None: not trained within the time limit
_OWN_COLUMNS = ("method", "data", "supervision", "seed", "steps", "batch", "precision")  # columns of their own


def stored_scores(study: Study, root: Path, label: str) -> pd.DataFrame | None:
    """Return the table in a folder, which must be of this scale; None if there is none yet."""
    frame = read_scores(study, [root]) if (root / "scores.csv").is_file() else None
    if frame is not None and (other := frame["scale"].iloc[0]) != label:
        raise invalid("scale", label, other, context=f"out '{root}' has runs of another scale")
    return frame


@contextmanager
def scores_lock(root: Path) -> Iterator[None]:
    """Let no other process change the tables in a folder during the block."""
    root.mkdir(parents=True, exist_ok=True)
    with lock(root / ".scores.csv.lock"):
        yield


def store_scores(study: Study, root: Path, scored: pd.DataFrame, order: Sequence[str]) -> None:
    """Add rows to scores.csv, to which other processes may have added theirs; rows of the same runs are replaced.

    Rows of other runs come first, then those of the runs in `order`.
    """
    with scores_lock(root):
        before = stored_scores(study, root, str(scored["scale"].iloc[0]))
        if before is not None:
            scored = pd.concat([before[~before["run"].isin(scored["run"])], scored], ignore_index=True)
        check_settings(scored, str(root))
        ranks = {name: rank for rank, name in enumerate(order)}
        frame = scored.sort_values("run", key=lambda names: names.map(ranks).fillna(-1), kind="stable")
        write_atomic(root / "scores.csv", frame.to_csv(index=False).encode())


def score_study(
    study: Study, scale: str, runs: Sequence[RunSpec], done: Sequence[RunResult], *, label: str, device: str
) -> pd.DataFrame:
    """Return a table with a row per trained run: its row in the study, settings, training time and scores."""
    kept = [(run, result) for run, result in zip(runs, done, strict=True) if result is not None]
    for _, result in kept:
        if isinstance(result, TrainedModel):  # runs that were finished before are on the CPU
            result.method.to(device)
            result.data.to(device)
    frame = score_runs([result for _, result in kept], metrics=study.metrics(scale), device=device, stored=True)
    rows = []
    for (run, result), (_, scored) in zip(kept, frame.iterrows(), strict=True):
        row = {"study": study.name, "scale": label, **_run_columns(study, run, result)}
        row |= {name: scored[name] for name in ("diverged", "not_scored", *frame.attrs["scores"])}
        if study.extra and isinstance(result, TrainedModel) and not row["not_scored"]:
            row |= _extra_scores(study.extra, result)
        rows.append(row)
    return pd.DataFrame(rows)


def _extra_scores(extra: Callable[[TrainedModel], Mapping[str, float]], run: TrainedModel) -> Mapping[str, Any]:
    """Return the scores that only this study has, or the reason why they cannot be computed."""
    try:
        return extra(run)
    except UserError as error:
        warnings.warn(unscored_notice(run.folder.path, str(error)), UserNotice, stacklevel=2)
        return {"not_scored": str(error)}


def _run_columns(study: Study, run: RunSpec, result: TrainedModel | Diverged | Unscored) -> dict[str, Any]:
    row, config = study.row(run), result.config
    columns = {name: run.get(name, getattr(config, name, None)) for name in _OWN_COLUMNS}
    left = {n: v for n, v in run.items() if n not in (*_OWN_COLUMNS, "device", "log_every")}
    took: dict[str, Any] = {"seconds": math.nan, "models": math.nan, "device": config.device}
    with suppress(UserError):  # time.json is damaged
        took |= result.folder.training_time
    return {
        "family": row.family,
        "row": row.name,
        "run": result.folder.path.name,
        **columns,
        "data": _without_path(run["data"]),
        "data_digest": config.data_digest,
        "settings": " ".join(f"{name}={value}" for name, value in left.items()),
        "fleet_seconds": took["seconds"],
        "models": took["models"],
        "seconds_per_model": round(took["seconds"] / took["models"], 4),
        "device": took["device"],
    }


def _without_path(data: str) -> str:
    """Return the data set without the path of its files: the same text on every machine."""
    name, options = parse_call(data)
    return call_text(name, {n: v for n, v in options.items() if n != "path"}) if name in FILES else data
