"""The command line's `study` group: a paper's runs trained and scored, and its numbers beside ours."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from unweave.errors import UserError

if TYPE_CHECKING:  # the command line starts without what only some commands need
    import pandas as pd

    from unweave.report.pages.study import ScoreStrips, StudyTables
    from unweave.studies.study import RunSpec, Study
    from unweave.studies.table import Comparison, TableRow
    from unweave.studies.work import RunResult

app = typer.Typer(help="Studies: the runs of a paper, and its published numbers beside ours.", no_args_is_help=True)
out_console = Console()

TIME = "s/model"  # seconds of the device a model took
NameArgument = Annotated[str, typer.Argument(help="a study; see: unweave study list")]


@app.command("list")
def list_() -> None:
    """Every study: its paper, its question, how many runs it has."""
    from unweave.studies import STUDIES

    table = Table("study", "question", "quick", "full", "published", box=None, padding=(0, 2, 0, 0))
    for name, study in STUDIES.items():
        counts = [f"{len(study.runs(scale))} runs" for scale in ("quick", "full")]
        table.add_row(
            f"[bold]{name}[/bold]",
            f"{escape(study.question)}\n[dim]{escape(study.paper)}[/dim]",
            *counts,
            f"{len(study.published)} numbers",
        )
    out_console.print(table)


@app.command()
def run(
    name: NameArgument,
    scale: Annotated[
        str, typer.Option(help="quick (two CPU cores, ten minutes) or full (the paper's setting)")
    ] = "quick",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="folder for the runs and tables")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="these runs alone: method=factor_vae, data=rooms, beta=1,4")
    ] = None,
    seeds: Annotated[str | None, typer.Option(help="instead of the study's own: 0-9 or 0,3,5")] = None,
    path: Annotated[
        Path | None,
        typer.Option(
            help="folder with the data set's files, or with a folder for each set; else the cache, or downloaded"
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps")] = "auto",
    precision: Annotated[str | None, typer.Option(help="float32, tf32 or bf16")] = None,
    strategy: Annotated[str, typer.Option(help="auto, loop or batched")] = "auto",
    steps: Annotated[int | None, typer.Option(help="another number of steps, to try; no longer the study")] = None,
    minutes: Annotated[float | None, typer.Option(help="stop training after so long; the same command goes on")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress display")] = False,
) -> None:
    """Train what is not trained yet of study NAME, score it, and set it beside the published numbers."""
    import pandas as pd

    from unweave.cli.progress import same_command_resumes, sweep_progress_observer
    from unweave.cli.sweep import read_seeds
    from unweave.studies.work import in_order, scale_name, score_study, select_runs, train_study
    from unweave.training.build import find_device

    study = _study(name)
    if minutes is not None and not minutes > 0:
        raise UserError(f"minutes {minutes:g} is too small; use more than 0")
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
    root, label = out or Path("runs") / f"{name}-{scale}", scale_name(scale, steps)
    frame = _earlier(study, root, label)

    def keep(fleet: Sequence[RunSpec], trained: Sequence[RunResult]) -> None:
        """Scores of a fleet at once: what a later one takes with it is only its own."""
        nonlocal frame
        scored = score_study(study, scale, fleet, trained, label=label, device=found)
        if frame is not None:
            scored = pd.concat([frame[~frame["run"].isin(scored["run"])], scored], ignore_index=True)
        frame = in_order(study, chosen, scored)
        _write(root / "scores.csv", frame.to_csv(index=False))

    with same_command_resumes(), sweep_progress_observer(quiet) as observe:
        done = train_study(study, chosen, root, strategy=strategy, minutes=minutes, observe=observe, each=keep)
    trained = sum(result is not None for result in done)
    if trained < len(done):
        out_console.print(f"The time is up with {trained} of {len(done)} runs trained; the same command goes on.")
    if trained and frame is not None:
        show(study, frame, root)


@app.command()
def table(
    name: NameArgument,
    scores: Annotated[list[Path], typer.Argument(help="scores.csv files of it, or the folders they are in")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="folder for table.csv, .md and .html")] = None,
) -> None:
    """Our scores of study NAME, from one or several machines, beside the published numbers."""
    from unweave.studies.table import read_scores

    study = _study(name)
    frame = read_scores(study, scores)
    root = out or Path(f"{name}-table")
    root.mkdir(parents=True, exist_ok=True)
    show(study, frame, root)


def _study(name: str) -> Study:
    from unweave.errors import check_choice
    from unweave.studies import STUDIES

    check_choice("study", name, STUDIES)
    return STUDIES[name]


def _read_only(texts: Sequence[str]) -> dict[str, list[str]]:
    """["beta=1,4", "method=gvae"] -> {"beta": ["1", "4"], "method": ["gvae"]}."""
    from unweave.cli.sweep import split_values

    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name.strip() or not values.strip():
            raise UserError(f"only '{text}' is not understood; use name=value, such as --only method=factor_vae")
        found.setdefault(name.strip(), []).extend(split_values(values))
    return found


def _earlier(study: Study, root: Path, label: str) -> pd.DataFrame | None:
    """What the folder holds of the same study and scale."""
    from unweave.studies.table import read_scores

    if not (root / "scores.csv").is_file():
        return None
    frame = read_scores(study, [root])
    if (other := frame["scale"].iloc[0]) != label:
        raise UserError(f"out '{root}' holds runs of scale '{other}', not '{label}'; give another folder")
    return frame


def _write(path: Path, text: str) -> None:
    from unweave.runs import write_atomic

    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text.encode())


def show(study: Study, frame: pd.DataFrame, root: Path) -> None:
    """The tables on the screen, and as table.csv, table.md and table.html."""
    from unweave.report.pages.study import study_page
    from unweave.studies.table import long_table

    told = _sheet(study, frame)
    heads = [head for head in told.heads if head != TIME]
    out_console.print(_rich(heads, _short(told.rows), f"{study.name}: medians", widest=9))
    if told.comparison:  # ranges and sources are long: they stand in the files
        compare_with_published = [[*row[:3], row[3].partition(" (")[0], *row[4:-1]] for row in told.comparison]
        out_console.print(_rich(told.comparison_headers[:-1], compare_with_published, "beside what is published"))
    for note in told.notes:
        out_console.print(escape(note), style="dim", highlight=False)
    _write(root / "table.csv", long_table(study, frame).to_csv(index=False))
    _write(root / "table.md", _markdown(told))
    study_page(told, _panels(study, frame), root / "table.html")
    out_console.print(f"[bold]{root}[/bold]: table.csv, table.md and [bold]table.html[/bold]; open it in a browser.")


def _rich(heads: Sequence[str], rows: Sequence[Sequence[str]], title: str, widest: int | None = None) -> Table:
    """A table that fits a narrow screen: long names are folded, never cut."""
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
    for head in heads:
        table.add_column(head, overflow="fold", max_width=None if head == "row" else widest)
    for row in rows:
        table.add_row(*(escape(cell.replace(" – ", "–")) for cell in row))
    return table


def _short(rows: Sequence[tuple[bool, Sequence[str]]]) -> list[list[str]]:
    """Settings under their family, and medians without times and ranges."""
    family, found = "", []
    for whole, (name, runs, _, *cells) in rows:
        family = name if whole else family
        inside = family and name.startswith(f"{family}, ")
        label = f"  {name.removeprefix(family + ', ')}" if inside else name
        found.append([label, runs, *(cell.partition(" (")[0] for cell in cells)])
    return found


# --- what the tables say -------------------------------------------------------------------------------------------


def _sheet(study: Study, frame: pd.DataFrame) -> StudyTables:
    """All text of the tables."""
    from unweave.report.formatting import short_title
    from unweave.report.pages.study import StudyTables
    from unweave.studies.study import PROVENANCE
    from unweave.studies.table import compare_with_published, shown_scores, table_rows

    found, scores, scale = table_rows(study, frame), shown_scores(study, frame), str(frame["scale"].iloc[0])
    told = compare_with_published(study, found, scale)
    sources = list(dict.fromkeys(item.published.source for item in told))
    missing = len(study.published) - len(told)
    notes = [note[0].upper() + note[1:] + "." for note in study.notes]
    if scale != "full":
        notes.insert(0, f"Scale {scale}: smaller than the paper's setting, so no verdict on the published numbers.")
    if missing:
        notes.append(f"{missing} of {len(study.published)} published numbers have no runs here.")
    columns = [frame[name].dropna() for name in ("device", "precision") if name in frame]
    devices = [str(value) for column in columns for value in dict.fromkeys(column)]
    steps = " or ".join(f"{count:,}" for count in sorted(set(frame["steps"])))
    return StudyTables(
        title=study.name,
        paper=study.paper,
        question=study.question,
        facts=[f"scale {scale}", f"{len(frame)} runs", f"{steps} steps", *devices],
        notes=notes,
        legend=[(word, meaning) for word, meaning in PROVENANCE.items()],
        heads=["row", "runs", TIME, *(short_title(score) for score in scores)],
        rows=[(line.pooled, _cells(line, scores)) for line in found],
        comparison_headers=["row", "score", "runs", "ours", "published", "verdict", "provenance", "source"],
        comparison=[_beside(item, short_title(item.published.score), sources) for item in told],
        sources=sources,
    )


def _cells(line: TableRow, scores: Sequence[str]) -> list[str]:
    lost = int(line.runs["diverged"].notna().sum())
    seconds = line.runs["seconds_per_model"].median() if "seconds_per_model" in line.runs else float("nan")
    count = f"{len(line.runs)}" + (f" ({lost} diverged)" if lost else "")
    spread = [line.values(score) for score in scores]
    cells = [
        f"{statistics.median(values):.3f} ({values.min():.3f} – {values.max():.3f})" if len(values) else "–"
        for values in spread
    ]
    return [line.name, count, f"{seconds:.3g}" if math.isfinite(seconds) else "–", *cells]


def _beside(item: Comparison, score: str, sources: Sequence[str]) -> list[str]:
    published, (low, high) = item.published, item.published.interval
    times = "×" if published.ratio_to else ""
    value = (
        f"{times}{low:g}" if low == high else f"at least {times}{low:g}" if high == math.inf else f"{low:g} – {high:g}"
    )
    ours = f"{times}{item.ours:.3f}" if math.isfinite(item.ours) else item.note or "–"
    ours += f" ({item.low:.3f} – {item.high:.3f})" if math.isfinite(item.low) else ""
    words = [published.statistic] if published.statistic != "range" else []
    words += [f"of {published.ratio_to}"] if published.ratio_to else []
    value += f" ({' '.join(words)})" if words else ""
    place = str(1 + sources.index(published.source))
    return [published.row, score, str(item.n), ours, value, item.verdict or "–", published.provenance, place]


def _markdown(told: StudyTables) -> str:
    """The tables as text."""
    parts = [f"# {told.title}", told.question, told.paper + ".", " · ".join(told.facts)]
    parts += [_markdown_table(told.heads, [row for _, row in told.rows])]
    if told.comparison:
        parts += [_markdown_table(told.comparison_headers, told.comparison)]
        parts += ["\n".join(f"{place}. {source}" for place, source in enumerate(told.sources, 1))]
        parts += ["\n".join(f"- {word}: {meaning}" for word, meaning in told.legend)]
    return "\n\n".join([*parts, "\n".join(f"- {note}" for note in told.notes)]) + "\n"


def _markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    table_rows = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in table_rows)


def _panels(study: Study, frame: pd.DataFrame) -> list[ScoreStrips]:
    """Every score of every row, with what was published of it."""
    from unweave.report.pages.study import PublishedRange, ScoreStrips, StripRow
    from unweave.studies.table import shown_scores, table_rows

    found, panels = table_rows(study, frame), []
    kinds = (0, 2, 3, 4, 5, 6, 7)  # colour 1 is what was published
    colours = {family: kinds[place % 7] for place, family in enumerate(dict.fromkeys(line.family for line in found))}
    for score in shown_scores(study, frame):
        strips = []
        for line in found:
            kept = line.runs[line.runs["diverged"].isna() & line.runs[score].notna()]
            points = [(float(row[score]), f"{row['run']}: {row[score]:.3f}") for _, row in kept.iterrows()]
            published = [
                PublishedRange(*p.interval, f"{p.statistic} {p.value}, {p.provenance}: {p.source}")
                for p in study.published
                if p.row in line.names and p.score == score and not p.ratio_to
            ]
            median = statistics.median(value for value, _ in points) if points else float("nan")
            strips.append(StripRow(line.name, line.pooled, colours[line.family], points, median, published))
        panels.append(ScoreStrips(score, strips))
    return panels
