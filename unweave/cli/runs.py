"""The commands that use trained runs: evaluate, report, compare, encode, predict and export."""

from __future__ import annotations

import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from unweave.cli import bold, error_console, out_console, printable, shell_quote
from unweave.errors import UserError, UserNotice, invalid, to_integer

if TYPE_CHECKING:
    from unweave.runs import RunFolder

DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps")]
DataOption = Annotated[Path | None, typer.Option(help="new location of the run's own data, if they were moved")]
TableOption = Annotated[Path | None, typer.Option(help="new location of the table of factors, if it was moved")]
MetricsOption = Annotated[str, typer.Option(help="quick, all, or names separated by commas; see: unweave list metrics")]


def evaluate(
    source: Annotated[Path, typer.Argument(help="a run folder, or an .npz with arrays codes and factors")],
    metrics: MetricsOption = "quick",
    rows: Annotated[str | None, typer.Option(help="observations of a run to encode, or all; default: 10000")] = None,
    codes: Annotated[str, typer.Option(help="codes of a run: the mean of each posterior, or sampled from it")] = "mean",
    resamples: Annotated[int, typer.Option(help="bootstrap resamples for intervals, such as 200")] = 0,
    seed: Annotated[int, typer.Option(help="seed of the observations, splits and resamples")] = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="folder for scores.json and heatmap.png")] = None,
    data: DataOption = None,
    factors: TableOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Score a run or arrays; write scores.json and heatmap.png into the run, or beside the .npz."""
    from unweave.config.devices import find_device
    from unweave.evaluation.evaluate import evaluate as score
    from unweave.evaluation.evaluate import evaluate_npz
    from unweave.report.charts.heatmap import score_rows, write_scores
    from unweave.runs import RunFolder

    device, chosen = find_device(device), _parse_metrics(metrics)
    options: dict[str, Any] = {"metrics": chosen, "resamples": resamples, "seed": seed, "device": device}
    title = str(source)
    if source.suffix == ".npz":
        given = {"rows": rows, "data": data, "factors": factors, "codes": None if codes == "mean" else codes}
        for name, value in given.items():
            if value is not None:
                raise invalid(name, str(value), f"left out for arrays, as in '{source}'")
        result, beside = evaluate_npz(source, **options), source.with_suffix(".scores")
    else:
        count = None if rows == "all" else to_integer(rows or 10_000) or 0
        if count is not None and count < 2:
            raise invalid("rows", rows, "an integer >= 2, or all")
        run = _open_run(source, data, factors, device)
        if out is None and not RunFolder(source).writable:
            raise invalid("out", None, "given, because the run folder is read-only", context=f"run '{source}'")
        result, beside = score(run, num_samples=count, codes=codes, **options), source
        if codes == "sampled":
            beside, title = source / "sampled", f"{source}, sampled codes"
    folder = write_scores(result, out or beside, source)
    table = Table("score", "value", "95 %", "meaning and definition", title=printable(title), title_justify="left")
    for row in score_rows(result):
        table.add_row(*row[:3], Text.assemble(row[3], "\n", (row[4], "dim")))
    if not result.intervals:
        table.columns.pop(2)
    out_console.print(table)
    for name, why in result.skipped.items():
        out_console.print(f"{name} is left out: {why}.", style="dim")
    out_console.print(bold(folder) + f": scores.json{' and heatmap.png' * bool(result.information.size)}.")


def _open_run(run: Path, data: Path | None, factors: Path | None, device: str) -> Any:
    """Return the run, loaded with its data if they were moved; print a note if it is not finished."""
    from unweave.config import read_config
    from unweave.model import checkpoint_step, data_change, load, relocated_data
    from unweave.runs import RunFolder

    folder = RunFolder.open(run)
    if not folder.finished and (done := checkpoint_step(folder)):
        steps = read_config(folder).steps
        error_console.print(f"run '{run}' is unfinished: its weights are of step {done:,} of {steps:,}.")
    moved = relocated_data(run, data, factors)
    if moved is not None and (change := data_change(folder, read_config(folder), moved)):
        warnings.warn(f"the {change}", UserNotice, stacklevel=2)
    return run if moved is None else load(run, device=device, data=moved)


def _load_run(run: str | Path, data: Path | None, factors: Path | None, device: str, *, checkpoints: bool) -> Any:
    """Return the run, loaded with its data; `checkpoints` is whether it may be unfinished."""
    from unweave.model import TrainedModel, load
    from unweave.runs import RunFolder
    from unweave.runs.checkpoints import has_checkpoint

    folder = RunFolder(run)
    if not folder.finished and not (checkpoints and has_checkpoint(folder)):
        resume = f"unweave train --resume {shell_quote(run)}"
        raise UserError(f"run '{run}' is unfinished: it was stopped, or it diverged; continue it with: {resume}")
    opened = _open_run(Path(run), data, factors, device)
    return opened if isinstance(opened, TrainedModel) else load(opened, device=device)


def _parse_metrics(metrics: str) -> str | list[str]:
    return metrics if metrics in ("quick", "all") else [name.strip() for name in metrics.split(",")]


def report(
    runs: Annotated[list[Path], typer.Argument(help="run folders, or folders of them")],
    out: Annotated[Path, typer.Option("--out", "-o", help="the HTML file to write")] = Path("report.html"),
    open: Annotated[bool, typer.Option("--open", help="open the page in a browser")] = False,
    data: DataOption = None,
    factors: TableOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Write one self-contained HTML page about one run or several."""
    import webbrowser

    from unweave.config.devices import find_device
    from unweave.evaluation.compare import find_runs, open_runs
    from unweave.model import load_weights
    from unweave.report import report as write_report
    from unweave.runs.checkpoints import has_checkpoint

    device = find_device(device)
    for folder in _named_runs(runs):
        if not folder.finished and not has_checkpoint(folder):
            load_weights(folder)  # raises
    opened_runs = open_runs(find_runs(runs), lambda path: _load_run(path, data, factors, device, checkpoints=True))
    made = write_report(opened_runs, out, device=device)
    opened = False
    if open:
        with suppress(webbrowser.Error, OSError):  # a browser that cannot be started
            opened = webbrowser.open(made.resolve().as_uri())
    out_console.print(bold(made) + f" is written; {'it is open' if opened else 'open it'} in a browser.")
    if open and not opened:
        out_console.print("--open: no browser could be opened here.")


