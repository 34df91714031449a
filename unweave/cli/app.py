"""The command line: parses and calls."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from unweave.cli.about import info, list_
from unweave.cli.data import (
    ChannelsOption,
    FactorsOption,
    FitOption,
    GroupsOption,
    PairsOption,
    SizeOption,
    open_data,
    print_label_notes,
    supervision_from_files,
)
from unweave.cli.data import app as data_app
from unweave.cli.runs import DeviceOption, compare, encode, evaluate, export, predict, report
from unweave.cli.study import app as study_app
from unweave.errors import UserError, UserNotice

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


@app.command()
def train(
    context: typer.Context,
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
    lr: Annotated[
        str | None, typer.Option(help="learning rate: a number, linear(start, end, steps), or x0.1, times the method's")
    ] = None,
    optimizer: Annotated[str, typer.Option(help="adam, or sgd: gradient descent with momentum")] = "adam",
    clip: Annotated[float, typer.Option(help="largest norm of a player's gradient; 0 is off")] = 0.0,
    init: Annotated[str, typer.Option(help="how weights begin: glorot, or normal(0.02), a deviation")] = "glorot",
    supervision: Annotated[
        str | None, typer.Option(help="'pairs(k=1)', 'labels(n=100)', 'groups(by=[...], size=2)', ...")
    ] = None,
    device: DeviceOption = "auto",
    engine: Annotated[str, typer.Option(help="auto, loop, compiled or graph")] = "auto",
    precision: Annotated[str, typer.Option(help="float32, tf32 or bf16")] = "float32",
    out: Annotated[Path | None, typer.Option(help="the run folder to make")] = None,
    resume: Annotated[Path | None, typer.Option(help="go on with this interrupted run, or folder of runs")] = None,
    strategy: Annotated[str, typer.Option(help="of many runs: auto, loop or batched")] = "auto",
    log_every: Annotated[int, typer.Option(help="steps between two records of the log")] = 100,
    checkpoint_every: Annotated[int, typer.Option(help="steps between two checkpoints")] = 1000,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress display")] = False,
) -> None:
    """Train METHOD on a data set into a run folder; with several values or seeds, all of them together."""
    from unweave.cli.progress import progress_observer
    from unweave.cli.sweep import read_seeds, resume_sweep, split_values, sweep
    from unweave.model import relocated_data
    from unweave.report import save_samples
    from unweave.training.build import find_method
    from unweave.training.trainer import resume as resume_run
    from unweave.training.trainer import train as start_run

    chosen = None if device == "auto" else device
    if resume is not None:
        moved = _given(context)
        if resume.is_dir() and not (resume / "config.json").exists():
            if moved:
                raise UserError(
                    f"{moved[0]} '{context.params[moved[0]]}' is for one run; '{resume}' is a folder of them"
                )
            resume_sweep(resume, strategy=strategy, device=chosen, quiet=quiet, console=out_console)
            return
        place = relocated_data(resume, Path(data) if "data" in moved else None, factors)
        with progress_observer(quiet) as observe:
            trained = resume_run(resume, data=place, device=chosen, observe=observe)
    else:
        if not method:
            raise UserError("method is missing; see: unweave list methods")
        for name in method.split(","):
            find_method(name.strip())  # before a folder is read, which may take long
        supervision = supervision_from_files(supervision, pairs, groups)
        listed = supervision if pairs and supervision else ""
        own = dict(factors=factors, groups=groups, size=size, fit=fit, channels=channels)
        dataset = open_data(data, quiet, listed, **own)
        print_label_notes(supervision, dataset, quiet)
        options: dict[str, Any] = dict(steps=steps, batch=batch, seed=seed, lr=lr, clip=clip, device=device)
        options |= dict(optimizer=optimizer, init=init, supervision=supervision, engine=engine, precision=precision)
        options |= dict(log_every=log_every, checkpoint_every=checkpoint_every)
        settings: dict[str, Any] = _settings(set or [], reserved={**options, "out": out, "observe": None})
        if seeds is not None or "," in method or any(len(split_values(value)) > 1 for value in settings.values()):
            del options["seed"]
            many = read_seeds(seeds) if seeds is not None else [seed]
            where: dict[str, Any] = dict(out=out, strategy=strategy, quiet=quiet, console=out_console)
            sweep(method, dataset, settings, many, options, **where)
            return
        with progress_observer(quiet) as observe:
            trained = start_run(method, dataset, out=out, observe=observe, **options, **settings)
    save_samples(trained)
    out_console.print(f"[bold]{trained.folder.path}[/bold] is trained. Next:")
    out_console.print(
        f"  unweave evaluate {trained.folder.path}\n  unweave report {trained.folder.path} -o report.html"
    )
    if trained.representation.classify is not None:
        out_console.print(f"  unweave predict {trained.folder.path} -o predicted.csv")


def _given(context: typer.Context) -> list[str]:
    """Of the options that go with --resume those given that say where the data are now; others are refused."""
    given = [name for name in context.params if str(context.get_parameter_source(name)).endswith("COMMANDLINE")]
    for name in given:
        if name not in ("resume", "data", "factors", "device", "strategy", "quiet"):
            value = context.params[name]
            told = ", ".join(map(str, value)) if isinstance(value, list) else value
            raise UserError(f"{name} '{told}' cannot be given with --resume; the run knows its own")
    return [name for name in ("data", "factors") if name in given]


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


for command in (evaluate, report, compare, encode, predict, export):
    app.command()(command)
app.command("list")(list_)
app.command()(info)


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="folder for runs and report")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="everything random follows from it")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="a few steps only, to see that it runs")] = False,
) -> None:
    """Train two models on built-in data and write a report that compares them; about five minutes on two cores."""
    from unweave.cli.demo import run_demo

    run_demo(out, seed, quick, out_console)


def run_command(call: Callable[[], Any]) -> int:
    """Run a command; what a user can mend is one line and exit code 2, never a traceback."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserNotice)  # the commands tell of it in their own way
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
        sys.exit(run_command(call))
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
