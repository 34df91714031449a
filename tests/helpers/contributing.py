"""Follow the steps of a section of CONTRIBUTING.md in a copy of the repository.

A step is "Create `path`:" or "In `path`, after `part of a line`:", followed by a code block.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("unweave", "tests/conformance", "tests/helpers", "docs/reference")
COPIED_FILES = ("pyproject.toml", "tests/conftest.py", "tests/test_reference.py")
CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
STEP = re.compile(r"(?:Create `([^`\n]+)`|In `([^`\n]+)`,\s+after `([^`\n]+)`)[^`\n]*:\n+```\w*\n(.*?)\n```", re.DOTALL)


class Step(NamedTuple):
    path: str
    anchor: str  # the block goes after the first line that contains this text; "" creates the file
    code: str


def read_steps(section):
    """Return the steps of the section with this title."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    without_code = CODE.sub(lambda match: match[0].replace("#", " "), text)  # code may contain headings
    match = re.search(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", without_code, re.DOTALL | re.MULTILINE)
    assert match, f"CONTRIBUTING.md has no section {section!r}"
    steps = [Step(new or old, anchor, code) for new, old, anchor, code in STEP.findall(text[slice(*match.span(1))])]
    assert steps, f"section {section!r} has no steps"
    return steps


def copy_repository(folder):
    """Copy the package, its conformance tests and the reference pages to a folder; return the folder."""
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in COPIED_FILES:
        shutil.copy(ROOT / name, folder / name)
    return folder


def apply_step(folder, step):
    path = folder / step.path
    if not step.anchor:
        assert not path.exists(), f"{step.path} exists already"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(step.code + "\n")
        return
    lines = path.read_text().splitlines()
    numbers = [number for number, line in enumerate(lines) if step.anchor in line]
    assert numbers, f"{step.path} has no line with {step.anchor!r}"
    lines.insert(numbers[0] + 1, step.code)
    path.write_text("\n".join(lines) + "\n")


def follow(section, folder, leave_out=()):
    """Copy the repository to a folder and apply the steps of a section, except those with a number in `leave_out`."""
    copy_repository(folder)
    for number, step in enumerate(read_steps(section)):
        if number not in leave_out:
            apply_step(folder, step)
    return folder


def run_python(folder, *arguments):
    """Run Python in a copy of the repository; return the completed process, its output as text."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def run_tests(folder, *arguments):
    """Run pytest in a copy of the repository, in one process."""
    return run_python(folder, "-m", "pytest", "-n0", "-p", "no:cacheprovider", *arguments)
