"""The commands `unweave list` and `unweave info`."""

import inspect
from typing import Annotated

import typer
from rich.table import Table

from unweave.cli import bold, out_console
from unweave.errors import check_choice


def list_(what: Annotated[str, typer.Argument(help="methods, metrics, data or supervision")]) -> None:
    """List the available methods, metrics, data sets or kinds of supervision."""
    check_choice("list argument", what, ("methods", "metrics", "data", "supervision"))
    table = Table(what, "", show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, about in _descriptions(what):
        table.add_row(bold(name), about)
    out_console.print(table)


def _descriptions(what: str) -> list[tuple[str, str]]:
    if what == "methods":
        from unweave.methods import METHODS

        return [(name, cls.paper) for name, cls in METHODS.items()]
    if what == "metrics":
        from unweave.metrics import METRICS

        return [(name, metric.description) for name, metric in METRICS.items()]
    from unweave.data import DATASETS
    from unweave.data.supervision import SUPERVISION_KINDS

    listed = DATASETS.items() if what == "data" else [(kind.syntax, kind) for kind in SUPERVISION_KINDS]
    return [(name, (inspect.getdoc(cls) or "").partition("\n")[0]) for name, cls in listed]


def info(method: Annotated[str, typer.Argument(help="name of a method; see: unweave list methods")]) -> None:
    """Show the equation of a method, and its settings with default and published values."""
    from unweave.config.settings import all_settings, format_value
    from unweave.contract import setting_help
    from unweave.methods import METHODS
    from unweave.methods.semi_supervised import accepts_label_term

    cls = METHODS[check_choice("method", method, METHODS)]
    out_console.print(bold(method) + f"  {cls.__doc__}\n{cls.paper}\n")
    out_console.print("It minimises\n  " + cls.equation + "\n")
    table = Table("--set", "default", "published", "meaning", box=None, padding=(0, 2, 0, 0))
    (static, traced), meaning = all_settings(cls), setting_help(cls)
    for name, param in traced.items():
        table.add_row(name, format_value(param.default), param.paper, meaning[name])
    for name, parameter in static.items():
        table.add_row(name, format_value(parameter.default), "", meaning[name])
    out_console.print(table)
    if cls.example_supervision:
        example = f'unweave train {method} --data rooms --supervision "{cls.example_supervision}"'
        out_console.print(f"\nExample: {example}")
    if accepts_label_term(cls):
        more = "--supervision 'labels(n=100)' --set semi_supervised=xent (or l2, cov) --set gamma_sup=4"
        out_console.print(f"\nWith a few labels: {more}")
