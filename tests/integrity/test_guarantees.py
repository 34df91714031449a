"""Loading executes nothing: every file of a run folder and of data is replaced by one that runs code if unpickled."""

import io
import pickle
import shutil
from contextlib import suppress

import numpy as np
import pytest
import torch

import unweave as uw

RUN_FILES = (
    "config.json", "model.json", "time.json", "log.jsonl", "scores.json", "weights.safetensors",
    "checkpoint.safetensors", "codes.safetensors",
)  # fmt: skip
DATA_FILES = ("images.npy", "images.npz", "images.png", "images.csv", "images.parquet")


class Program:
    """An object that creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def torch_file(program):
    buffer = io.BytesIO()
    torch.save({"weight": program}, buffer)
    return buffer.getvalue()


def array_file(program):
    buffer = io.BytesIO()
    np.save(buffer, np.array([program, None], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def archive(program):
    buffer = io.BytesIO()
    np.savez(buffer, images=np.array([program, None], dtype=object))
    return buffer.getvalue()


FORMS = (pickle.dumps, torch_file, array_file, archive)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run with a checkpoint, scores and codes."""
    path = tmp_path_factory.mktemp("runs") / "run"
    options = {"net": "small", "latents": 2, "batch": 4, "steps": 2, "keep_state": True, "engine": "loop"}
    uw.evaluate(uw.train("m2", "digits(size=8)", supervision="labels(n=20)", out=path, **options), metrics=["mig"])
    return path


@pytest.mark.parametrize("form", FORMS)
def test_loading_a_run_executes_nothing(form, run, tmp_path):
    for name in RUN_FILES:
        copy, created = tmp_path / f"copy-{name}", tmp_path / f"created-{name}"
        shutil.copytree(run, copy)
        assert (copy / name).exists() or name == "log.jsonl"
        (copy / name).write_bytes(form(Program(created)))
        for use in (uw.load, uw.resume, uw.predict, lambda path: uw.score_runs([path], metrics=["mig"], stored=True)):
            with suppress(uw.UserError):
                use(copy)
            assert not created.exists(), name


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", DATA_FILES)
def test_opening_data_executes_nothing(form, name, tmp_path, monkeypatch):
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    folder, created = tmp_path / "images", tmp_path / "created"
    folder.mkdir()
    (path := folder / name).write_bytes(form(Program(created)))
    for given in (path, folder, f"folder(path='{folder}', factors='{path}')", f"arrays(path='{path}')"):
        with pytest.raises(uw.UserError):
            uw.load_data(given)
        assert not created.exists()


def test_the_program_runs_if_it_is_unpickled(tmp_path):
    """What the other tests look for."""
    pickle.loads(pickle.dumps(Program(tmp_path / "created"))).close()
    assert (tmp_path / "created").exists()
