"""The command line as a stranger meets it: what works, and one clear line for what does not."""

import errno
import json
import os
import re
import webbrowser
from pathlib import Path

import pytest
import torch
from command import unweave
from raises import raises

import unweave as uw
from unweave import runs
from unweave.cli import app

TINY = ["--data", "digits", "--set", "net=mlp", "--set", "latents=3", "--steps", "3", "--batch", "4", "--device", "cpu"]


@pytest.fixture
def run(tmp_path, capsys):
    path = tmp_path / "a run"
    code, _, err = unweave(capsys, "train", "beta_vae", *TINY, "--out", path)
    assert code == 0, err
    return path


def test_train_evaluate_report_encode_export(run, tmp_path, capsys):
    assert {p.name for p in run.iterdir()} == {
        ".lock", "config.json", "log.jsonl", "weights.safetensors", "time.json", "model.json", "samples",
    }  # fmt: skip
    code, out, _ = unweave(capsys, "evaluate", run, "--metrics", "mig", "--rows", "200")
    assert code == 0
    assert "MIG" in out or "Mutual" in out
    assert set(json.loads((run / "scores.json").read_text())["scores"]) == {"mig"}
    assert unweave(capsys, "report", run, "-o", tmp_path / "r.html")[0] == 0
    assert "<html" in (tmp_path / "r.html").read_text()
    picture = run / "samples" / "reconstructions.png"
    assert unweave(capsys, "encode", run, picture, "-o", tmp_path / "codes.npz")[0] == 0
    code, out, err = unweave(capsys, "export", run, "--format", "torch")
    assert code == 0, err
    assert torch.export.load(run / "encoder.pt2").module()(torch.zeros(2, 1, 8, 8)).shape == (2, 3)


def test_a_notice_is_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("unweave.engine.replicas.missing_name", lambda: "No module named 'x'")
    code, _, err = unweave(capsys, "train", "vae", *TINY, "--engine", "compiled", "--quiet", "--out", tmp_path / "run")
    assert code == 0 and err.count("\n") == 1
    assert err.startswith("warning: ") and "'compiled'" in err and "'loop'" in err


def test_on_a_terminal_the_progress_ends_before_the_next_commands(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    code, out, err = unweave(capsys, "train", "m1", *TINY, "--supervision", "labels(n=20)", "--out", tmp_path / "a run")
    assert code == 0 and "is trained" not in err
    out, err = (re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text) for text in (out, err))
    assert f"unweave evaluate '{tmp_path}/a run'" in out
    last = err.strip().splitlines()[-2:]
    assert ["3/3" in line for line in last] == [True, True]


def test_resume_of_a_finished_run_changes_nothing(run, capsys):
    before = (run / "weights.safetensors").read_bytes()
    assert unweave(capsys, "train", "--resume", run)[0] == 0
    assert (run / "weights.safetensors").read_bytes() == before


@pytest.mark.parametrize("what", ["methods", "metrics", "data"])
def test_list(what, capsys):
    code, out, _ = unweave(capsys, "list", what)
    assert code == 0
    assert out.strip()


def test_info_shows_equation_defaults_and_paper(capsys):
    code, out, _ = unweave(capsys, "info", "factor_vae")
    assert code == 0
    for word in ("gamma", "35", "KL(q(z) || prod_j q(z_j))", "one_batch", "Kim and Mnih"):
        assert word in out


