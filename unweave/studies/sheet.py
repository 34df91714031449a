"""The tables of a study as text, and its scores as points beside the published numbers."""

import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from unweave.studies.study import PROVENANCE, Published, Study
from unweave.studies.table import Comparison, TableRow, compare_with_published, shown_scores, table_rows

TIME = "s/model"  # seconds of the device per model
COLOURS = (0, 2, 3, 4, 5, 6, 7)  # of the families; 1 is that of published numbers
Points = list[tuple[float, str]]
Strip = tuple[str, bool, int, Points, float, list[tuple[float, float, str]]]


def text_tables(study: Study, frame: pd.DataFrame, title: Callable[[str], str]) -> dict[str, Any]:
    """Return the text of a study's tables and the facts around them; `title` gives the heading of a score."""
    found, scores, scale = table_rows(study, frame), shown_scores(study, frame), str(frame["scale"].iloc[0])
    compared = compare_with_published(study, found, scale)
    sources = list(dict.fromkeys(item.published.source for item in compared))
    devices = [str(v) for name in ("device", "precision") if name in frame for v in frame[name].dropna().unique()]
    steps = " or ".join(f"{count:,}" for count in sorted(set(frame["steps"])))
    return {
        "title": study.name,
        "paper": study.paper,
        "question": study.question,
        "facts": [f"scale {scale}", f"{len(frame)} runs", f"{steps} steps", *devices],
        "notes": _notes(study, scale, len(study.published) - len(compared)),
        "legend": list(PROVENANCE.items()),
        "headers": ["row", "runs", TIME, *map(title, scores)],
        "rows": [(row.pooled, _cells(row, scores)) for row in found],
        "comparison_headers": ["row", "score", "runs", "ours", "published", "verdict", "provenance", "source"],
        "comparison": [_comparison_cells(item, title(item.published.score), sources) for item in compared],
        "sources": sources,
    }


def _notes(study: Study, scale: str, missing: int) -> list[str]:
    notes = [note[0].upper() + note[1:] + "." for note in study.notes]
    if scale != "full":
        notes.insert(0, f"Scale {scale}: smaller than the paper's setting, so no verdict on the published numbers.")
    if missing:
        notes.append(f"{missing} of {len(study.published)} published numbers have no runs here.")
    return notes


def _cells(row: TableRow, scores: Sequence[str]) -> list[str]:
    """Return name, number of runs and time of a row, and median and range of each score."""
    diverged = int(row.runs["diverged"].notna().sum())
    seconds = row.runs["seconds_per_model"].median() if "seconds_per_model" in row.runs else math.nan
    unscored = int(row.runs["not_scored"].notna().sum()) if "not_scored" in row.runs else 0
    counts = {"diverged": diverged, "not scored": unscored}
    lost = ", ".join(f"{number} {what}" for what, number in counts.items() if number)
    count = f"{len(row.runs)}" + (f" ({lost})" if lost else "")
    found = map(row.values, scores)
    ranges = [f"{statistics.median(v):.3f} ({v.min():.3f} – {v.max():.3f})" if len(v) else "–" for v in found]
    return [row.name, count, f"{seconds:.3g}" if math.isfinite(seconds) else "–", *ranges]


def _comparison_cells(item: Comparison, score: str, sources: Sequence[str]) -> list[str]:
    published = item.published
    times = "×" if published.ratio_to else ""
    ours = f"{times}{item.ours:.3f}" if math.isfinite(item.ours) else item.note or "–"
    ours += f" ({item.low:.3f} – {item.high:.3f})" if math.isfinite(item.low) else ""
    number = str(1 + sources.index(published.source))
    cells = [published.row, score, str(item.n), ours, _published_text(published)]
    return [*cells, item.verdict or "–", published.provenance, number]


def _published_text(published: Published) -> str:
    low, high = published.interval
    times = "×" if published.ratio_to else ""
    words = [published.statistic] if published.statistic != "range" else []
    words += [f"of {published.ratio_to}"] if published.ratio_to else []
    value = f"{times}{low:g}" if low == high else f"{low:g} – {high:g}"
    if high == math.inf:
        value = f"at least {times}{low:g}"
    return f"{value} ({' '.join(words)})" if words else value


def short_rows(rows: Sequence[tuple[bool, Sequence[str]]]) -> list[list[str]]:
    """Return rows for a narrow screen: settings indented below their family, medians without times and ranges."""
    family, short = "", []
    for pooled, (name, runs, _, *cells) in rows:
        family = name if pooled else family
        inside = family and name.startswith(f"{family}, ")
        label = f"  {name.removeprefix(family + ', ')}" if inside else name
        short.append([label, runs, *(cell.partition(" (")[0] for cell in cells)])
    return short


def markdown(tables: Mapping[str, Any]) -> str:
    """Return the result of `text_tables` as Markdown."""
    parts = [f"# {tables['title']}", tables["question"], tables["paper"] + ".", " · ".join(tables["facts"])]
    parts += [_markdown_table(tables["headers"], [row for _, row in tables["rows"]])]
    if tables["comparison"]:
        parts += [_markdown_table(tables["comparison_headers"], tables["comparison"])]
        parts += ["\n".join(f"{number}. {source}" for number, source in enumerate(tables["sources"], 1))]
        parts += ["\n".join(f"- {word}: {meaning}" for word, meaning in tables["legend"])]
    return "\n\n".join([*parts, "\n".join(f"- {note}" for note in tables["notes"])]) + "\n"


def _markdown_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def strips(study: Study, frame: pd.DataFrame) -> dict[str, list[Strip]]:
    """Return for each score a strip per row: name, pooled, colour, points, median, published ranges."""
    rows, scores = table_rows(study, frame), shown_scores(study, frame)
    colours = dict(zip(dict.fromkeys(row.family for row in rows), itertools.cycle(COLOURS)))
    return {score: [_strip(study, row, score, colours[row.family]) for row in rows] for score in scores}


def _strip(study: Study, row: TableRow, score: str, colour: int) -> Strip:
    kept = row.runs[row.runs["diverged"].isna() & row.runs[score].notna()]
    points = [(float(run[score]), f"{run['run']}: {run[score]:.3f}") for _, run in kept.iterrows()]
    median = statistics.median(value for value, _ in points) if points else math.nan
    published = [
        (*p.interval, f"{p.statistic} {p.value}, {p.provenance}: {p.source}")
        for p in study.published
        if p.row in row.names and p.score == score and not p.ratio_to
    ]
    return row.name, row.pooled, colour, points, median, published
