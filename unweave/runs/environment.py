"""Versions of the program and its libraries, stored with a run."""

import platform
import subprocess
from functools import cache
from pathlib import Path

import numpy
import torch

from unweave.version import __version__


def versions() -> dict[str, str]:
    """Return the versions on which the result of a training may depend, for checkpoints."""
    return {"unweave": __version__, "torch": torch.__version__}


def environment() -> dict[str, str]:
    """Return versions and the state of the source, for config.json."""
    return {
        "unweave": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "git": _git_state(),
    }


@cache
def _git_state() -> str:
    """Return the commit of the package's source, with "+" if it was changed since, or "" outside a checkout."""
    here = Path(__file__).parent.parent
    try:
        command = ["git", "-C", str(here), "describe", "--always", "--dirty=+", "--abbrev=12"]
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
