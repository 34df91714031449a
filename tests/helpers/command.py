"""Run a command of the command line in this process."""

import sys

import pytest

from unweave.cli import app


def unweave(capsys, *words):
    """Return the exit code, standard output and standard error of a command."""
    sys_argv, sys.argv = sys.argv, ["unweave", *map(str, words)]
    try:
        with pytest.raises(SystemExit) as stop:
            app.main()
    finally:
        sys.argv = sys_argv
    said = capsys.readouterr()
    return stop.value.code or 0, said.out, said.err
