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
from unweave.cli.data import app as data_app
from unweave.cli.runs import compare, encode, evaluate, export, predict, report
from unweave.cli.study import app as study_app
from unweave.cli.train import train
from unweave.errors import Interrupted, UserError, UserNotice

app = typer.Typer(
    help="Learn disentangled representations: train any method, score it, look at it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(data_app, name="data")
app.add_typer(study_app, name="study")
out_console = Console()
error_console = Console(stderr=True, soft_wrap=True, highlight=False)


for command in (train, evaluate, report, compare, encode, predict, export):
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
    """Run a command and return its exit code; an error that the user can fix is one line, never a traceback."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserNotice)  # the commands print them
            call()
    except UserError as error:
        error_console.print(f"[red]error:[/red] {_plain(error)}")
        return 2
    except Interrupted as error:
        error_console.print(_plain(error))
        return error.exit_code
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
        if code == 130:  # some versions of typer return it after an interrupt
            raise typer.Abort
        if isinstance(code, int) and code:
            raise SystemExit(code)

    try:
        sys.exit(run_command(call))
    except (typer.Abort, KeyboardInterrupt):
        error_console.print("interrupted; resume a run with: unweave train --resume RUN")
        sys.exit(130)
    except usage_error as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]
        else:
            error_console.print(f"[red]error:[/red] {_plain(error.format_message())}")  # type: ignore[attr-defined]
        sys.exit(2)


if __name__ == "__main__":
    main()
