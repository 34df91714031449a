"""The Jinja environment of all pages, and writing files."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from unweave.errors import UserError, invalid
from unweave.report.formatting import format_number, percent, pretty
from unweave.runs import write_atomic

HERE = Path(__file__).parent


@cache
def environment() -> Environment:
    loader = FileSystemLoader([HERE / "templates", HERE / "panels"])
    made = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    made.filters |= {"number": format_number, "percent": percent, "pretty": pretty}
    return made


def render(template: str, **context: Any) -> Markup:
    return Markup(environment().get_template(template).render(context))


def render_page(page: str, **context: Any) -> str:
    """Return the HTML of the page "run", "sweep" or "study" with its style sheets."""
    sheets = {"run": ["base"], "sweep": ["base", "sweep"], "study": ["base", "sweep", "study"]}[page]
    style = Markup("".join((HERE / "templates" / f"{name}.css").read_text() for name in sheets))
    return render(f"{page}.html", style=style, **context)


def check_file(out: str | Path) -> Path:
    """Return the path of a page to be written; raise if it is a folder."""
    if Path(out).is_dir():
        raise invalid("out", str(out), "the name of a file, such as report.html", hint="this is a folder")
    return Path(out)


def write_files(out: str | Path, contents: Mapping[Path, bytes], *, argument: str = "out") -> None:
    """Write files and their folders; raise a UserError that names `out` if that fails."""
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, content)
    except OSError as error:
        message = f"{argument} '{out}' cannot be written: {error.strerror or error}; choose another place"
        raise UserError(message, argument=argument, value=str(out), accepted="a writable place") from error
