"""The commands `unweave list` and `unweave info`."""

import inspect
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from unweave.errors import check_choice


def list_(what: Annotated[str, typer.Argument(help="methods, metrics, data or supervision")]) -> None:
    """List the available methods, metrics, data sets or kinds of supervision."""
    check_choice("what", what, LISTS)
    table = Table(what, "", show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, about in LISTS[what]():
        table.add_row(f"[bold]{escape(name)}[/bold]", escape(about))
    Console().print(table)


def _methods() -> list[tuple[str, str]]:
    from unweave.methods import METHODS

    return [(name, cls.paper) for name, cls in METHODS.items()]


def _metrics() -> list[tuple[str, str]]:
    from unweave.metrics import METRICS

    return [(name, metric.description) for name, metric in METRICS.items()]


def _data() -> list[tuple[str, str]]:
    from unweave.data import DATASETS

    return [(name, first_line(cls)) for name, cls in DATASETS.items()]


def _supervision() -> list[tuple[str, str]]:
    from unweave.data.supervision import SUPERVISION_KINDS

    return [(kind.syntax, first_line(kind)) for kind in SUPERVISION_KINDS]


def first_line(cls: object) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(cls) or "").split("\n")[0]


LISTS = {"methods": _methods, "metrics": _metrics, "data": _data, "supervision": _supervision}


def info(method: Annotated[str, typer.Argument(help="name of a method; see: unweave list methods")]) -> None:
    """Show the equation of a method, and its settings with default and published values."""
    from unweave.config.settings import all_settings, format_value
    from unweave.contract import setting_help
    from unweave.methods import METHODS
    from unweave.methods.semi_supervised import accepts_label_term

    check_choice("method", method, METHODS)
    cls = METHODS[method]
    Console().print(f"[bold]{method}[/bold]  {cls.__doc__}\n{cls.paper}\n", highlight=False)
    Console().print("It minimises\n  " + cls.equation + "\n", markup=False, highlight=False)
    table = Table("--set", "default", "published", "meaning", box=None, padding=(0, 2, 0, 0))
    (static, traced), meaning = all_settings(cls), setting_help(cls)
    for name, param in traced.items():
        table.add_row(name, format_value(param.default), param.paper, meaning[name])
    for name, parameter in static.items():
        table.add_row(name, format_value(parameter.default), "", meaning[name])
    Console().print(table)
    if cls.example_supervision:
        example = f'unweave train {method} --data rooms --supervision "{cls.example_supervision}"'
        Console().print(f"\nExample: {example}", markup=False, highlight=False, soft_wrap=True)
    if accepts_label_term(cls):
        more = "--supervision 'labels(n=100)' --set semi_supervised=xent (or l2, cov) --set gamma_sup=4"
        Console().print(f"\nWith a few labels: {more}", highlight=False, soft_wrap=True)
