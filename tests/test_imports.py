"""What importing the package loads, and which names and module paths it provides."""

import ast
import importlib
import importlib.util
import inspect
import subprocess
import sys

import pytest

import unweave
from unweave.old_paths import OLD_NAMES, OLD_PATHS

HEAVY = ("sklearn", "pandas", "matplotlib", "scipy.stats", "h5py", "torch._inductor")


def loaded_by(program, *names):
    """Which of the modules a program loads, in a new process."""
    report = f"import sys\n{program}\nprint(*(name for name in {names} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()[-1].split()


def test_a_plain_import_loads_nothing_heavy():
    assert loaded_by("import unweave", "torch", "numpy", *HEAVY) == []


@pytest.mark.parametrize("name", ["train", "load_data", "load", "evaluate"])
def test_the_main_functions_load_nothing_heavy(name):
    assert loaded_by(f"import unweave\nunweave.{name}", "torch", *HEAVY) == ["torch"]


def test_every_public_name_is_there_and_known_to_type_checkers():
    assert set(unweave.__all__) <= set(dir(unweave))
    for name in unweave.__all__:
        assert getattr(unweave, name) is not None
    source = ast.parse(inspect.getsource(unweave))
    guarded = next(node for node in source.body if isinstance(node, ast.If))
    declared = {alias.asname or alias.name for node in guarded.body for alias in node.names}
    assert declared == set(unweave.__all__) - {"__version__"}
    with pytest.raises(AttributeError, match="nothing"):
        unweave.nothing  # noqa: B018


@pytest.mark.parametrize("name", ["train", "evaluate", "predict"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_function_is_not_replaced_by_the_old_module_of_its_name(name):
    if f"unweave.{name}" in OLD_PATHS:
        sys.modules.pop(f"unweave.{name}", None)
        importlib.import_module(f"unweave.{name}")
    assert inspect.isfunction(getattr(unweave, name))


def test_packages_are_attributes():
    program = "import unweave\nassert callable(unweave.report.report) and unweave.evaluation.evaluate.evaluate_npz"
    assert loaded_by(program, "torch") == ["torch"]


@pytest.mark.parametrize("old", OLD_PATHS)
def test_old_module_paths_are_deprecated(old):
    sys.modules.pop(old, None)
    new = importlib.import_module(OLD_PATHS[old])
    spec = new.__spec__
    with pytest.warns(DeprecationWarning, match=OLD_PATHS[old]) as caught:
        assert importlib.import_module(old) is new
    assert caught[0].filename == __file__
    assert new.__spec__ is spec
    for name, renamed in OLD_NAMES.get(OLD_PATHS[old], {}).items():
        assert getattr(new, name) is getattr(new, renamed)


def test_an_old_path_is_an_attribute_too():
    sys.modules.pop("unweave.fleet", None)
    unweave.__dict__.pop("fleet", None)
    with pytest.warns(DeprecationWarning) as caught:
        assert unweave.fleet is importlib.import_module("unweave.training.sweep")
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("words", "heavy"),
    [("--help", ("torch", "numpy", *HEAVY)), ("train --help", ("torch", "numpy", *HEAVY)), ("list methods", HEAVY)],
)
def test_a_command_loads_no_more_than_it_needs(words, heavy):
    program = f"sys.argv = {['unweave', *words.split()]}\nfrom unweave.cli.app import main\ntry:\n    main()\n"
    assert loaded_by(program + "except SystemExit:\n    pass", *heavy) == []
