"""Scores of a study, from one machine or several, beside the published numbers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from unweave.errors import invalid
from unweave.studies.study import SCALES, Published, Study

COLUMNS = ("study", "scale", "family", "row", "run", "method", "data", "seed", "steps", "diverged")
SETTINGS = ("data", "data_digest", "supervision", "steps", "batch", "precision", "settings")  # equal in a row
TIMES = ("fleet_seconds", "models", "seconds_per_model")


def read_scores(study: Study, paths: Sequence[str | Path]) -> pd.DataFrame:
    """Return the rows of several scores.csv, given as files or as their folders; each run counts once.

    Raise for runs of several scales, or if a run has two different scores.
    """
    filled = [frame.assign(_from=str(path)) for path in paths if len(frame := _read(study, Path(path)))]
    if not filled:
        raise invalid("scores", str(paths[0]), "a table with runs")
    joined = pd.concat(filled, ignore_index=True)
    scales = list(dict.fromkeys(joined["scale"]))
    if len(scales) > 1:
        first, other = (joined.loc[joined["scale"] == scale, "_from"].iloc[0] for scale in scales[:2])
        hint = f"'{first}' is of scale '{scales[0]}' and '{other}' of '{scales[1]}'"
        raise invalid("scores", other, "files of one scale", hint=hint)
    numeric = [n for n in joined.columns if pd.api.types.is_numeric_dtype(joined[n]) and n not in TIMES]
    for run, same in joined.groupby("run"):
        first = same[numeric].iloc[0]
        if any(not np.allclose(row, first, equal_nan=True) for _, row in same[numeric].iterrows()):
            files = " and ".join(f"'{name}'" for name in dict.fromkeys(same["_from"]))
            raise invalid("scores", files, "files that agree", hint=f"run '{run}' has different scores in them")
    check_settings(joined, " and ".join(map(str, paths)))
    return joined.drop_duplicates("run", ignore_index=True).drop(columns="_from")


def check_settings(frame: pd.DataFrame, source: str) -> None:
    """Raise if the runs of one row differ in more than the seed, so that they may not be summarized together."""
    for row, runs in frame.groupby("row"):
        for name in (name for name in SETTINGS if name in runs):
            known = runs.loc[runs[name].notna() & (runs[name].astype(str) != ""), name].astype(str)
            kinds = known.str.endswith("-sampled")  # a digest of a sample is not comparable with one of all images
            for values in (known[kinds], known[~kinds]):
                if values.nunique() > 1:
                    first, other = values.drop_duplicates().index[:2]
                    hint = f"'{runs['run'][first]}' has {values[first]} and '{runs['run'][other]}' has {values[other]}"
                    accepted = f"runs of row '{row}' with the same {name}"
                    raise invalid("scores", source, accepted, hint=hint)


def _read(study: Study, path: Path) -> pd.DataFrame:
    file = path / "scores.csv" if path.is_dir() else path
    try:
        frame = pd.read_csv(file)
    except FileNotFoundError:
        raise invalid("scores", str(path), "a scores.csv, or a folder with one") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise invalid("scores", str(file), "a table", hint=str(error).splitlines()[0]) from None
    if missing := [name for name in COLUMNS if name not in frame.columns]:
        hint = f"it has no column '{missing[0]}'"
        raise invalid("scores", str(file), "a file that `unweave study run` wrote", hint=hint)
    if len(frame) and set(frame["study"]) != {study.name}:
        raise invalid("study", study.name, frame["study"].iloc[0], context=f"scores '{file}' is of another study")
    return frame


class TableRow(NamedTuple):
    """The runs of one row of the table."""

    name: str
    family: str
    pooled: bool  # over several settings of the family
    runs: pd.DataFrame
    names: tuple[str, ...]  # names under which published numbers refer to it

    def values(self, score: str) -> np.ndarray:
        """Return the scores of the runs that did not diverge."""
        if score not in self.runs:
            return np.zeros(0)
        found = self.runs.loc[self.runs["diverged"].isna(), score].astype(float)
        return found[np.isfinite(found)].to_numpy()


def table_rows(study: Study, frame: pd.DataFrame) -> list[TableRow]:
    """Return the rows in the order of the study: each family with several settings, and each setting."""
    rows = [study.row(run) for scale in reversed(SCALES) for run in study.runs(scale)]
    order = {name: i for i, name in enumerate(dict.fromkeys(n for row in rows for n in (row.family, row.name)))}
    found = []
    for family, part in sorted(frame.groupby("family"), key=lambda pair: order.get(pair[0], len(order))):
        settings = sorted(part.groupby("row"), key=lambda pair: order.get(pair[0], len(order)))
        several = len(settings) > 1
        if several:
            found.append(TableRow(family, family, True, part, (family,)))
        for name, runs in settings:
            found.append(TableRow(name, family, False, runs, (name,) if several else tuple({family, name})))
    return found


def shown_scores(study: Study, frame: pd.DataFrame) -> list[str]:
    return [score for score in study.scores if score in frame and frame[score].notna().any()]


class Comparison(NamedTuple):
    """One published number and our result."""

    published: Published
    n: int
    ours: float  # the same statistic of our runs
    low: float
    high: float
    verdict: str
    note: str = ""  # why the ratio is not defined


def compare_with_published(study: Study, found: Sequence[TableRow], scale: str) -> list[Comparison]:
    """Compare the published numbers of rows with runs, in the order of the table."""
    by_name = {name: line for line in found for name in line.names}
    compared = []
    for line in found:
        for published in study.published:
            values = line.values(published.score)
            over = by_name.get(published.ratio_to)
            if published.row not in line.names or not len(values) or (published.ratio_to and over is None):
                continue
            ours, note, ends = _statistic(published.statistic, values), "", (float(values.min()), float(values.max()))
            if over is not None:
                (ours, note), ends = _ratio(ours, over, published), (np.nan, np.nan)
            text = verdict(published, ours, scale)
            if text and isinstance(published.value, tuple) and over is None:
                low, high = published.value
                count = f"{((low <= values) & (values <= high)).sum()} of {len(values)} runs"
                text += f" ({count})" if text == "inside" else f" ({count} inside)"
            compared.append(Comparison(published, len(values), ours, *ends, text, note))
    return compared


def _statistic(name: str, values: np.ndarray) -> float:
    """Return the statistic of our runs; for a published range or single model it is their median."""
    return float(values.mean() if name == "mean" else values.max() if name == "best" else np.median(values))


def _ratio(ours: float, over: TableRow, published: Published) -> tuple[float, str]:
    """Return the ratio to the other row, or NaN and the reason if it is not meaningful."""
    others = over.values(published.score)
    if not len(others):
        return float("nan"), f"not a ratio: no score of {over.name}"
    other = _statistic(published.statistic, others)
    if ours < 0 or other <= 0:
        return float("nan"), f"not a ratio: {ours:.2g} over {other:.2g}"
    return ours / other, ""


def verdict(published: Published, ours: float, scale: str) -> str:
    """Return how our result compares; "" for runs at another scale than the paper's."""
    low, high = published.interval
    if scale != "full" or not np.isfinite(ours):
        return ""
    if not isinstance(published.value, tuple):
        return f"{ours - low:+.3f}"
    return "below" if ours < low else "above" if ours > high else "inside"


def long_table(study: Study, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with a line for each row, score and published number."""
    found, scale = table_rows(study, frame), str(frame["scale"].iloc[0])
    compared = compare_with_published(study, found, scale)
    rows = []
    for line in found:
        for score in shown_scores(study, frame):
            values = line.values(score)
            ours = {"row": line.name, "score": score, "scale": scale, "n": len(values), **_summary(values)}
            here = [item for item in compared if item.published.row in line.names and item.published.score == score]
            rows += [ours | _comparison(item) for item in here] or [ours]
    return pd.DataFrame(rows)


def _summary(values: np.ndarray) -> dict[str, float]:
    if not len(values):
        return dict.fromkeys(("median", "min", "max", "mean"), float("nan"))
    return {"median": np.median(values), "min": values.min(), "max": values.max(), "mean": values.mean()}


def _comparison(item: Comparison) -> dict[str, Any]:
    published, (low, high) = item.published, item.published.interval
    values = {"published_low": low, "published_high": high, "statistic": published.statistic}
    result = {"times": published.ratio_to, "ours": item.ours, "verdict": item.verdict, "note": item.note}
    return {**values, **result, "provenance": published.provenance, "source": published.source}
