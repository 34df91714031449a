"""Triton's interpreter runs kernels on a CPU; it has to be chosen before Triton is imported, so in a new process."""

import importlib.util
import os
import subprocess
import sys

import pytest


def run_interpreted(program):
    """The program's own assertions, with kernels interpreted."""
    if importlib.util.find_spec("triton") is None:
        pytest.fail("triton is missing: it is in the dev extra")
    words = [sys.executable, "-c", program]
    run = subprocess.run(words, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
