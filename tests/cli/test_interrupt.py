"""SIGTERM and Ctrl-C during training: exit code, checkpoint, and a command that resumes the training."""

import os
import shlex
import signal
import subprocess
import sys
import time

import pytest
from tiny_study import TINY

from unweave import studies
from unweave.cli.app import app, run_command
from unweave.runs import RunFolder

OPTIONS = "--data rooms(size=8) --set net=small --set latents=3 --steps 6 --batch 4 --log-every 2 --device cpu"
COMMANDS = {
    "train": f"train vae {OPTIONS} --out out/vae",
    "sweep": f"train vae {OPTIONS} --seeds 0-1 --strategy batched --out out",
    "study": "study run tiny --device cpu --out out",
    "demo": "demo --quick --out out",
}


@pytest.fixture
def run(capsys, monkeypatch):
    """Return a function that runs a command and returns its exit code and its standard error."""
    monkeypatch.setitem(studies.STUDIES, "tiny", TINY)
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background job of a shell

    def call(words):
        monkeypatch.setattr(sys, "argv", ["unweave", *words])
        code = run_command(lambda: app(words, standalone_mode=False))
        return code, capsys.readouterr().err

    yield call
    signal.signal(signal.SIGINT, inherited)


def weights(folder):
    return {path.parent.name: path.read_bytes() for path in folder.glob("*/weights.safetensors")}


@pytest.mark.parametrize(("name", "number"), [*((name, signal.SIGTERM) for name in COMMANDS), ("train", signal.SIGINT)])
def test_the_printed_command_resumes_an_interrupted_one(name, number, run, tmp_path, monkeypatch):
    words, append, sent = COMMANDS[name].split(), RunFolder.append_log, []
    for folder in ("whole", "interrupted"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "whole")
    assert run(words)[0] == 0
    monkeypatch.chdir(tmp_path / "interrupted")

    def interrupt(folder, record):
        append(folder, record)
        if not sent:
            sent.append(os.kill(os.getpid(), number))

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "append_log", interrupt)
        code, message = run(words)
    assert code == 128 + number
    line = message.strip().splitlines()[-1]
    assert number.name in line
    command = shlex.split(line.partition("resume with: ")[2])
    assert command[0] == "unweave"
    assert run(command[1:])[0] == 0
    trained = weights(tmp_path / "whole" / "out")
    assert trained and weights(tmp_path / "interrupted" / "out") == trained


def test_a_process_stops_at_sigterm(tmp_path):
    words = f"train vae {OPTIONS} --steps 1000000 --quiet --out run".split()
    process = subprocess.Popen(
        [sys.executable, "-m", "unweave", *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    while not (tmp_path / "run" / "log.jsonl").exists() and process.poll() is None:
        time.sleep(0.05)
    process.terminate()
    message = process.communicate(timeout=60)[1]
    assert process.returncode == 143
    assert message.endswith(" unweave train --resume run\n") and message.count("\n") == 1
    assert (tmp_path / "run" / "checkpoint.safetensors").exists()