def compare(
    runs: Annotated[list[Path], typer.Argument(help="run folders, or folders of them")],
    out: Annotated[Path, typer.Option("--out", "-o", help="folder for scores.csv and compare.html")] = Path("compare"),
    metrics: MetricsOption = "quick",
    seed: Annotated[int, typer.Option(help="seed of the observations, splits and votes")] = 0,
    data: DataOption = None,
    factors: TableOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Score many runs and compare them: a table, scores.csv and an HTML page."""
    from unweave.cli.sweep import check_scored, show
    from unweave.config.devices import find_device
    from unweave.evaluation.compare import find_runs, open_runs, score_runs

    if out.exists() and not out.is_dir():
        raise invalid("out", str(out), "a folder")
    for folder in _named_runs(runs):
        if not folder.finished:
            hint = f"continue it with: unweave train --resume {shell_quote(folder.path)}"
            raise invalid("run", str(folder.path), "a finished run", hint=hint)
    device = find_device(device)
    opened = open_runs(find_runs(runs), lambda path: _load_run(path, data, factors, device, checkpoints=False))
    frame = score_runs(opened, metrics=_parse_metrics(metrics), seed=seed, device=device)
    check_scored(frame)
    show(frame, out)


def _named_runs(paths: list[Path]) -> list[RunFolder]:
    """Return the runs among these paths; for each folder of runs, name those in its manifest that have no folder."""
    from unweave.runs import RunFolder
    from unweave.runs.manifest import missing_runs

    named = []
    for path in paths:
        if (path / "config.json").is_file():
            named.append(RunFolder(path))
        elif missing := missing_runs(path):
            runs = f"'{missing[0]}'" + (f" and {len(missing) - 1} others" if len(missing) > 1 else "")
            resume = f"unweave train --resume {shell_quote(path)}"
            error_console.print(f"sweep '{path}' has no folder of its run {runs}; create and train it with: {resume}")
    return named


def encode(
    run: Annotated[Path, typer.Argument(help="a run folder")],
    images: Annotated[list[Path], typer.Argument(help="image files, or folders of them")],
    out: Annotated[Path, typer.Option("--out", "-o", help="the .npz to write")] = Path("codes.npz"),
) -> None:
    """Encode image files to an .npz with the arrays `codes` and `files`."""
    from unweave.integrations.export import encode_files
    from unweave.model import load

    count = encode_files(load(run, with_data=False), images, out)
    out_console.print(bold(out) + f": codes of {count} images.")


def predict(
    run: Annotated[Path, typer.Argument(help="run folder of a method that predicts classes, such as m2")],
    images: Annotated[
        list[str] | None, typer.Argument(help="image files, folders of them, or a data set; default: the run's data")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="the table to write")] = Path("predicted.csv"),
    data: DataOption = None,
    factors: TableOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Predict classes and their probabilities, and write them to a .csv."""
    from unweave.config import read_config
    from unweave.config.devices import find_device
    from unweave.evaluation.classification import accuracy_lines
    from unweave.evaluation.classification import predict as classes_of
    from unweave.runs import RunFolder, write_files

    for option, path in (("data", data), ("factors", factors)):
        if images and path:
            hint = "a folder with a table: \"folder(path='...', factors='...', size=...)\""
            raise invalid(option, str(path), f"left out if '{images[0]}' is to be classified", hint=hint)
    table = (
        str(factors.expanduser().resolve()) if factors else read_config(RunFolder.open(run)).data_options.get("factors")
    )
    if str(out.expanduser().resolve()) == table:
        raise invalid("out", str(out), "another file than the table of factors of the run")
    device = find_device(device)
    chosen = images[0] if images and len(images) == 1 else images or None  # a single name may be that of a data set
    frame = classes_of(run if images else _open_run(run, data, factors, device), chosen, device=device)
    text = frame.to_csv(index=False, float_format="%.4f").encode("utf-8", "surrogateescape")
    content = text.decode("utf-8", "backslashreplace")  # names of files may be any bytes
    write_files(out, {out: content.encode()})
    for line in accuracy_lines(frame):
        out_console.print(line)
    out_console.print(bold(out) + f": classes of {len(frame)} observations.")


def export(
    run: Annotated[Path, typer.Argument(help="a run folder")],
    format: Annotated[str, typer.Option(help="torch (a .pt2 for torch.export.load) or onnx")] = "torch",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="the file to write")] = None,
) -> None:
    """Export the encoder as a program that runs without unweave."""
    from unweave.integrations.export import export as write_export
    from unweave.model import load

    trained = load(run, with_data=False)
    made = write_export(trained, out or run / f"encoder.{'onnx' if format == 'onnx' else 'pt2'}", format)
    out_console.print(bold(made) + f": images [N, {', '.join(map(str, trained.data.shape))}] in 0..1 -> codes.")
