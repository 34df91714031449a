"""The steps of "Add an option of train" in CONTRIBUTING.md, followed in a copy of the repository."""

import json

import pytest
from contributing import follow, read_steps, run_python

TITLE = "Add an option of train"
PROGRAM = """
import inspect, json, torch
import unweave as uw
from unweave.config import RunConfig, read_config
from unweave.training.sweep import fit

options = {"net": "small", "latents": 2, "steps": 2, "batch": 4, "device": "cpu"}
runs = [uw.train("vae", "digits(size=8)", out=f"run{n}", warmup=n, **options) for n in (0, 2)]
config = runs[1].config
try:
    uw.train("vae", "digits(size=8)", out="bad", warmup=-1, **options)
except uw.UserError as error:
    refused = [error.argument, error.value]
stored = runs[1].folder.read_json("config.json")
older = {name: value for name, value in stored.items() if name != "warmup"}
first = [next(run.method.parameters()) for run in runs]
print(json.dumps({
    "keyword": inspect.signature(uw.train).parameters["warmup"].default,
    "refused": refused,
    "stored": stored["warmup"],
    "read": read_config(runs[1].folder).warmup,
    "default": RunConfig.from_json(older).warmup,
    "compared": config.compared_settings()["warmup"],
    "report": config.shown_settings()["warmup"],
    "command": [" ".join(run.config.command()).count("--warmup") for run in runs],
    "cohorts": len({run.config.cohort_key() for run in runs}),
    "difference": config.difference(runs[0].config),
    "effect": not torch.equal(*first),
}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return follow(TITLE, tmp_path_factory.mktemp("repository"))


def test_the_option_is_used_everywhere(folder):
    done = run_python(folder, "-c", PROGRAM)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "keyword": 0,
        "refused": ["warmup", -1],
        "stored": 2,
        "read": 2,
        "default": 0,
        "compared": 2,
        "report": "2",
        "command": [0, 1],
        "cohorts": 1,
        "difference": "warmup",
        "effect": True,
    }


def test_the_command_line_has_the_option(folder):
    assert "--warmup" in run_python(folder, "-m", "unweave", "train", "--help").stdout


def test_it_edits_two_files_of_the_package():
    assert len({step.path for step in read_steps(TITLE)}) == 2
