"""Sweeps on the command line: which runs to train, the progress display, the table of scores, the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from unweave.cli import bold, out_console
from unweave.errors import UserError, invalid, to_integer

if TYPE_CHECKING:
    import pandas as pd

_MAX_SEEDS = 10_000  # more is a typing error


def read_seeds(text: str) -> list[int]:
    """Parse "0-9", "0,3,5", or both."""
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = (word.strip() for word in part.partition("-"))
        low = to_integer(first)
        high = to_integer(last) if dash else low
        if low is None or high is None:
            raise invalid("seeds", text, "integers such as 0-9 or 0,3,5")
        if high < low:
            raise invalid("seeds", part.strip(), "a range with the smaller number first, such as 0-9")
        if len(seeds) + high - low >= _MAX_SEEDS:
            raise invalid("seeds", text, f"at most {_MAX_SEEDS:,} seeds")
        seeds += range(low, high + 1)
    if len(set(seeds)) < len(seeds):
        raise invalid("seeds", text, "a list that names each seed once")
    return seeds


def split_values(text: str) -> list[str]:
    """Split "1,2,4" at its commas, except those inside brackets: "linear(0, 1, 100)" is one value.

    A text with a semicolon is a graph of several clauses, which contain commas, and is not split.
    """
    if ";" in text:
        return [text.strip()]
    values, depth = [""], 0
    for sign in text:
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and depth == 0:
            values.append("")
        else:
            values[-1] += sign
    values = [value.strip() for value in values]
    if not all(values):
        raise invalid("set", text, "values separated by commas, such as beta=1,2,4")
    return values


def sweep(
    method: str,
    data: Any,
    settings: Mapping[str, str],
    seeds: Sequence[int],
    options: Mapping[str, Any],
    *,
    out: Path | None,
    strategy: str,
    quiet: bool,
) -> None:
    """Train every combination, then score and compare."""
    from unweave.cli.progress import sweep_progress_observer
    from unweave.runs.manifest import is_empty
    from unweave.training.build import find_method
    from unweave.training.sweep import expand, fit

    methods = [name.strip() for name in method.split(",")]
    for name in methods:
        find_method(name)
    grid = expand({name: split_values(value) for name, value in settings.items()}, seeds)
    runs = [{"method": name, "data": data, **options, **run} for name in methods for run in grid]
    label = data if isinstance(data, str) else data.name
    root = out or Path("runs") / "-".join([*methods, label.split("(")[0], "sweep"])
    if root.exists() and not is_empty(root):
        raise invalid("out", str(root), "a new folder", hint=f"continue an existing one with --resume {root}")
    with sweep_progress_observer(quiet) as observe:
        done = fit(runs, out=root, strategy=strategy, observe=observe)
    score_and_show(done, root)


def resume_sweep(root: Path, *, strategy: str, device: str | None, steps: int | None, quiet: bool) -> None:
    """Continue every run in a folder."""
    from unweave.cli.progress import same_command_resumes, sweep_progress_observer
    from unweave.evaluation.compare import find_runs
    from unweave.training.sweep import resume_all

    with same_command_resumes(), sweep_progress_observer(quiet) as observe:
        done = resume_all(root, strategy=strategy, device=device, steps=steps, observe=observe)
    folders = {run.folder.path for run in done}
    score_and_show([*done, *(path for path in find_runs([root]) if path not in folders)], root)


def score_and_show(done: Sequence[Any], root: Path) -> None:
    """Score all runs, as `fit` returns them or as paths; print the scores and write the table and the page."""
    from unweave.evaluation.compare import score_runs

    device = next((run.config.device for run in done if hasattr(run, "method")), None)
    frame = score_runs(done, device=device or "cpu")
    show(frame, root)
    if device is None:
        raise invalid("lr", done[0].config.lr, "smaller, or clip given", context=f"all runs in '{root}' diverged")
    check_scored(frame)


def check_scored(frame: pd.DataFrame) -> None:
    """Raise if no run could be scored."""
    reasons = frame["not_scored"].dropna()
    if len(reasons) and not (frame["diverged"].isna() & frame["not_scored"].isna()).any():
        message = f"no run could be scored; the first reason: {reasons.iloc[0]}"
        raise UserError(message, argument="run", value=frame["run"].iloc[0], accepted="runs that can be scored")


def show(frame: pd.DataFrame, root: Path) -> None:
    """Print the summary; write all runs to scores.csv and the page to compare.html."""
    from unweave.report.pages.sweep import compare_page
    from unweave.report.sweep_summary import check_frame

    for heading, table in _summary_tables(check_frame(frame)):
        if heading:
            out_console.print(f"data: {heading}")
        out_console.print(table)
    for _, row in frame[frame["diverged"].notna()].iterrows():
        message = f"{row['run']} diverged at step {row['diverged']:.0f}; use a smaller lr, or clip."
        out_console.print(message, style="yellow")
    table_file = {root / "scores.csv": frame.to_csv(index=False).encode()}
    made = compare_page(frame, root / "compare.html", title=root.name, beside=table_file)
    runs = f"{len(frame)} run{'s' * (len(frame) != 1)}"
    out_console.print(bold(root) + f": {runs}, scores.csv and " + bold(made.name) + "; open it in a browser.")


def _summary_tables(frame: pd.DataFrame) -> list[tuple[str, Table]]:
    """Return a table for each data set, since scores on different data cannot be compared; with names if several."""
    from unweave.report.sweep_summary import shown_settings

    parts = list(frame.groupby("data", sort=False))
    if len(parts) == 1:
        return [("", _summary_table(frame, shown_settings(frame), frame.attrs["scores"]))]
    tables = []
    for data, part in parts:
        settings, scores = (
            [n for n in names if part[n].notna().any()] for names in (shown_settings(frame), frame.attrs["scores"])
        )
        tables.append((str(data), _summary_table(part, settings, scores)))
    return tables


def _summary_table(frame: pd.DataFrame, settings: Sequence[str], scores: Sequence[str]) -> Table:
    """Return a table with mean, standard deviation and best of every score over the seeds of each setting."""
    from unweave.report.sweep_summary import format_setting, sign

    table = Table("method", *settings, "runs", "", box=None, padding=(0, 2, 0, 0))
    for column in table.columns:
        column.overflow = "fold"
    for name in scores:
        table.add_column(name, justify="right", min_width=5, overflow="fold")
    for _, group in frame.groupby("setting", sort=False):
        words = [format_setting(group[name].iloc[0]) for name in ("method", *settings)]
        spread = len(group) > 1
        lines = "mean\n±\nbest" if spread and scores else ""
        table.add_row(*words, _count(group), lines, *(_cell(group[name], spread, sign(name)) for name in scores))
    return table


def _count(group: pd.DataFrame) -> str:
    """Return the number of runs, and of those with scores if some diverged or could not be scored."""
    scored = int((group["diverged"].isna() & group["not_scored"].isna()).sum())
    return f"{len(group)}" if scored == len(group) else f"{scored} of {len(group)}"


def _cell(values: pd.Series, spread: bool, better: int) -> str:
    """Return the text of a cell; `better` is 1 if higher is better, -1 if lower is, and 0 if neither is."""
    values = values.dropna()
    if values.empty:
        return "-"
    if not spread:
        return f"{values.iloc[0]:.3f}"
    deviation = f"{values.std():.3f}" if len(values) > 1 else "-"
    best = {1: f"{values.max():.3f}", -1: f"{values.min():.3f}", 0: "-"}[better]
    return f"{values.mean():.3f}\n{deviation}\n{best}"
