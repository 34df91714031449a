"""The commands `unweave list` and `unweave info`."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from unweave.errors import check_choice


def list_(what: Annotated[str, typer.Argument(help="methods, metrics, data or supervision")]) -> None:
    """List the available methods, metrics, data sets or kinds of supervision."""
    from unweave.data import DATASETS
    from unweave.data.supervision import SUPERVISION_KINDS
    from unweave.methods import METHODS
    from unweave.metrics import METRICS

    rows: dict[str, list[tuple[str, str]]] = {
        "methods": [(name, cls.paper) for name, cls in METHODS.items()],
        "metrics": [(name, metric.description) for name, metric in METRICS.items()],
        "data": [(name, (inspect.getdoc(cls) or "").split("\n")[0]) for name, cls in DATASETS.items()],
        "supervision": [
            (escape(kind.syntax), (inspect.getdoc(kind) or "").split("\n")[0]) for kind in SUPERVISION_KINDS
        ],
    }
    check_choice("what", what, rows)
    table = Table(what, "", show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, about in rows[what]:
        table.add_row(f"[bold]{name}[/bold]", about)
    Console().print(table)


def info(method: Annotated[str, typer.Argument(help="name of a method; see: unweave list methods")]) -> None:
    """Show the equation of a method, and its settings with default and published values."""
    from unweave.config.settings import all_settings, format_value
    from unweave.contract import setting_help
    from unweave.methods.semi_supervised import accepts_label_term
    from unweave.training.build import find_method

    cls = find_method(method)
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
