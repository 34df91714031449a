"""Locks: one holder at a time, released when the process ends, however it ends."""

import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from unweave.errors import UserError
from unweave.runs.lock import allow_locks, lock

HOLD = "import sys, time; from pathlib import Path; from unweave.runs.lock import lock\n"
HOLD += "with lock(Path(sys.argv[1])):\n    print('held', flush=True); time.sleep(60)"


def busy(holder):
    return UserError(f"in use by {holder}", argument="run", value=holder)


@contextmanager
def holder(path):
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().strip() == "held"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_second_process_is_refused_and_told_who_holds_the_lock(tmp_path):
    with holder(tmp_path / ".lock") as process, pytest.raises(UserError) as caught, lock(tmp_path / ".lock", busy):
        pass
    assert str(process.pid) in caught.value.value


def test_a_killed_process_holds_no_lock(tmp_path):
    with holder(tmp_path / ".lock") as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        with lock(tmp_path / ".lock", busy):
            pass


def test_the_lock_is_released_at_the_end_of_the_block_and_on_errors(tmp_path):
    with pytest.raises(KeyError), lock(tmp_path / ".lock", busy):
        raise KeyError
    with lock(tmp_path / ".lock", busy), pytest.raises(UserError), lock(tmp_path / ".lock", busy):
        pass


@pytest.mark.parametrize(("hard", "held"), [(100_000, 2000), (1024, 512)])
def test_the_limit_of_open_files_is_raised_for_many_locks(monkeypatch, hard, held):
    resource = pytest.importorskip("resource")
    stored = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (256, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: stored.append(limits))
    assert allow_locks(2000) == held
    assert stored == [(min(2512, hard), hard)]
