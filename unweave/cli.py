"""The command line: parses and calls."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from unweave.cli_about import info, list_
from unweave.cli_data import (
    ChannelsOption,
    FactorsOption,
    FitOption,
    GroupsOption,
    PairsOption,
    SizeOption,
    open_data,
    told_by_files,
)
from unweave.cli_data import app as data_app
from unweave.cli_study import app as study_app
from unweave.contract import UserError

app = typer.Typer(
    help="Find the separate causes in your data: train any disentangling method, score it, look at it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(data_app, name="data")
app.add_typer(study_app, name="study")
out_console = Console()
error_console = Console(stderr=True, soft_wrap=True, highlight=False)

DataOption = Annotated[str, typer.Option(help="sprites, 'rooms(size=32)', your own folder or .npz; see data list")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps")]


@app.command()
def train(
    method: Annotated[str, typer.Argument(help="which method; see: unweave list methods")] = "",
    data: DataOption = "sprites",
    factors: FactorsOption = None,
    groups: GroupsOption = None,
    pairs: PairsOption = None,
    size: SizeOption = None,
    fit: FitOption = None,
    channels: ChannelsOption = None,
    set: Annotated[
        list[str] | None, typer.Option(help="a setting of the method, beta=6, or several, beta=1,2,4")
    ] = None,
    steps: Annotated[int, typer.Option(help="training steps")] = 10_000,
    batch: Annotated[int, typer.Option(help="observations (or pairs) a step")] = 64,
    seed: Annotated[int, typer.Option(help="everything random follows from it")] = 0,
    seeds: Annotated[str | None, typer.Option(help="many runs, trained together: 0-9 or 0,3,5")] = None,
    lr: Annotated[str | None, typer.Option(help="learning rate: a number or linear(start, end, steps)")] = None,
    clip: Annotated[float, typer.Option(help="largest norm of a player's gradient; 0 is off")] = 0.0,
    supervision: Annotated[
        str | None, typer.Option(help="'pairs(k=1)', 'labels(n=100)', 'groups(by=[...], size=2)', ...")
    ] = None,
    device: DeviceOption = "auto",
    engine: Annotated[str, typer.Option(help="auto, loop, compiled or graph")] = "auto",
    precision: Annotated[str, typer.Option(help="float32, tf32 or bf16")] = "float32",
    out: Annotated[Path | None, typer.Option(help="the run folder to make")] = None,
    resume: Annotated[Path | None, typer.Option(help="go on with this interrupted run, or folder of runs")] = None,
    strategy: Annotated[str, typer.Option(help="of many runs: auto, loop, streams, vmap or batched")] = "auto",
    log_every: Annotated[int, typer.Option(help="steps between two records of the log")] = 100,
    checkpoint_every: Annotated[int, typer.Option(help="steps between two checkpoints")] = 1000,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress display")] = False,
) -> None:
    """Train METHOD on a data set into a run folder; with several values or seeds, all of them together."""
    from unweave.build import find_method
    from unweave.cli_sweep import read_seeds, resume_sweep, split_values, sweep
    from unweave.progress import shown
    from unweave.report import save_samples
    from unweave.train import resume as resume_run
    from unweave.train import train as start_run

    chosen = None if device == "auto" else device
    if resume is not None:
        if method:
            raise UserError(f"method '{method}' cannot be given with --resume; the run knows its method")
        if resume.is_dir() and not (resume / "config.json").exists():
            resume_sweep(resume, strategy=strategy, device=chosen, quiet=quiet, console=out_console)
            return
        with shown(quiet) as observe:
            trained = resume_run(resume, device=chosen, observe=observe)
    else:
        if not method:
            raise UserError("method is missing; see: unweave list methods")
        for name in method.split(","):
            find_method(name.strip())  # before a folder is read, which may take long
        supervision = told_by_files(supervision, pairs, groups)
        listed = supervision if pairs and supervision else ""
        own = dict(factors=factors, groups=groups, size=size, fit=fit, channels=channels)
        dataset = open_data(data, quiet, listed, **own)
        options: dict[str, Any] = dict(steps=steps, batch=batch, seed=seed, lr=lr, clip=clip, device=device)
        options |= dict(supervision=supervision, engine=engine, precision=precision)
        options |= dict(log_every=log_every, checkpoint_every=checkpoint_every)
        settings: dict[str, Any] = _settings(set or [], reserved={**options, "out": out, "observe": None})
        if seeds is not None or "," in method or any(len(split_values(value)) > 1 for value in settings.values()):
            del options["seed"]
            many = read_seeds(seeds) if seeds is not None else [seed]
            where: dict[str, Any] = dict(out=out, strategy=strategy, quiet=quiet, console=out_console)
            sweep(method, dataset, settings, many, options, **where)
            return
        with shown(quiet) as observe:
            trained = start_run(method, dataset, out=out, observe=observe, **options, **settings)
    save_samples(trained)
    out_console.print(f"[bold]{trained.folder.path}[/bold] is trained. Next:")
    out_console.print(
        f"  unweave evaluate {trained.folder.path}\n  unweave report {trained.folder.path} -o report.html"
    )
    if trained.representation.classify is not None:
        out_console.print(f"  unweave predict {trained.folder.path} -o predicted.csv")


def _settings(pairs: list[str], reserved: dict[str, Any]) -> dict[str, Any]:
    """["beta=6"] -> {"beta": "6"}."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise UserError(f"set '{pair}' is not understood; use name=value, such as --set beta=6")
        if name.strip() in reserved:
            raise UserError(f"set '{pair}': {name.strip()} is an option of its own; use --{name.strip()} {value}")
        found[name.strip()] = value.strip()
    return found


