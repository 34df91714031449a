"""Names of torch that are not public are in one file, and the package works without them."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import unweave

PACKAGE = Path(unweave.__file__).parent
ALLOWED = PACKAGE / "engine" / "torch_private.py"
BASES = ("torch", "aten", "nn", "F", "fx")  # as which the package imports torch and its modules


def dotted(node):
    """Return the dotted name of an expression such as torch.ops.aten, or ""."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


def torch_names(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield dotted(node)


def private(source):
    """Return the names of torch in a source that are private or experimental."""
    parts = [name.split(".") for name in torch_names(source) if name.split(".")[0] in BASES]
    return {
        ".".join(name)
        for name in parts
        if any(part == "experimental" or (part.startswith("_") and not part.endswith("__")) for part in name[1:])
    }


def test_one_file_uses_private_names_of_torch():
    files = {path for path in PACKAGE.rglob("*.py") if private(path.read_text())}
    assert files == {ALLOWED}


@pytest.mark.parametrize(
    "source", ["import torch._C", "from torch._inductor import exc", "torch._dynamo.reset()", "aten._to_copy.default"]
)
def test_private_names_are_recognised(source):
    assert private(source)


PROGRAM = """
import sys, warnings
sys.modules["torch._inductor.exc"] = None  # importing it raises ImportError
import unweave as uw
from unweave.errors import UserNotice
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", UserNotice)
    uw.train("vae", "digits", net="small", steps=2, batch=4, device="cpu", engine="compiled", out=sys.argv[1])
notices = [str(warning.message) for warning in caught if warning.category is UserNotice]
assert len(notices) == 1 and "compiled" in notices[0] and "loop" in notices[0] and "\\n" not in notices[0], notices
"""


def test_without_a_private_name_runs_use_the_loop_engine(tmp_path):
    run = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path / "run")], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
