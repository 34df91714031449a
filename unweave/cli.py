"""The command line: parses and calls."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from unweave.contract import UserError

app = typer.Typer(
    help="Find the separate causes in your data: train any disentangling method, score it, look at it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
out_console = Console()
error_console = Console(stderr=True, soft_wrap=True, highlight=False)

DataOption = Annotated[str, typer.Option(help="data set, with options: sprites, 'rooms(size=32)'; see list data")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps")]


@app.command()
def train(
    method: Annotated[str, typer.Argument(help="which method; see: unweave list methods")] = "",
    data: DataOption = "sprites",
    set: Annotated[list[str] | None, typer.Option(help="a setting of the method, beta=6; repeatable")] = None,
    steps: Annotated[int, typer.Option(help="training steps")] = 10_000,
    batch: Annotated[int, typer.Option(help="observations (or pairs) a step")] = 64,
    seed: Annotated[int, typer.Option(help="everything random follows from it")] = 0,
    lr: Annotated[str | None, typer.Option(help="learning rate: a number or linear(start, end, steps)")] = None,
    clip: Annotated[float, typer.Option(help="largest norm of a player's gradient; 0 is off")] = 0.0,
    supervision: Annotated[str | None, typer.Option(help="none, 'pairs(k=1)' or 'pairs(k=\"uniform\")'")] = None,
    device: DeviceOption = "auto",
    engine: Annotated[str, typer.Option(help="auto, loop, compiled or graph")] = "auto",
    precision: Annotated[str, typer.Option(help="float32, tf32 or bf16")] = "float32",
    out: Annotated[Path | None, typer.Option(help="the run folder to make")] = None,
    resume: Annotated[Path | None, typer.Option(help="go on with this interrupted run")] = None,
    log_every: Annotated[int, typer.Option(help="steps between two records of the log")] = 100,
    checkpoint_every: Annotated[int, typer.Option(help="steps between two checkpoints")] = 1000,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress display")] = False,
) -> None:
    """Train METHOD on a data set into a run folder."""
    from unweave.progress import shown
    from unweave.report import save_samples
    from unweave.train import resume as resume_run
    from unweave.train import train as start_run

    with shown(quiet) as observe:
        if resume is not None:
            if method:
                raise UserError(f"method '{method}' cannot be given with --resume; the run knows its method")
            trained = resume_run(resume, device=None if device == "auto" else device, observe=observe)
        else:
            if not method:
                raise UserError("method is missing; see: unweave list methods")
            options: dict[str, Any] = dict(steps=steps, batch=batch, seed=seed, lr=lr, clip=clip, device=device)
            options |= dict(supervision=supervision, engine=engine, precision=precision, out=out, observe=observe)
            options |= dict(log_every=log_every, checkpoint_every=checkpoint_every)
            options |= _settings(set or [], reserved=options)
            trained = start_run(method, data, **options)
    save_samples(trained)
    out_console.print(f"[bold]{trained.folder.path}[/bold] is trained. Next:")
    out_console.print(
        f"  unweave evaluate {trained.folder.path}\n  unweave report {trained.folder.path} -o report.html"
    )


def _settings(pairs: list[str], reserved: dict[str, Any]) -> dict[str, str]:
    """["beta=6"] -> {"beta": "6"}."""
    found: dict[str, str] = {}
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
    run: Annotated[Path, typer.Argument(help="a run folder")],
    metrics: Annotated[str, typer.Option(help="all, or names with commas; see: unweave list metrics")] = "all",
    rows: Annotated[str, typer.Option(help="how many observations to encode, or all")] = "10000",
    seed: Annotated[int, typer.Option(help="draws the observations")] = 0,
    device: DeviceOption = "auto",
) -> None:
    """Score a run; the scores also go into its scores.json."""
    from unweave.evaluate import evaluate as score
    from unweave.metrics import METRICS
    from unweave.train import find_device

    names = None if metrics == "all" else [name.strip() for name in metrics.split(",")]
    if rows != "all" and not rows.isdigit():
        raise UserError(f"rows '{rows}' is not understood; use a whole number, or all")
    count = None if rows == "all" else int(rows)
    result = score(run, metrics=names, rows=count, seed=seed, device=find_device(device))
    table = Table("score", "value", "what it means", title=str(run), title_justify="left")
    for name, value in result.scores.items():
        table.add_row(METRICS[name].title, f"{value:.3f}", METRICS[name].sentence)
    out_console.print(table)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="one or more run folders")],
    out: Annotated[Path, typer.Option("--out", "-o", help="the HTML file to write")] = Path("report.html"),
    device: DeviceOption = "auto",
) -> None:
    """Write one self-contained HTML page about one run or several."""
    from unweave.report import report as write_report
    from unweave.train import find_device

    made = write_report(runs, out, device=find_device(device))
    out_console.print(f"[bold]{made}[/bold] is written; open it in a browser.")


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


@app.command("list")
def list_(what: Annotated[str, typer.Argument(help="methods, metrics or data")]) -> None:
    """What there is."""
    from unweave.data import DATASETS
    from unweave.methods import METHODS
    from unweave.metrics import METRICS

    rows: dict[str, list[tuple[str, str]]] = {
        "methods": [(name, cls.paper) for name, cls in METHODS.items()],
        "metrics": [(name, metric.sentence) for name, metric in METRICS.items()],
        "data": [(name, (inspect.getdoc(cls) or "").split("\n")[0]) for name, cls in DATASETS.items()],
    }
    if what not in rows:
        raise UserError(f"what '{what}' is unknown; use methods, metrics or data")
    table = Table(what, "", show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, about in rows[what]:
        table.add_row(f"[bold]{name}[/bold]", about)
    out_console.print(table)


@app.command()
def info(method: Annotated[str, typer.Argument(help="a method; see: unweave list methods")]) -> None:
    """A method's equation, its settings with their defaults, and the paper's values."""
    from unweave.contract import knobs, static_arguments
    from unweave.train import find_method

    cls = find_method(method)
    out_console.print(f"[bold]{method}[/bold]  {cls.__doc__}\n{cls.paper}\n", highlight=False)
    out_console.print("It minimises\n  " + cls.equation + "\n", markup=False, highlight=False)
    table = Table("--set", "default", "published", "meaning", box=None, padding=(0, 2, 0, 0))
    for name, knob in knobs(cls).items():
        table.add_row(name, f"{knob.default:g}", knob.paper, knob.about)
    for name, parameter in static_arguments(cls).items():
        table.add_row(name, str(parameter.default), "", STATIC_HELP.get(name, ""))
    out_console.print(table)


STATIC_HELP = {
    "latents": "size of the code",
    "net": "locatello, burgess, small or mlp",
    "likelihood": "bernoulli, gaussian or laplace, in nats",
    "estimator": "mws (minibatch-weighted) or mss (stratified)",
    "one_batch": "permute the batch that is scored instead of a second one",
    "known_k": "use the number of changed factors of each pair",
}


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
