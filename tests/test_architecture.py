"""The architecture page shows the package as it is: its tree, its layers, the functions it names."""

import pkgutil
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def section(heading):
    return re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL).group(1)


def listed():
    """Each folder of the tree in the page with the files listed in it."""
    block = re.search(r"```\n(unweave/\n.*?)```", section("Package layout"), re.DOTALL).group(1)
    folders, above = {}, []
    for line in block.splitlines():
        depth, name = (len(line) - len(line.lstrip())) // 2, line.split()[0]
        above = above[:depth]
        if name.endswith("/"):
            above.append(name.strip("/"))
            folders["/".join(above)] = set()
        else:
            folders["/".join(above)].add(name)
    return folders


def test_the_tree_is_the_tree_on_disk():
    folders = listed()
    on_disk = {str(p.parent.relative_to(ROOT)) for p in (ROOT / "unweave").rglob("*") if p.suffix in (".py", ".html")}
    assert set(folders) == on_disk
    for folder, files in folders.items():
        if files:  # a folder without listed files is summarised
            found = {p.name for p in (ROOT / folder).glob("*.py")} - ({"__init__.py"} if "/" in folder else set())
            assert files == found, folder


def test_the_layers_are_those_that_are_checked():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [c["layers"] for c in contracts if c["type"] == "layers"]
    modules = [[m.strip().removeprefix("unweave.") for m in layer.split("|") if "(" not in m] for layer in layers]
    lines = re.findall(r"^\d+\. (.*)$", section("Import layers"), re.MULTILINE)
    assert [re.findall(r"`(\w+)`", line) for line in lines] == modules


def test_every_function_of_the_walk_exists():
    names = re.findall(r"`((?:\w+\.)+\w+)`", section("From a file to weights"))
    paths = [name for name in names if not name.endswith((".json", ".safetensors"))]
    assert len(paths) > 15
    for path in paths:
        pkgutil.resolve_name(f"unweave.{path}")
