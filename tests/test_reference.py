"""The pages in docs/reference agree with the registries, the settings of the methods and the command line."""

import ast
import inspect
import re
import shlex
from pathlib import Path

import pytest
import torch
import typer.main
from doc_code import commands, python_blocks

import unweave
from unweave.cli.app import app
from unweave.config.settings import all_settings
from unweave.contract import all_phases
from unweave.data import DATASETS, load_data
from unweave.engine.loop import compute_losses
from unweave.engine.program import initial_state
from unweave.methods import METHODS
from unweave.metrics import METRICS
from unweave.nn.likelihoods import LIKELIHOODS
from unweave.training.build import build, build_program
from unweave.training.prepare import prepare

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
REGISTRIES = {"methods": METHODS, "metrics": METRICS, "data": DATASETS}
HEADINGS = {
    "methods": [
        "Idea", "Loss", "Settings", "Example", "Logged quantities", "Results",
        "Limits and differences from the paper", "References",
    ],
    "metrics": [
        "Idea", "Definition", "Settings", "Example", "Edge cases", "Differences from other implementations",
        "Verification", "References",
    ],
    "data": ["Description", "Factors", "Settings", "Example", "Construction", "Limits", "Licence and references"],
}  # fmt: skip
PAGES = [(kind, name) for kind, registry in REGISTRIES.items() for name in registry]
FILES = sorted(str(path.relative_to(REFERENCE)) for path in REFERENCE.rglob("*.md"))


def read(kind, name):
    return (REFERENCE / kind / f"{name}.md").read_text()


def table_rows(text, heading):
    """The cells of each row of the first table of a section, without its header; escaped bars belong to a cell."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL).group(1)
    table = re.search(r"(?:^\|.*\n?)+", section, flags=re.MULTILINE)
    lines = table.group(0).splitlines()[2:] if table else []
    return [
        [cell.strip().strip("`").replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines
    ]


@pytest.mark.parametrize(("kind", "name"), PAGES)
def test_a_page_has_the_sections_of_its_kind(kind, name):
    text = read(kind, name)
    sections = text.split("\n## ")[1:]
    assert [section.split("\n", 1)[0].strip() for section in sections] == HEADINGS[kind]
    assert all(len(section.split("\n", 1)[1].strip()) > 20 for section in sections), "an empty section"


@pytest.mark.parametrize("kind", REGISTRIES)
def test_pages_and_index_are_complete(kind):
    index = (REFERENCE / kind / "index.md").read_text()
    assert re.findall(r"^\| \[`(\w+)`\]\(\1\.md\) \|", index, flags=re.MULTILINE) == list(REGISTRIES[kind])
    assert {path.stem for path in (REFERENCE / kind).glob("*.md")} == {*REGISTRIES[kind], "index"}


@pytest.mark.parametrize("name", METHODS)
def test_settings_of_a_method(name):
    """The table has every setting of every stage of the method, its default, and whether it accepts a schedule."""
    fixed, traced = all_settings(METHODS[name])
    expected = {key: (p.default, "yes") for key, p in traced.items()}
    expected |= {key: (p.default, "") for key, p in fixed.items()}
    rows = table_rows(read("methods", name), "Settings")
    assert {key: (default_value(default), schedule) for key, default, schedule, _ in rows} == expected


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, name in PAGES if kind != "methods"])
def test_settings_of_a_metric_or_data_set(kind, name):
    function = METRICS[name].function if kind == "metrics" else DATASETS[name]
    parameters = inspect.signature(function).parameters.values()
    expected = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    rows = table_rows(read(kind, name), "Settings")
    assert {key: default_value(default) for key, default, *_ in rows if key in expected} == expected


def test_likelihoods_are_in_the_page_of_the_vae():
    assert [name for name, _ in table_rows(read("methods", "vae"), "Loss")] == list(LIKELIHOODS)


def default_value(text):
    """The value of a default written as on the command line: `10`, `true`, `mws`."""
    text = {"true": "True", "false": "False"}.get(text, text)
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


@pytest.mark.parametrize("page", FILES)
def test_commands_use_present_options(page):
    """No command uses the former name of an option; test_docs checks everything else about commands."""
    command_line = typer.main.get_command(app)
    old = {
        flag
        for option in command_line.commands["train"].params
        if option.name.startswith("old_")
        for flag in option.opts
    }
    found = commands((REFERENCE / page).read_text())
    assert not [line for line in found if old & set(shlex.split(line, comments=True))]


@pytest.mark.parametrize("page", FILES)
def test_python_examples_use_present_settings(page):
    """`uw.train` accepts any keyword; those of the examples are options or settings of the method."""
    for block in python_blocks((REFERENCE / page).read_text()):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "uw.train":
                keywords = {keyword.arg for keyword in node.keywords} - set(inspect.signature(unweave.train).parameters)
                fixed, traced = all_settings(METHODS[ast.literal_eval(node.args[0])], keywords)
                assert keywords <= {*fixed, *traced}


SCRIPT = re.compile(r"python ((?:benchmarks|examples)/[\w/]+\.py)((?:\s(?!python )[^`#\n]*)?(?:\n {4}\s+--[^`#\n]*)*)")
NOTES = sorted(
    str(path.relative_to(ROOT)) for folder in ("docs", "benchmarks") for path in (ROOT / folder).rglob("*.md")
)


@pytest.mark.parametrize("page", NOTES)
def test_scripts_and_their_options_exist(page):
    for script, words in SCRIPT.findall((ROOT / page).read_text()):
        source = (ROOT / script).read_text()
        flags = re.findall(r"\s--([\w-]+)", words)
        assert [flag for flag in flags if flag not in source and flag.replace("-", "_") not in source] == [], script


def test_api_page_is_complete():
    page = (REFERENCE / "api.md").read_text()
    listed = {
        name for row in re.findall(r"^\| (`.*?) \|", page, flags=re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert listed == set(unweave.__all__) - {"Knob", "Trained"}


@pytest.mark.parametrize("name", METHODS)
def test_logged_quantities_are_documented(name):
    """Those of the first stage with default settings."""
    cls = METHODS[name]
    small = {key: value for key, value in {"net": "small", "latents": 4}.items() if key in all_settings(cls)[0]}
    data = load_data("rooms", size=cls.smallest_image)
    run = prepare(name, data, supervision=cls.example_supervision, batch=8, device="cpu", **small)
    method = build(run.cls, run.config, data)
    program = build_program(run.config, method, data)
    with torch.no_grad():
        outs = [compute_losses(program, initial_state(method), phase) for phase in range(len(all_phases(method)))]
    section = read("methods", name).split("## Logged quantities")[1].split("\n## ")[0]
    assert [key for out in outs for key in out.logs if f"`{key}`" not in section] == []
