"""The architecture page describes the package as it is: its tree, its import layers, the functions it names."""

import pkgutil
import re
import tomllib
from pathlib import Path

import pytest
from contributing import read_steps

from unweave.old_paths import OLD_PATHS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def section(heading):
    return re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL).group(1)


def tree_on_page():
    """Return the lines of the tree as {path: comment}; paths of folders end with a slash."""
    block = re.search(r"```\n(unweave/\n.*?)```", section("Package layout"), re.DOTALL).group(1)
    found, parents = {}, []
    for line in block.splitlines():
        depth, (name, *comment) = (len(line) - len(line.lstrip())) // 2, line.split(maxsplit=1)
        parents = [*parents[:depth], name]
        found["".join(parents)] = "".join(comment)
    return found


def tree_on_disk(page):
    """Return the paths that the page must have: each folder, and the files of the folders whose files it lists."""
    folders = {p.parent for p in (ROOT / "unweave").rglob("*") if p.suffix in (".py", ".html")}
    listed = {Path(path).parent for path in page if not path.endswith("/")}
    files = {file for folder in folders if folder.relative_to(ROOT) in listed for file in folder.glob("*.py")}
    packages = {file for file in files if file.name == "__init__.py" and file.parent != ROOT / "unweave"}
    return {f"{p.relative_to(ROOT)}/" for p in folders} | {str(p.relative_to(ROOT)) for p in files - packages}


def test_the_tree_is_the_tree_on_disk():
    page = tree_on_page()
    disk = tree_on_disk(page)
    add = [f"add:    {path}" for path in sorted(disk - page.keys())]
    remove = [f"remove: {path}" for path in sorted(page.keys() - disk)]
    assert not add + remove, "\n".join(["docs/architecture.md, section Package layout:", *add, *remove])
    assert all(comment for path, comment in page.items() if path != "unweave/"), "a line of the tree has no comment"


def test_the_layers_are_those_that_are_checked():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [c["layers"] for c in contracts if c["type"] == "layers"]
    modules = [[m.strip().removeprefix("unweave.") for m in layer.split("|") if "(" not in m] for layer in layers]
    lines = re.findall(r"^\d+\. (.*)$", section("Import layers"), re.MULTILINE)
    assert [re.findall(r"`(\w+)`", line) for line in lines] == modules


def test_every_function_of_the_walk_exists():
    names = re.findall(r"`((?:\w+\.)+\w+)`", section("From a file to weights"))
    paths = [name for name in names if not name.endswith((".json", ".jsonl", ".safetensors"))]
    assert len(paths) > 15
    for path in paths:
        pkgutil.resolve_name(f"unweave.{path}")


def test_the_old_paths_are_those_of_the_package():
    rows = re.findall(r"^\| `([\w.]+)` \| `([\w.]+)` \|$", section("Old module paths"), re.MULTILINE)
    assert {f"unweave.{old}": f"unweave.{new}" for old, new in rows} == OLD_PATHS


EXTENSION_POINTS = re.findall(r"^\| \[[^]]+\]\([^)#]+#([\w-]+)\) \| [^|]+ \| (\d+) \|", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("anchor", "count"), EXTENSION_POINTS)
def test_files_of_an_extension_point(anchor, count):
    files = {step.path for step in read_steps(anchor.replace("-", " ").capitalize())}
    assert len({file for file in files if not file.startswith("tests/")}) == int(count), files


def test_every_extension_point_is_in_the_table():
    sections = re.findall(r"^## (Add .*)$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert {anchor for anchor, _ in EXTENSION_POINTS} == {name.lower().replace(" ", "-") for name in sections}