@app.command()
def evaluate(
    what: Annotated[Path, typer.Argument(help="a run folder, or an .npz with arrays codes and factors")],
    metrics: Annotated[str, typer.Option(help="quick, all, or names with commas; see: unweave list metrics")] = "quick",
    rows: Annotated[str | None, typer.Option(help="how many observations of a run to encode, or all; 10000")] = None,
    codes: Annotated[str, typer.Option(help="of a run: mean, of each posterior, or sampled, a draw from it")] = "mean",
    resamples: Annotated[int, typer.Option(help="draw the table again this often for intervals; 200 is good")] = 0,
    seed: Annotated[int, typer.Option(help="draws the observations, splits and resamples")] = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="folder for scores.json and heatmap.png")] = None,
    device: DeviceOption = "auto",
) -> None:
    """Score a run or plain arrays; writes scores.json and heatmap.png, into the run or beside the .npz."""
    from unweave.build import find_device
    from unweave.evaluate import evaluate as score
    from unweave.evaluate import score_file
    from unweave.report.heatmap import score_rows, write_scores

    named = metrics if metrics in ("quick", "all") else [name.strip() for name in metrics.split(",")]
    options: dict[str, Any] = dict(metrics=named, resamples=resamples, seed=seed, device=find_device(device))
    if what.suffix == ".npz":
        if rows is not None:
            raise UserError(f"rows '{rows}' is for runs; the arrays of '{what}' are scored as they are")
        if codes != "mean":
            raise UserError(f"codes '{codes}' is for runs; the arrays of '{what}' are scored as they are")
        result = score_file(what, **options)
    else:
        if rows not in (None, "all") and not str(rows).isdigit():
            raise UserError(f"rows '{rows}' is not understood; use a whole number, or all")
        result = score(what, rows=None if rows == "all" else int(rows or 10_000), codes=codes, **options)
    beside = what.with_suffix(".scores") if what.suffix == ".npz" else what / "sampled" if codes == "sampled" else what
    folder = write_scores(result, out or beside, what)
    title = f"{what}, sampled codes" if codes == "sampled" else str(what)
    table = Table("score", "value", "95 %", "what it means, by whose definition", title=title, title_justify="left")
    for row in score_rows(result):
        table.add_row(*row)
    if not result.intervals:
        table.columns.pop(2)
    out_console.print(table)
    for name, why in result.skipped.items():
        out_console.print(f"{name} is left out: {why}.", style="dim", highlight=False)
    out_console.print(f"[bold]{folder}[/bold]: scores.json and heatmap.png.")


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="one or more run folders")],
    out: Annotated[Path, typer.Option("--out", "-o", help="the HTML file to write")] = Path("report.html"),
    device: DeviceOption = "auto",
) -> None:
    """Write one self-contained HTML page about one run or several."""
    from unweave.build import find_device
    from unweave.report import report as write_report

    made = write_report(runs, out, device=find_device(device))
    out_console.print(f"[bold]{made}[/bold] is written; open it in a browser.")


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="run folders, or folders of them")],
    out: Annotated[Path, typer.Option("--out", "-o", help="folder for scores.csv and compare.html")] = Path("compare"),
    metrics: Annotated[str, typer.Option(help="quick, all, or names with commas; see: unweave list metrics")] = "quick",
    seed: Annotated[int, typer.Option(help="draws the observations, splits and votes")] = 0,
    device: DeviceOption = "auto",
) -> None:
    """Score many runs and put them side by side: a table, scores.csv and one HTML page."""
    from unweave.build import find_device
    from unweave.cli_sweep import show
    from unweave.compare import find_runs, score_runs, unfinished

    found = find_runs(runs)
    if left := unfinished(found):
        raise UserError(f"run '{left[0]}' is not finished ({len(left)} of {len(found)}); go on with --resume first")
    named = metrics if metrics in ("quick", "all") else [name.strip() for name in metrics.split(",")]
    frame = score_runs(found, metrics=named, seed=seed, device=find_device(device))
    out.mkdir(parents=True, exist_ok=True)
    show(frame, out, out_console)