# words, and argument and value of the error; ... if another area's tests check them
BAD = [
    (["train", "beta_va"], "method", "beta_va"),
    (["train"], "method", ""),
    (["train", ","], "method", ""),
    (["train", "vae,vae", *TINY], "out", ...),
    (["train", "beta_vae", "--data", "sprits"], "data", "sprits"),
    (["train", "beta_vae", "--data", "sprites(siz=32)"], "option", "siz"),
    (["train", "beta_vae", "--data", "sprites(size=__import__('os'))"], ..., ...),
    (["train", "beta_vae", "--data", "digits("], ..., ...),
    (["train", "beta_vae", "--data", "/no/where"], ..., ...),
    (["train", "beta_vae", *TINY, "--set", "bta=3"], "setting", "bta"),
    (["train", "beta_vae", *TINY, "--set", "beta=-1"], "beta", -1.0),
    (["train", "beta_vae", *TINY, "--set", "beta=many"], "beta", "many"),
    (["train", "beta_vae", *TINY, "--set", "beta=nan"], "beta", ...),
    (["train", "beta_vae", *TINY, "--set", "beta"], "set", "beta"),
    (["train", "beta_vae", *TINY, "--set", "seed=3"], "set", "seed=3"),
    (["train", "beta_vae", *TINY, "--set", "latents=0"], "latents", 0),
    (["train", "beta_vae", *TINY, "--set", "latents=2.5"], "latents", "2.5"),
    (["train", "beta_vae", *TINY, "--set", "likelihood=poisson"], "likelihood", "poisson"),
    (["train", "beta_vae", *TINY, "--set", "net=locatelo"], "net", "locatelo"),
    (["train", "beta_vae", *TINY, "--lr", "-1"], "lr", -1.0),
    (["train", "beta_vae", *TINY, "--lr", "linear(1)"], "lr", "linear(1)"),
    (["train", "beta_vae", *TINY, "--optimizer", "rprop"], "optimizer", "rprop"),
    (["train", "beta_vae", *TINY, "--optimizer", "sgd"], "lr", ...),
    (["train", "beta_vae", *TINY, "--clip", "-1"], "clip", -1.0),
    (["train", "beta_vae", *TINY, "--steps", "0"], "steps", 0),
    (["train", "beta_vae", *TINY, "--steps", "9" * 20], "steps", int("9" * 20)),
    (["train", "beta_vae", *TINY, "--batch", "1"], "batch", 1),
    (["train", "beta_vae", *TINY, "--seed", "-1"], "seed", -1),
    (["train", "beta_vae", *TINY, "--seeds", "3-1"], "seeds", "3-1"),
    (["train", "beta_vae", *TINY, "--engine", "warp"], "engine", "warp"),
    (["train", "beta_vae", *TINY, "--precision", "int8"], "precision", "int8"),
    (["train", "beta_vae", *TINY, "--checkpoint-every", "3m"], "checkpoint_every", "3m"),
    (["train", "beta_vae", *TINY, "--validate-every", "0"], "validate_every", 0),
    (["train", "beta_vae", *TINY, "--init", "normal"], "init", "normal"),
    (["train", "beta_vae", *TINY, "--init-from", "nowhere"], "init_from", "nowhere"),
    (["train", "beta_vae", *TINY, "--init-from", ""], "init_from", ""),
    (["train", "beta_vae", *TINY, "--set", "start=glorot"], "set", "start=glorot"),
    (["train", "beta_vae", *TINY, "--set", "critic_width=4"], "setting", "critic_width"),
    (["train", "beta_vae", *TINY, "--strategy", "vmap"], "strategy", "vmap"),
    (["train", "beta_vae", *TINY, "--out", "/proc/x/y"], "out", "/proc/x/y"),
    (["train", "beta_vae", *TINY, "--supervision", "pears"], "supervision", "pears"),
    (["train", "beta_vae", *TINY, "--supervision", "pairs(k=1)"], ..., ...),
    (["train", "ada_gvae", *TINY], ..., ...),
    (["train", "beta_vae", "--data", "sprites(size=20)"], "net", "locatello"),
    (["train", "beta_vae", "--device", "tpu"], "device", "tpu"),
    (["train", "beta_vae", "--device", "cpu:x"], "device", "cpu:x"),
    (["train", "vae", "--resume", "nothing"], "method", "vae"),
    (["train", "--resume", "nothing"], "run", "nothing"),
    (["train", "--resume", "nothing", "--steps", "10000"], "run", "nothing"),
    (["train", "--resume", "nothing", "--set", "beta=2"], "set", "beta=2"),
    (["train", "--resume", ".", "--data", "photos"], "data", "photos"),
    (["train", "--resume", "."], "run", "."),
    (["train", "--resume", ".", "--strategy", "vmap"], "strategy", "vmap"),
    (["evaluate", "nothing"], "run", "nothing"),
    (["report", "nothing"], "run", "nothing"),
    (["compare", "nothing"], "run", "nothing"),
    (["export", "nothing"], "run", "nothing"),
    (["predict", "nothing"], "run", "nothing"),
    (["encode", "nothing", "picture.png"], "run", "nothing"),
    (["list", "cats"], "list argument", "cats"),
    (["info", "factorvae"], "method", "factorvae"),
    (["study", "run", "locatelo2019"], "study", "locatelo2019"),
    (["demo", "--seed", "-1", "--quick"], "seed", -1),
]
UNPARSED = [  # words, and what the message of typer has to name
    (["train", "beta_vae", *TINY, "--steps", "x"], "--steps"),
    (["train", "beta_vae", *TINY, "--steps", "1.5"], "'1.5'"),
    (["train", "beta_vae", *TINY, "--clip", "many"], "'many'"),
    (["train", "vae", "--nope"], "--nope"),
    (["train", "vae", "--sett", "beta=3"], "--set"),
    (["trian"], "train"),
    (["info"], "method"),
    (["encode", "nothing"], "images"),
]


def one_line(capsys, words, folder):
    """Return the message of a command that is refused; assert that it leaves nothing behind."""
    code, _, err = unweave(capsys, *words)
    assert code == 2
    assert err.startswith("error: ") and err.strip().count("\n") == 0, err
    assert list(folder.iterdir()) == []
    return err


