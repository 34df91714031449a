"""The commands `unweave study`: train and score the runs of a paper, and compare them with its published numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from unweave.cli import bold, out_console
from unweave.errors import check_choice, invalid

if TYPE_CHECKING:
    import pandas as pd

    from unweave.studies.study import Study

app = typer.Typer(help="Studies: the runs of a paper, compared with its published numbers.", no_args_is_help=True)
NameArgument = Annotated[str, typer.Argument(help="name of a study; see: unweave study list")]


@app.command("list")
def list_() -> None:
    """List all studies: the question, the paper and the number of runs."""
    from unweave.studies import STUDIES

    table = Table("study", "question", "quick", "full", "published", box=None, padding=(0, 2, 0, 0))
    for name, study in STUDIES.items():
        question = Text.assemble(study.question, "\n", (study.paper, "dim"))
        counts = [f"{len(study.runs(scale))} runs" for scale in ("quick", "full")]
        table.add_row(bold(name), question, *counts, f"{len(study.published)} numbers")
    out_console.print(table)


@app.command()
def run(
    name: NameArgument,
    scale: Annotated[
        str, typer.Option(help="quick (ten minutes on two CPU cores) or full (the paper's setting)")
    ] = "quick",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="folder for the runs and tables")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="train only these runs: method=factor_vae, data=rooms, beta=1,4")
    ] = None,
    seeds: Annotated[str | None, typer.Option(help="seeds that replace those of the study: 0-9 or 0,3,5")] = None,
    path: Annotated[
        Path | None, typer.Option(help="folder with the files of the data set, or with a folder for each data set")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps")] = "auto",
    precision: Annotated[str | None, typer.Option(help="float32, tf32 or bf16")] = None,
    strategy: Annotated[str, typer.Option(help="execution of the runs: auto, loop or batched")] = "auto",
    steps: Annotated[int | None, typer.Option(help="number of steps, for a trial that is not the study")] = None,
    minutes: Annotated[float | None, typer.Option(help="stop after this time; the same command continues")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress display")] = False,
) -> None:
    """Train and score the runs of study NAME that are missing, and compare all with the published numbers."""
    from unweave.cli.progress import same_command_resumes, sweep_progress_observer
    from unweave.cli.sweep import read_seeds
    from unweave.config.devices import find_device
    from unweave.studies.scoring import scores_lock
    from unweave.studies.table import read_scores
    from unweave.studies.work import run_study, select_runs

    study = _study(name)
    if minutes is not None and not minutes > 0:
        raise invalid("minutes", minutes, "greater than 0")
    found = find_device(device, precision or "float32")
    chosen = select_runs(
        study,
        scale,
        only=_read_only(only or []),
        seeds=None if seeds is None else read_seeds(seeds),
        path=path,
        steps=steps,
        precision=precision,
        device=found,
    )
    root = out or Path("runs") / f"{name}-{scale}"
    with same_command_resumes(), sweep_progress_observer(quiet) as observe:
        trained, frame = run_study(
            study, scale, chosen, root, steps=steps, device=found, strategy=strategy, minutes=minutes, observe=observe
        )
    if trained < len(chosen):
        out_console.print(f"Stopped with {trained} of {len(chosen)} runs trained; the same command continues.")
    if frame is not None:
        with scores_lock(root):  # another process may add rows to the tables
            show(study, read_scores(study, [root]), root)


@app.command()
def table(
    name: NameArgument,
    scores: Annotated[list[Path], typer.Argument(help="scores.csv files of the study, or their folders")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="folder for table.csv, .md and .html")] = None,
) -> None:
    """Compare scores of study NAME, from one or several machines, with the published numbers."""
    from unweave.studies.table import read_scores

    study = _study(name)
    show(study, read_scores(study, scores), out or Path(f"{name}-table"))


def _study(name: str) -> Study:
    from unweave.studies import STUDIES

    return STUDIES[check_choice("study", name, STUDIES)]


def _read_only(texts: Sequence[str]) -> dict[str, list[str]]:
    """Parse ["beta=1,4", "method=gvae"] to {"beta": ["1", "4"], "method": ["gvae"]}."""
    from unweave.cli.sweep import split_values

    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name.strip() or not values.strip():
            raise invalid("only", text, "name=value, such as --only method=factor_vae")
        found.setdefault(name.strip(), []).extend(split_values(values))
    return found


def show(study: Study, frame: pd.DataFrame, root: Path) -> None:
    """Print the tables, and write them to table.csv, table.md and table.html."""
    from unweave.report.charts.strips import StripRow
    from unweave.report.formatting import short_title
    from unweave.report.pages.study import study_page
    from unweave.studies.sheet import TIME, markdown, short_rows, strips, text_tables
    from unweave.studies.table import long_table

    tables = text_tables(study, frame, short_title)
    headers = [header for header in tables["headers"] if header != TIME]
    out_console.print(_rich(headers, short_rows(tables["rows"]), f"{study.name}: medians", widest=9))
    if tables["comparison"]:  # without ranges and sources, which are long
        rows = [[*row[:3], row[3].partition(" (")[0], *row[4:-1]] for row in tables["comparison"]]
        out_console.print(_rich(tables["comparison_headers"][:-1], rows, "compared with published numbers"))
    for note in tables["notes"]:
        out_console.print(note, style="dim")
    texts = {"table.csv": long_table(study, frame).to_csv(index=False), "table.md": markdown(tables)}
    plots = {score: [StripRow(*row) for row in rows] for score, rows in strips(study, frame).items()}
    study_page(tables, plots, root / "table.html", {root / name: text.encode() for name, text in texts.items()})
    out_console.print(bold(root) + ": table.csv, table.md and " + bold("table.html") + "; open it in a browser.")


def _rich(headers: Sequence[str], rows: Sequence[Sequence[str]], title: str, widest: int | None = None) -> Table:
    """Return a table that fits a narrow screen: long names are folded, not cut."""
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
    for header in headers:
        table.add_column(header, overflow="fold", max_width=None if header == "row" else widest)
    for row in rows:
        table.add_row(*(cell.replace(" – ", "–") for cell in row))
    return table
