"""The manifest of a sweep: the configurations of all its runs, written before the first run folder is created.

Whenever a sweep is stopped, its manifest says which runs are missing, and contains what is needed to create them.

runs/<sweep>/sweep.json     {"format": 1, "runs": [{"folder": "vae-sprites-seed0", "config": {...}}, ...]}
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unweave.errors import UserError
from unweave.runs.files import unwritable, write_atomic
from unweave.runs.lock import lock

MANIFEST, FORMAT = "sweep.json", 1
Configs = dict[str, dict[str, Any]]  # the content of config.json of each run, by the name of its folder


def read_manifest(root: Path) -> Configs:
    """Return the configurations in the manifest of a sweep; {} for a folder without a manifest."""
    try:
        stored = json.loads((root / MANIFEST).read_text())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (ValueError, OSError, RecursionError) as error:
        raise _damaged(root, f"cannot be read ({error})") from error
    try:
        written = int(stored["format"])
        configs = {entry["folder"]: dict(entry["config"]) for entry in stored["runs"]} if written <= FORMAT else {}
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(root, "does not describe a sweep") from error
    if written > FORMAT:
        raise _damaged(root, f"has format {written} of a newer version of unweave")
    if wrong := [name for name in configs if not _is_folder_name(name)]:
        raise _damaged(root, f"names {wrong[0]!r}, which is not a folder of the sweep")
    return configs


def _is_folder_name(name: object) -> bool:
    return isinstance(name, str) and Path(name).name == name and not name.startswith(".") and "\0" not in name


def _damaged(root: Path, fault: str) -> UserError:
    message = f"sweep '{root}' is damaged: {MANIFEST} {fault}"
    return UserError(message, argument="run", value=str(root), accepted="an intact sweep")


def write_manifest(root: Path, configs: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the manifest of a sweep."""
    runs = [{"folder": name, "config": config} for name, config in configs.items()]
    write_atomic(root / MANIFEST, (json.dumps({"format": FORMAT, "runs": runs}, indent=1) + "\n").encode())


@contextmanager
def manifest_lock(root: Path) -> Iterator[None]:
    """Create the folder of a sweep and let no other process change its manifest during the block."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        with lock(root / f".{MANIFEST}.lock"):
            yield
    except OSError as error:
        raise unwritable(root, error) from error


def missing_runs(root: Path) -> list[str]:
    """Return the names of the runs in the manifest that have no folder."""
    return [name for name in read_manifest(root) if not (root / name / "config.json").is_file()]


def is_empty(folder: Path) -> bool:
    """Return True if a folder contains nothing but hidden files, such as those of a process that was stopped."""
    return folder.is_dir() and all(entry.name.startswith(".") for entry in folder.iterdir())
