"""The command line: all commands, and how their errors are shown."""

import gc
import os
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from unweave.cli import error_console, printable
from unweave.cli.about import info, list_
from unweave.cli.data import app as data_app
from unweave.cli.runs import compare, encode, evaluate, export, predict, report
from unweave.cli.study import app as study_app
from unweave.cli.train import train
from unweave.config.run_config import ALIASES
from unweave.errors import DataNotice, Interrupted, UserError, UserNotice, is_out_of_memory


class _Stopped(Exception):
    """A KeyboardInterrupt in a form that typer does not replace by an exit code."""


class _Commands(TyperGroup):
    def invoke(self, context: typer.Context) -> Any:  # type: ignore[override]
        try:
            return super().invoke(context)
        except KeyboardInterrupt as error:
            raise _Stopped from error


app = typer.Typer(
    cls=_Commands,
    help="Learn disentangled representations: train any method, score it, look at it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(data_app, name="data")
app.add_typer(study_app, name="study")

app.command(context_settings={"token_normalize_func": lambda name: ALIASES.get(name, name)})(train)
for command in (evaluate, report, compare, encode, predict, export):
    app.command()(command)
app.command("list")(list_)
app.command()(info)


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="folder for runs and report")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="seed of all random numbers")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="train for a few steps only")] = False,
) -> None:
    """Train two models on built-in data and write a report that compares them; a few minutes on two cores."""
    from unweave.cli.demo import run_demo

    run_demo(out, seed, quick)


def run_command(call: Callable[[], Any]) -> int:
    """Run a command and return its exit code. An error that the user can fix is printed as one line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserNotice)
            warnings.simplefilter("ignore", DataNotice)
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            return call() or 0
    except UserError as error:
        return _show_error(error)
    except _Stopped as stopped:
        cause = stopped.__cause__
        error_console.print(_one_line(cause) or "interrupted")
        return cause.exit_code if isinstance(cause, Interrupted) else 130
    except OSError as error:
        name = f"'{error.filename}': " if error.filename else ""
        return _show_error(name + (error.strerror or str(error)))
    except RecursionError:
        return _show_error("a text or a file is nested too deeply")
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        size = re.search(r"allocate [\d.]+ \w+", str(error))
        wanted = f" to {size[0]}" if size else ""
        return _show_error(f"not enough memory{wanted}; a smaller batch, network or data set needs less")


def _show_error(message: object) -> int:
    error_console.print(Text("error:", "red"), printable(_one_line(message)))
    return 2


def _show_warning(message: Warning | str, category: type[Warning], *location: Any) -> None:
    """Print a notice as one line, and any other warning as Python does."""
    if issubclass(category, UserNotice):
        error_console.print(Text("warning:", "yellow"), printable(_one_line(message)))
    else:
        sys.stderr.write(warnings.formatwarning(message, category, *location[:2]))


def _one_line(message: object) -> str:
    return " ".join(line.strip() for line in str(message).splitlines())


def _expand_user(word: str) -> str:
    """Expand ~ at the begin of a path, also in --out=~/runs, which a shell leaves unchanged."""
    option, path = (word.partition("=")[0] + "=", word.partition("=")[2]) if word.startswith("--") else ("", word)
    return option + os.path.expanduser(path) if path.startswith("~") else word


def main() -> None:
    """The console script."""
    usage_error: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

    try:
        words = list(map(_expand_user, sys.argv[1:]))
        sys.exit(run_command(lambda: app(words, standalone_mode=False)))
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    except usage_error as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]
        else:
            message, details = error.format_message(), getattr(error.__cause__, "errors", None)  # type: ignore[attr-defined]
            if details:  # of a value that pydantic could not convert, which the message lacks
                message = f"{message.partition(',')[0]}, got {details()[0]['input']!r}"
            _show_error(message)
        sys.exit(2)
    finally:
        gc.freeze()  # a garbage collection of torch at exit takes a third of a second
