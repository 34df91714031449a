"""The commands `unweave data`, and the data options of `unweave train`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.padding import Padding
from rich.table import Table

from unweave.cli import bold, error_console, out_console, shell_quote
from unweave.errors import invalid

app = typer.Typer(help="List data sets, and inspect your own.", no_args_is_help=True)

FactorsOption = Annotated[Path | None, typer.Option(help="a .csv or .parquet with the factors of your images")]
GroupsOption = Annotated[Path | None, typer.Option(help="a .csv with a file name and its group per row")]
PairsOption = Annotated[Path | None, typer.Option(help="a .csv with two file names per row, the pairs to train on")]
SizeOption = Annotated[int | None, typer.Option(help="side of your images in pixels; default: 64")]
FitOption = Annotated[str | None, typer.Option(help="images that are not square: crop (default), pad or stretch")]
ChannelsOption = Annotated[str | None, typer.Option(help="gray, rgb or auto (default): gray if no image has colour")]


def open_data(text: str, quiet: bool = False, supervision: str = "", **options: Any) -> Any:
    """Load the data set with these options and print a summary of it and of the supervision.

    If quiet, print warnings only.
    """
    from unweave.data import explain, load_data
    from unweave.data.user.inspection import data_summary, image_warnings, skipped_files

    data = load_data(text, **{name: value for name, value in options.items() if value is not None})
    lines = data_summary(data) + ([explain(supervision, data)] if supervision else [])
    warnings = skipped_files(data) if quiet else []
    for line in [*([] if quiet else lines), *(f"warning: {line}" for line in [*warnings, *image_warnings(data)])]:
        error_console.print(line)
    return data


def print_label_notes(supervision: Any, data: Any, quiet: bool) -> None:
    """Print how labels are made from factors if that may not be intended; if quiet, as warnings."""
    for line in supervision.warnings(data):
        error_console.print(f"warning: {line}" if quiet else line)


def supervision_from_files(supervision: str | None, pairs: Path | None, groups: Path | None) -> str | None:
    """Return the supervision that is given as text, or by a file with pairs or groups."""
    from unweave.data.callspec import call_text

    if pairs is not None:
        if other := supervision or (groups and f"--groups {groups}"):
            raise invalid("pairs", str(pairs), f"left out with '{other}': a run has one kind of supervision")
        return call_text("pairs", {"file": str(pairs)})
    return "groups(by=['group'], size=2)" if groups is not None and supervision is None else supervision


@app.command("inspect")
def inspect_(
    path: Annotated[str, typer.Argument(help="a folder, a file, or the name of a data set; see: data list")],
    factors: FactorsOption = None,
    groups: GroupsOption = None,
    size: SizeOption = None,
    fit: FitOption = None,
    channels: ChannelsOption = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="folder for the contact sheets")] = None,
) -> None:
    """Describe and draw the data, how they are preprocessed, and each file that cannot be used."""
    from unweave.data import load_data
    from unweave.data.user.inspection import describe
    from unweave.report.contact_sheet import save_sheets

    given = dict(factors=factors, groups=groups, size=size, fit=fit, channels=channels)
    options = {name: value for name, value in given.items() if value is not None}
    data = load_data(path, **options)
    made = save_sheets(data, out or Path(f"inspect-{Path(path).stem or 'data'}"), path)
    for section in describe(data):
        out_console.print(bold(section.heading))
        _print_rows(section.rows)
    out_console.print(bold("Drawn"))
    _print_rows([(str(file),) for file in made])
    words = ["unweave", "train", "ml_vae" if groups else "beta_vae", "--data", path]
    words += [word for name, value in options.items() for word in (f"--{name}", str(value))]
    out_console.print(bold("Train on it"))
    _print_rows([(" ".join(map(shell_quote, words)),)])


def _print_rows(rows: Sequence[tuple[str, ...]]) -> None:
    """Print rows of several cells as a table, and single cells as lines."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for row in rows:
        if len(row) > 1:
            table.add_row(*row)
    if table.row_count:
        out_console.print(Padding(table, (0, 0, 0, 2)))
    for row in rows:
        if len(row) == 1:
            out_console.print(f"  {row[0]}")
    out_console.print()


@app.command("list")
def list_() -> None:
    """List the data sets, and the formats of your own data."""
    from unweave.data import catalogue
    from unweave.data.user.formats import FORMATS

    table = Table("name", "what it is", "download", "licence", box=None, padding=(0, 2, 0, 0))
    for name, entry in catalogue().items():
        table.add_row(bold(name), entry.about, entry.download, entry.licence)
    out_console.print(table)
    out_console.print("\n", bold("Your own data"), ": pass a path instead of a name", sep="")
    _print_rows(
        [("folder", "image files of any size, in sub-folders too")] + [(", ".join(f.suffixes), f.help) for f in FORMATS]
    )
    out_console.print("Inspect it first: unweave data inspect PATH [--factors table.csv]")
