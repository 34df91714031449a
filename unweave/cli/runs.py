"""The commands that take a trained run: score it, show it, set it beside others, use it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from unweave.errors import UserError

out_console = Console()
error_console = Console(stderr=True, soft_wrap=True, highlight=False)

DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps")]
DataOption = Annotated[Path | None, typer.Option(help="where the run's own pictures are now, if they were moved")]
TableOption = Annotated[Path | None, typer.Option(help="where the table of their factors is now, likewise")]
MetricsOption = Annotated[str, typer.Option(help="quick, all, or names with commas; see: unweave list metrics")]


def evaluate(
    what: Annotated[Path, typer.Argument(help="a run folder, or an .npz with arrays codes and factors")],
    metrics: MetricsOption = "quick",
    rows: Annotated[str | None, typer.Option(help="how many observations of a run to encode, or all; 10000")] = None,
    codes: Annotated[str, typer.Option(help="of a run: mean, of each posterior, or sampled, a draw from it")] = "mean",
    resamples: Annotated[int, typer.Option(help="draw the table again this often for intervals; 200 is good")] = 0,
    seed: Annotated[int, typer.Option(help="draws the observations, splits and resamples")] = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="folder for scores.json and heatmap.png")] = None,
    data: DataOption = None,
    factors: TableOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Score a run or plain arrays; writes scores.json and heatmap.png, into the run or beside the .npz."""
    from unweave.evaluation.evaluate import evaluate as score
    from unweave.evaluation.evaluate import evaluate_npz
    from unweave.report.charts.heatmap import score_rows, write_scores
    from unweave.training.build import find_device

    options: dict[str, Any] = dict(metrics=_named(metrics), resamples=resamples, seed=seed, device=find_device(device))
    title = str(what)
    if what.suffix == ".npz":
        if rows is not None:
            raise UserError(f"rows '{rows}' is for runs; the arrays of '{what}' are scored as they are")
        if place := data or factors:
            raise UserError(
                f"'{place}' says where the data of a run are; the arrays of '{what}' are scored as they are"
            )
        if codes != "mean":
            raise UserError(f"codes '{codes}' is for runs; the arrays of '{what}' are scored as they are")
        result, beside = evaluate_npz(what, **options), what.with_suffix(".scores")
    else:
        if rows not in (None, "all") and not str(rows).isdigit():
            raise UserError(f"rows '{rows}' is not understood; use a whole number, or all")
        run = _opened(what, data, factors, options["device"])
        result, beside = (
            score(run, num_samples=None if rows == "all" else int(rows or 10_000), codes=codes, **options),
            what,
        )
        if codes == "sampled":
            beside, title = what / "sampled", f"{what}, sampled codes"
    folder = write_scores(result, out or beside, what)
    table = Table("score", "value", "95 %", "what it means, by whose definition", title=title, title_justify="left")
    for row in score_rows(result):
        table.add_row(*row)
    if not result.intervals:
        table.columns.pop(2)
    out_console.print(table)
    for name, why in result.skipped.items():
        out_console.print(f"{name} is left out: {why}.", style="dim", highlight=False)
    out_console.print(f"[bold]{folder}[/bold]: scores.json and heatmap.png.")


def _opened(run: Path, data: Path | None, factors: Path | None, device: str) -> Any:
    """The run as it is, or where its own data were moved, opened with them; told if it is not finished."""
    from unweave.config import read_config
    from unweave.model import checkpoint_step, load, relocated_data
    from unweave.runs import RunFolder

    folder = RunFolder.open(run)
    if not folder.finished and (done := checkpoint_step(folder)):
        steps = read_config(folder).steps
        error_console.print(f"run '{run}' is unfinished: its weights are of step {done:,} of {steps:,}.")
    moved = relocated_data(run, data, factors)
    return run if moved is None else load(run, device=device, data=moved)


def _named(metrics: str) -> str | list[str]:
    return metrics if metrics in ("quick", "all") else [name.strip() for name in metrics.split(",")]