@app.command()
def encode(
    run: Annotated[Path, typer.Argument(help="a run folder")],
    images: Annotated[list[Path], typer.Argument(help="picture files or folders of them")],
    out: Annotated[Path, typer.Option("--out", "-o", help="the .npz to write")] = Path("codes.npz"),
) -> None:
    """Codes of your pictures: arrays `codes` and `files` in an .npz."""
    from unweave.evaluate import load
    from unweave.export import encode_files

    count = encode_files(load(run), images, out)
    out_console.print(f"[bold]{out}[/bold]: codes of {count} pictures.")


@app.command()
def predict(
    run: Annotated[Path, typer.Argument(help="the folder of a run that learned from labels, such as one of m2")],
    what: Annotated[
        list[str] | None, typer.Argument(help="picture files, folders of them, or a data set; else the run's own data")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="the table to write")] = Path("predicted.csv"),
    device: DeviceOption = "auto",
) -> None:
    """The class of every picture and how sure the model is, as a .csv."""
    from unweave.build import find_device
    from unweave.evaluate import load
    from unweave.export import write_output
    from unweave.predict import accuracy_lines
    from unweave.predict import predict as classes_of

    trained = load(run, device=find_device(device))
    if str(out.expanduser().resolve()) == trained.config["data_options"].get("factors"):
        raise UserError(f"out '{out}' is the table the run learned from; give another name")
    frame = classes_of(trained, what[0] if what and len(what) == 1 else what or None)
    write_output(out, frame.to_csv(index=False, float_format="%.4f").encode())
    for line in accuracy_lines(frame):
        out_console.print(line, highlight=False, soft_wrap=True)
    out_console.print(f"[bold]{out}[/bold]: classes of {len(frame)} observations.")


@app.command()
def export(
    run: Annotated[Path, typer.Argument(help="a run folder")],
    format: Annotated[str, typer.Option(help="torch (a .pt2 for torch.export.load) or onnx")] = "torch",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="the file to write")] = None,
) -> None:
    """Save the encoder as a program that runs without unweave."""
    from unweave.evaluate import load
    from unweave.export import export as write_export

    trained = load(run)
    made = write_export(trained, out or run / f"encoder.{'onnx' if format == 'onnx' else 'pt2'}", format)
    out_console.print(f"[bold]{made}[/bold]: images [N, {', '.join(map(str, trained.data.shape))}] in 0..1 -> codes.")


app.command("list")(list_)
app.command()(info)


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="folder for runs and report")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="everything random follows from it")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="a few steps only, to see that it runs")] = False,
) -> None:
    """Train two models on built-in data and write a report that compares them; about five minutes on two cores."""
    from unweave.demo import run_demo

    run_demo(out, seed, quick, out_console)


def guarded(call: Callable[[], Any]) -> int:
    """Run a command; what a user can mend is one line and exit code 2, never a traceback."""
    try:
        call()
    except UserError as error:
        error_console.print(f"[red]error:[/red] {_plain(error)}")
        return 2
    except OSError as error:
        name = f"'{error.filename}': " if error.filename else ""
        error_console.print(f"[red]error:[/red] {_plain(name + (error.strerror or str(error)))}")
        return 2
    return 0


def _plain(message: object) -> str:
    return " ".join(str(message).split()).replace("[", "\\[")


def main() -> None:
    """The console script."""
    usage_error: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

    def call() -> None:
        code = app(standalone_mode=False)
        if code == 130:  # how some versions of typer tell of an interrupt
            raise typer.Abort
        if isinstance(code, int) and code:
            raise SystemExit(code)

    try:
        sys.exit(guarded(call))
    except (typer.Abort, KeyboardInterrupt):
        error_console.print("interrupted; a run goes on with: unweave train --resume RUN")
        sys.exit(130)
    except usage_error as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]
        else:
            error_console.print(f"[red]error:[/red] {_plain(error.format_message())}")  # type: ignore[attr-defined]
        sys.exit(2)


if __name__ == "__main__":
    main()
