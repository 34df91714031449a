"""The Jinja environment of all pages."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from unweave.errors import invalid
from unweave.report.formatting import format_number, percent, pretty
from unweave.runs import write_files

HERE = Path(__file__).parent


LOADER = FileSystemLoader([HERE / "templates", HERE / "panels"])
JINJA = Environment(loader=LOADER, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
JINJA.filters |= {"number": format_number, "percent": percent, "pretty": pretty}


def render(template: str, **context: Any) -> Markup:
    return Markup(JINJA.get_template(template).render(context))


def write_page(page: str, path: Path, beside: Mapping[Path, bytes] | None = None, /, **context: Any) -> Path:
    """Write the page "run", "sweep" or "study" with its style sheets, and the files beside it; return its path."""
    sheets = {"run": ["base"], "sweep": ["base", "sweep"], "study": ["base", "sweep", "study"]}[page]
    style = Markup("".join((HERE / "templates" / f"{name}.css").read_text() for name in sheets))
    write_files(path, {**(beside or {}), path: render(f"{page}.html", style=style, **context).encode()})
    return path


def check_file(out: str | Path) -> Path:
    """Return the path of a page to be written; raise if it is a folder."""
    if Path(out).is_dir():
        raise invalid("out", str(out), "the name of a file, such as report.html", hint="this is a folder")
    return Path(out)