def report(
    runs: Annotated[list[Path], typer.Argument(help="run folders, or folders of them")],
    out: Annotated[Path, typer.Option("--out", "-o", help="the HTML file to write")] = Path("report.html"),
    open: Annotated[bool, typer.Option("--open", help="show the page in the browser")] = False,
    data: DataOption = None,
    factors: TableOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Write one self-contained HTML page about one run or several."""
    from unweave.evaluation.compare import find_runs
    from unweave.report import report as write_report
    from unweave.training.build import find_device

    found = find_device(device)
    each = [inside for run in runs for inside in (find_runs([run]) if run.is_dir() else [run])]
    made = write_report([_opened(run, data, factors, found) for run in each], out, device=found)
    opened = open and _shown_in_browser(made)
    out_console.print(f"[bold]{made}[/bold] is written; {'it is open' if opened else 'open it'} in a browser.")
    if open and not opened:
        out_console.print("--open: no browser could be opened here.")


def _shown_in_browser(page: Path) -> bool:
    import webbrowser

    try:
        return webbrowser.open(page.resolve().as_uri())
    except (webbrowser.Error, OSError):  # it is found and cannot be started
        return False


def compare(
    runs: Annotated[list[Path], typer.Argument(help="run folders, or folders of them")],
    out: Annotated[Path, typer.Option("--out", "-o", help="folder for scores.csv and compare.html")] = Path("compare"),
    metrics: MetricsOption = "quick",
    seed: Annotated[int, typer.Option(help="draws the observations, splits and votes")] = 0,
    data: DataOption = None,
    factors: TableOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Score many runs and put them side by side: a table, scores.csv and one HTML page."""
    from unweave.cli.sweep import show
    from unweave.evaluation.compare import find_runs, score_runs, unfinished_runs
    from unweave.training.build import find_device

    found = find_runs(runs)
    if left := unfinished_runs(found):
        raise UserError(f"run '{left[0]}' is not finished ({len(left)} of {len(found)}); go on with --resume first")
    device = find_device(device)
    opened = [_opened(run, data, factors, device) for run in found]
    frame = score_runs(opened, metrics=_named(metrics), seed=seed, device=device)
    out.mkdir(parents=True, exist_ok=True)
    show(frame, out, out_console)


def encode(
    run: Annotated[Path, typer.Argument(help="a run folder")],
    images: Annotated[list[Path], typer.Argument(help="picture files or folders of them")],
    out: Annotated[Path, typer.Option("--out", "-o", help="the .npz to write")] = Path("codes.npz"),
) -> None:
    """Codes of your pictures: arrays `codes` and `files` in an .npz."""
    from unweave.integrations.export import encode_files
    from unweave.model import load

    count = encode_files(load(run, with_data=False), images, out)
    out_console.print(f"[bold]{out}[/bold]: codes of {count} pictures.")


def predict(
    run: Annotated[Path, typer.Argument(help="the folder of a run that learned from labels, such as one of m2")],
    what: Annotated[
        list[str] | None, typer.Argument(help="picture files, folders of them, or a data set; else the run's own data")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="the table to write")] = Path("predicted.csv"),
    data: DataOption = None,
    factors: TableOption = None,
    device: DeviceOption = "auto",
) -> None:
    """The class of every picture and how sure the model is, as a .csv."""
    from unweave.config import read_config
    from unweave.evaluation.classification import accuracy_lines
    from unweave.evaluation.classification import predict as classes_of
    from unweave.integrations.export import write_output
    from unweave.runs import RunFolder
    from unweave.training.build import find_device

    if what and (place := data or factors):
        option = "data" if data else "factors"
        raise UserError(
            f"{option} '{place}' says where the run's own data are now, and '{what[0]}' which to classify; give one of "
            "the two (a folder with a table: \"folder(path='...', factors='...', size=...)\")"
        )
    table = (
        str(factors.expanduser().resolve()) if factors else read_config(RunFolder.open(run)).data_options.get("factors")
    )
    if str(out.expanduser().resolve()) == table:
        raise UserError(f"out '{out}' is the table the run learned from; give another name")
    found = find_device(device)
    frame = classes_of(run if what else _opened(run, data, factors, found), _one_or_all(what), device=found)
    write_output(out, frame.to_csv(index=False, float_format="%.4f").encode())
    for line in accuracy_lines(frame):
        out_console.print(line, highlight=False, soft_wrap=True)
    out_console.print(f"[bold]{out}[/bold]: classes of {len(frame)} observations.")


def _one_or_all(what: list[str] | None) -> str | list[str] | None:
    """One name may be that of a data set, several are pictures; none is the run's own data."""
    return what[0] if what and len(what) == 1 else what or None


def export(
    run: Annotated[Path, typer.Argument(help="a run folder")],
    format: Annotated[str, typer.Option(help="torch (a .pt2 for torch.export.load) or onnx")] = "torch",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="the file to write")] = None,
) -> None:
    """Save the encoder as a program that runs without unweave."""
    from unweave.integrations.export import export as write_export
    from unweave.model import load

    trained = load(run, with_data=False)
    made = write_export(trained, out or run / f"encoder.{'onnx' if format == 'onnx' else 'pt2'}", format)
    out_console.print(f"[bold]{made}[/bold]: images [N, {', '.join(map(str, trained.data.shape))}] in 0..1 -> codes.")