@pytest.mark.parametrize(("words", "argument", "value"), BAD, ids=[" ".join(w[:2] + w[-2:]) for w, _, _ in BAD])
def test_bad_input_is_one_line_and_leaves_nothing(words, argument, value, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one_line(capsys, words, tmp_path)
    if argument is not ...:
        with raises(argument, value=value):
            app.app(words, standalone_mode=False)


@pytest.mark.parametrize(("words", "named"), UNPARSED, ids=[" ".join(w[:2] + w[-2:]) for w, _ in UNPARSED])
def test_words_that_cannot_be_parsed(words, named, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert named in one_line(capsys, words, tmp_path)


def test_the_earlier_name_of_an_option_is_accepted_but_not_suggested(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "--start" not in one_line(capsys, ["train", "vae", "--stat", "x"], tmp_path)
    assert "init" in one_line(capsys, ["train", "vae", *TINY, "--start", "normal"], tmp_path)


def test_cuda_without_one(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    code, _, err = unweave(capsys, "train", "vae", *TINY[:-1], "cuda", "--out", tmp_path / "r")
    assert code == 2
    assert "cuda" in err
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [("evaluate", "seed", -1), ("evaluate", "rows", "1"), ("compare", "seed", -1), ("compare", "out", __file__)],
)
def test_bad_options_of_commands_that_read_runs(run, command, option, value, capsys):
    code, _, err = unweave(capsys, command, run, f"--{option}", value)
    assert code == 2 and err.strip().splitlines()[-1].startswith("error: ")
    with raises(option, value=value):
        app.app([command, str(run), f"--{option}", str(value)], standalone_mode=False)


def test_an_existing_folder_is_not_touched(run, capsys):
    before = {p: p.stat().st_mtime_ns for p in run.iterdir()}
    assert unweave(capsys, "train", "beta_vae", *TINY, "--out", run)[0] == 2
    with raises("out", value=str(run)):
        app.app(["train", "beta_vae", *TINY, "--out", str(run)], standalone_mode=False)
    assert {p: p.stat().st_mtime_ns for p in run.iterdir()} == before


@pytest.mark.parametrize("command", ["evaluate", "report", "export"])
@pytest.mark.parametrize("file", ["config.json", "weights.safetensors"])
@pytest.mark.parametrize("damage", ["truncated", "rubbish", "empty"])
def test_a_damaged_run(run, command, file, damage, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = (run / file).read_bytes()
    (run / file).write_bytes({"truncated": content[: len(content) // 2], "rubbish": b"\x00" * 99, "empty": b""}[damage])
    code, _, err = unweave(capsys, command, run)
    assert code == 2
    assert "damaged" in err
    assert err.strip().count("\n") == 0


def test_a_damaged_checkpoint_is_not_resumed(run, capsys):
    (run / "weights.safetensors").unlink()
    (run / "checkpoint.safetensors").write_bytes(b"\x10\x00")
    code, _, err = unweave(capsys, "train", "--resume", run)
    assert code == 2
    assert "damaged" in err


def full_disk(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_at_the_start(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(os, "fsync", full_disk)
    code, _, err = unweave(capsys, "train", "vae", *TINY, "--out", tmp_path / "new" / "r")
    assert code == 2
    assert "No space left" in err
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_later_keeps_what_was_saved(tmp_path, capsys, monkeypatch):
    saved = []

    def save(folder, name, tensors, **about):
        if saved:
            full_disk()
        saved.append(name)
        real(folder, name, tensors, **about)

    real = runs.RunFolder.save
    with monkeypatch.context() as patch:
        patch.setattr(runs.RunFolder, "save", save)
        options = ["--log-every", "1", "--checkpoint-every", "1"]
        code, _, err = unweave(capsys, "train", "vae", *TINY, *options, "--out", tmp_path / "r")
    assert code == 2
    assert "No space left" in err
    assert err.strip().splitlines()[-1].startswith("error: ")
    left = {".lock", "config.json", "model.json", "log.jsonl", "checkpoint.safetensors", "time.json"}
    assert {p.name for p in (tmp_path / "r").iterdir()} == left | {"checkpoint.previous.safetensors"}
    uw.resume(tmp_path / "r")
    assert (tmp_path / "r" / "weights.safetensors").exists()


def test_no_permission(tmp_path, capsys, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "mkdir", refuse)
    code, _, err = unweave(capsys, "train", "vae", *TINY, "--out", tmp_path / "r")
    assert code == 2
    assert "Permission denied" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("answer", [True, False, webbrowser.Error("none"), OSError("cannot start")])
def test_report_opens_the_page(run, tmp_path, capsys, monkeypatch, answer):
    asked = []

    def browser(address):
        asked.append(address)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(webbrowser, "open", browser)
    page = tmp_path / "my page.html"
    code, out, err = unweave(capsys, "report", run, "-o", page, "--open")
    assert code == 0 and err == "" and asked == [page.resolve().as_uri()]
    out = " ".join(out.split())
    assert "my page.html" in out and ("no browser" in out) == (answer is not True)


def test_no_command_prints_markup():
    """Consoles print square brackets as they are; styles are given by `bold` and `Text`."""
    for path in Path(app.__file__).parent.glob("*.py"):
        assert not re.findall(r"\[/?(?:bold|dim|red|yellow|green)\]|rich\.markup", path.read_text()), path
