"""The table of a comparison: one row per run, with what distinguishes it from the others, and its scores.

Runs with equal entries in the column `setting` are seeds of one setting.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from unweave.config import RunConfig
from unweave.config.run_config import data_key
from unweave.data import USER_DATASETS
from unweave.data.callspec import call_text, parse_call
from unweave.data.storage.digest import is_sampled
from unweave.errors import UserError
from unweave.model import Diverged, TrainedModel
from unweave.runs import RunFolder

if TYPE_CHECKING:
    import pandas as pd

Options = dict[str, Any]


class Unscored(NamedTuple):
    """A run that cannot be scored, with the reason in words."""

    folder: RunFolder
    config: RunConfig
    reason: str


AnyRun = TrainedModel | Diverged | Unscored


def unscored_notice(path: str | Path, reason: str, what: str = "not scored") -> str:
    """Return the line about a run that cannot be scored or shown; most reasons name the run."""
    return f"{what}: {reason}" if str(path) in reason else f"{what}: run '{path}': {reason}"


def error_text(error: UserError | OSError) -> str:
    """Return the text of an error; the system's errors do not name their file."""
    if isinstance(error, OSError) and error.filename:
        return f"'{error.filename}': {error.strerror}"
    return str(error)


def run_table(runs: Sequence[AnyRun], scores: Sequence[Mapping[str, float]]) -> pd.DataFrame:
    """Return the table of these runs and scores. Its `attrs` name the settings that vary and the scores."""
    import pandas as pd

    settings = varied_settings([run.config for run in runs])
    names = list(dict.fromkeys(name for run_scores in scores for name in run_scores))
    rows = []
    for run, run_scores in zip(runs, scores, strict=True):
        flat = run.config.compared_settings()
        values = {n: run_scores.get(n, float("nan")) for n in names}
        rows.append(_identity(run) | {n: flat.get(n) for n in settings} | values)
    frame = pd.DataFrame(rows)
    sampled = any(is_sampled(run.config.data_digest) for run in runs)
    frame.attrs = {"settings": settings, "scores": names, "sampled": sampled}
    return frame


def _identity(run: AnyRun) -> dict[str, Any]:
    """Return the columns that every table has."""
    config = run.config
    return {
        "run": str(run.folder.path),
        **{name: getattr(config, name) for name in ("method", "data", "seed", "steps", "supervision")},
        "data_call": config.data_text(),
        "data_digest": config.data_digest,
        "setting": "s" + hashlib.sha256(config.setting_key().encode()).hexdigest()[:12],  # never reads as a number
        "diverged": run.step if isinstance(run, Diverged) else float("nan"),
        "not_scored": run.reason if isinstance(run, Unscored) else None,
    }


def varied_settings(configs: Sequence[RunConfig]) -> list[str]:
    """Return the names of the settings that differ between runs, apart from method, data, steps and seed."""
    flat = [config.compared_settings() for config in configs]
    names = dict.fromkeys(name for settings in flat for name in settings)
    return [name for name in names if len({json.dumps(s.get(name), default=str) for s in flat}) > 1]


# --- names of data sets ----------------------------------------------------------------------------------------------


def data_labels(calls: Sequence[str], digests: Sequence[str]) -> list[str]:
    """Return a short name for the data of each run: the name of the data set, with the options that differ.

    Runs have equal names if their `data_key` is equal.
    """
    keys, known = [], dict[str, tuple[str, str]]()
    for call, digest in zip(calls, digests, strict=True):
        keys.append(data_key(call, digest))
        known.setdefault(keys[-1], (call, digest))
    names = _call_labels([call for call, _ in known.values()])
    alike = [[digest for n, (_, digest) in zip(names, known.values(), strict=True) if n == name] for name in names]
    labels = [
        name if len(others) == 1 else ", ".join(filter(None, (name, _digest_label(digest, others))))
        for name, others, (_, digest) in zip(names, alike, known.values(), strict=True)
    ]
    if len(set(labels)) < len(known):
        labels = [", digest ".join(filter(None, pair)) for pair in known.values()]
    by_key = dict(zip(known, labels, strict=True))
    return [by_key[key] for key in keys]


def _digest_label(digest: str, others: Sequence[str]) -> str:
    """Return the beginnings of the parts in which a digest, COUNT-IMAGES-FACTORS[-sampled], differs from others."""
    if not digest:
        return "without digest"
    table = [[*other.split("-"), "", "", ""][:4] for other in others if other]
    parts = zip(("size", "images", "factors", ""), [*digest.split("-"), "", "", ""], zip(*table, strict=True))
    return ", ".join(f"{what} {part[:8]}".strip() for what, part, column in parts if len(set(column)) > 1)


def _call_labels(calls: Sequence[str]) -> list[str]:
    """Return the name of each call, with those of its options that differ between calls of this name."""
    parsed = [_parse(call) for call in calls]
    labels = []
    for name, options in parsed:
        same = [others for other, others in parsed if other == name]
        differing = {n: v for n, v in options.items() if len({repr(others.get(n)) for others in same}) > 1}
        if name in USER_DATASETS and "path" in differing:
            name = _short_path(options["path"], [others["path"] for others in same if "path" in others])
            differing = {n: value for n, value in differing.items() if n not in ("path", "factors")}
        labels.append(call_text(name, differing))
    return labels


def _parse(call: str) -> tuple[str, Options]:
    try:
        name, options = parse_call(call)
        return name, {n: value for n, value in options.items() if n != "fingerprint"}  # which only the program sets
    except UserError:  # a data set of the user's own with another kind of name
        return call, {}


def _short_path(path: Any, others: Sequence[Any]) -> str:
    """Return the end of a path, as short as it can be to differ from the other paths."""
    parts, distinct = PurePath(str(path)).parts, {PurePath(str(other)).parts for other in others}
    for count in range(1, len(parts)):
        if sum(other[-count:] == parts[-count:] for other in distinct) == 1:
            return "/".join(parts[-count:])
    return str(path)
