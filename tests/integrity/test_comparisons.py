"""Only seeds of one setting are averaged, and a run that cannot be scored does not stop the others."""

import html
import json
import re
import runpy
import shutil
import sys

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from safetensors.torch import load_file, save_file

import unweave as uw
from unweave.report import summary

SMALL = {"net": "small", "latents": 3, "batch": 4, "lr": 1e-3, "device": "cpu", "log_every": 5}


@pytest.fixture
def unweave(capsys, monkeypatch):
    """Return a function that runs a command and returns its exit code and everything that it printed."""
    monkeypatch.setenv("COLUMNS", "80")

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["unweave", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            runpy.run_module("unweave", run_name="__main__")
        said = capsys.readouterr()
        return stop.value.code or 0, said.out + said.err

    return run


def train(out, data, steps=5, seed=0, **options):
    return uw.train("beta_vae", data, out=out, steps=steps, seed=seed, **{**SMALL, **options}).folder.path


def visible(page):
    body = re.sub(r"<(style|script)>.*?</\1>", "", page.read_text(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", body)))


def pictures(folder, seed):
    folder.mkdir(parents=True)
    for k, image in enumerate(np.random.default_rng(seed).integers(0, 256, (12, 8, 8), dtype=np.uint8)):
        Image.fromarray(image).save(folder / f"{k}.png")
    table = folder.with_suffix(".csv")
    table.write_text("file,shape\n" + "".join(f"{k}.png,{k % 3}\n" for k in range(12)))
    return uw.load_data(str(folder), factors=str(table))


# --- what is averaged ------------------------------------------------------------------------------------------------


def test_runs_on_other_data_and_steps_are_not_seeds_of_one_setting(tmp_path, unweave):
    """(A10)"""
    runs = [train(tmp_path / "a", "digits(size=8)", 5), train(tmp_path / "b", pictures(tmp_path / "cats", 0), 10, 1)]
    code, said = unweave("compare", *runs, "--out", tmp_path / "c", "--metrics", "mig")
    assert code == 0 and "mean" not in said and "digits" in said and "folder" in said
    frame = pd.read_csv(tmp_path / "c" / "scores.csv")
    assert [call.partition("(")[0] for call in frame["data_call"]] == ["digits", "folder"]
    assert frame["steps"].tolist() == [5, 10] and frame["setting"].nunique() == 2 and "supervision" in frame


def test_data_sets_of_one_name_are_told_apart(tmp_path, unweave):
    """(A10)"""
    runs = [train(tmp_path / f"run{size}", f"digits(size={size})") for size in (8, 16)]
    frame = uw.score_runs(runs, metrics=["mig"])
    assert summary(frame)["n"].tolist() == [1, 1] and summary(frame)["data"].nunique() == 2
    assert unweave("compare", *runs, "--out", tmp_path / "c", "--metrics", "mig")[0] == 0
    text = visible(tmp_path / "c" / "compare.html")
    assert "On digits: " in text and "On digits(size=16): " in text  # 8 is the default
    assert "2 runs have a median" not in text and "Best by" not in text


def test_folders_of_pictures_are_told_apart(tmp_path, unweave):
    """(A10)"""
    folders = [pictures(tmp_path / name / "images", seed) for seed, name in enumerate(("cats", "dogs"))]
    runs = [train(tmp_path / f"run{k}", folder) for k, folder in enumerate(folders)]
    code, said = unweave("compare", *runs, "--out", tmp_path / "c", "--metrics", "mig")
    assert code == 0 and "mean" not in said and "cats/images" in said and "dogs/images" in said
    text = visible(tmp_path / "c" / "compare.html")
    assert "On cats/images: " in text and "On dogs/images: " in text


def test_arrays_in_memory_are_told_apart_by_their_content(tmp_path):
    """(A10)"""
    images = np.random.default_rng(0).random((2, 20, 1, 8, 8), dtype=np.float32)
    sets = [uw.load_data(part, factors=np.arange(20) % 3) for part in images]
    models = [
        uw.train("beta_vae", sets[k], out=tmp_path / f"run{seed}", seed=seed, steps=5, **SMALL)
        for seed, k in enumerate((0, 0, 1))
    ]
    table = summary(uw.score_runs(models, metrics=["mig"]))
    assert sorted(table["n"]) == [1, 2] and table["data"].nunique() == 2


def test_other_steps_are_another_setting(tmp_path, unweave):
    """(A10)"""
    runs = [train(tmp_path / f"run{steps}", "digits(size=8)", steps) for steps in (5, 10)]
    code, said = unweave("compare", *runs, "--out", tmp_path / "c", "--metrics", "mig")
    assert code == 0 and "mean" not in said and "steps" in said


def test_seeds_of_one_setting_are_averaged_wherever_their_folders_are(tmp_path, unweave):
    runs = [train(tmp_path / f"run{seed}" / "x", "digits(size=8)", seed=seed) for seed in (0, 1)]
    code, said = unweave("compare", *runs, "--out", tmp_path / "c", "--metrics", "mig")
    assert code == 0 and "mean" in said
    assert pd.read_csv(tmp_path / "c" / "scores.csv")["setting"].nunique() == 1


def test_scores_on_different_data_are_not_ranked_in_a_report(tmp_path):
    runs = [train(tmp_path / f"run{k}", f"digits(size={size})") for k, size in enumerate((8, 16))]
    text = visible(uw.report.report(runs, tmp_path / "report.html"))
    assert "trained on different data" in text and "on digits and digits(size=16)" in text


# --- runs that cannot be scored --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Three runs; the data of the last are a folder."""
    root = tmp_path_factory.mktemp("trained")
    for seed in (0, 1):
        train(root / "sweep" / f"seed{seed}", "digits(size=8)", seed=seed)
    train(root / "sweep" / "seed2", pictures(root / "images", 0), seed=2)
    return root


@pytest.fixture
def sweep(trained, tmp_path):
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    for config in (tmp_path / "sweep").glob("*/config.json"):
        config.write_text(config.read_text().replace(str(trained), str(tmp_path)))
    return tmp_path / "sweep"


def rewrite(path, change):
    tensors = load_file(path)
    save_file({name: change(tensor) for name, tensor in tensors.items()}, path, metadata={"about": "{}"})


def give_nan(sweep):
    rewrite(sweep / "seed1" / "weights.safetensors", lambda weight: weight * float("nan"))
    return "seed1"


def cut_the_weights(sweep):
    path = sweep / "seed1" / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    return "seed1"


def change_the_shape(sweep):
    rewrite(sweep / "seed1" / "weights.safetensors", lambda weight: weight[:-1].clone())
    return "seed1"


def remove_the_data(sweep):
    shutil.rmtree(sweep.parent / "images")
    return "seed2"


def stop_before_the_end(sweep):
    (sweep / "seed1" / "weights.safetensors").unlink()
    return "seed1"


FAULTS = [give_nan, cut_the_weights, change_the_shape, remove_the_data, stop_before_the_end]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_that_cannot_be_scored_leaves_an_empty_cell_and_a_line(fault, sweep, unweave):
    """(A16)"""
    name = fault(sweep)
    code, said = unweave("compare", sweep, "--out", sweep.parent / "c", "--metrics", "mig")
    assert code == 0 and name in said and "Traceback" not in said
    frame = pd.read_csv(sweep.parent / "c" / "scores.csv")
    assert len(frame) == 3 and frame["mig"].isna().tolist() == [name in run for run in frame["run"]]
    assert frame["not_scored"].notna().tolist() == frame["mig"].isna().tolist()
    assert "not scored" in visible(sweep.parent / "c" / "compare.html")


@pytest.mark.parametrize("fault", [give_nan, remove_the_data, stop_before_the_end])
def test_a_report_names_the_run_that_it_leaves_out(fault, sweep, unweave):
    """(A16)"""
    name = fault(sweep)
    code, said = unweave("report", sweep, "--out", sweep.parent / "r.html")
    assert code == 0 and name in said and "Traceback" not in said
    assert f"sweep/{name}" in visible(sweep.parent / "r.html") and "Run 2 of 2" in visible(sweep.parent / "r.html")


def test_a_damaged_configuration_does_not_stop_the_others(sweep, unweave):
    """(A16)"""
    (sweep / "seed1" / "config.json").write_text("{")
    code, said = unweave("compare", sweep, "--out", sweep.parent / "c", "--metrics", "mig")
    assert code == 0 and "seed1" in said and len(pd.read_csv(sweep.parent / "c" / "scores.csv")) == 2


def test_a_run_that_is_not_scored_does_not_count_in_the_means(sweep, unweave):
    """(A16)"""
    give_nan(sweep)
    shutil.rmtree(sweep / "seed2")
    said = unweave("compare", sweep, "--out", sweep.parent / "c", "--metrics", "mig")[1]
    assert "1 of 2" in said
    assert "1 not scored" in visible(sweep.parent / "c" / "compare.html")


def test_if_no_run_can_be_scored_the_command_fails_and_writes_nothing(sweep, unweave):
    shutil.rmtree(sweep / "seed0")
    for fault in (cut_the_weights, remove_the_data):
        fault(sweep)
    code, said = unweave("compare", sweep, "--out", sweep.parent / "c")
    assert code == 2 and "seed1" in said and not (sweep.parent / "c").exists()
    code, said = unweave("report", sweep, "--out", sweep.parent / "r.html")
    assert code == 2 and "seed1" in said and not (sweep.parent / "r.html").exists()


def test_an_unfinished_run_that_is_named_is_an_error(sweep, unweave):
    stop_before_the_end(sweep)
    for command in ("compare", "report"):
        code, said = unweave(command, sweep / "seed0", sweep / "seed1", "--out", sweep.parent / "out")
        assert code == 2 and "seed1" in said and not (sweep.parent / "out").exists()


def test_an_unknown_metric_is_one_error(sweep, unweave):
    code, said = unweave("compare", sweep, "--out", sweep.parent / "c", "--metrics", "mig,mug")
    assert code == 2 and "'mug'" in said and "seed0" not in said and not (sweep.parent / "c").exists()


def test_scores_in_python_have_a_reason_instead(sweep):
    """(A16)"""
    cut_the_weights(sweep)
    with pytest.warns(UserWarning, match="seed1"):
        frame = uw.score_runs([sweep / "seed0", sweep / "seed1"], metrics=["mig"])
    assert frame["mig"].isna().tolist() == [False, True] and "weights.safetensors" in frame["not_scored"][1]
    json.loads(frame.to_json())
