"""The run folder on disk. Every write is atomic; loading never executes code.

runs/<name>/config.json               the configuration, complete, to repeat the run
           model.json                 form of the data and names of the classes
           labels.safetensors         the labelled observations
           log.jsonl                  one record per line
           checkpoint.safetensors     the latest training state
           weights.safetensors        the weights of the finished model
           time.json                  training time and device
           scores.json, samples/      written by evaluation and reports
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from unweave.errors import UserError, invalid
from unweave.version import __version__

CHECKPOINT, WEIGHTS = "checkpoint.safetensors", "weights.safetensors"


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file such that it has either its old or its complete new content, even if the process is killed."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException as error:
            os.unlink(file.name)
            if isinstance(error, OSError):
                error.filename = str(path)  # missing in the error of a full disk
            raise


def damaged(run: Path | str, fault: str) -> UserError:
    """Return the error for a run with a file that cannot be read."""
    message = f"run '{run}' is damaged: {fault}"
    return UserError(message, argument="run", value=str(run), accepted="an intact run folder")


def existing_folder_error(path: Path | str) -> UserError:
    hint = "choose another, or continue this one with --resume"
    return invalid("out", str(path), "a folder that does not exist", hint=hint)


def unwritable(path: Path | str, error: OSError, argument: str = "out") -> UserError:
    message = f"{argument} '{path}' cannot be written: {error.strerror or error}; choose another location"
    return UserError(message, argument=argument, value=str(path), accepted="a writable location")


def write_files(out: str | Path, contents: Mapping[Path, bytes], *, argument: str = "out") -> None:
    """Write files and their folders; raise a UserError that names `out` if that fails."""
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, content)
    except OSError as error:
        raise unwritable(out, error, argument) from error


class RunFolder:
    """The folder of one run."""

    on_disk = True

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    @classmethod
    def create(
        cls, path: Path | str, config: Mapping[str, Any], model_info: Mapping[str, Any] | None = None
    ) -> RunFolder:
        """Create a folder with the configuration and a description of the model; leave nothing behind on failure."""
        folder = cls(path)
        if folder.path.exists():
            raise existing_folder_error(path)
        missing = [p for p in (folder.path, *folder.path.parents) if not p.exists()]
        try:
            folder.path.mkdir(parents=True)
            if model_info is not None:
                folder.write_json("model.json", model_info)
            folder.write_json("config.json", config)  # last, because it makes the folder a run
        except OSError as error:
            if missing and missing[-1].exists():
                shutil.rmtree(missing[-1], ignore_errors=True)
            raise unwritable(path, error) from error
        return folder

    @classmethod
    def open(cls, path: Path | str) -> RunFolder:
        """Return the folder of an existing run; raise if it is not one, or if its config.json is damaged."""
        folder = cls(path)
        if not folder.has("config.json"):
            raise invalid("run", str(path), "a run folder, which contains config.json")
        stored = folder.read_json("config.json")
        if not isinstance(stored, dict) or "method" not in stored:
            raise damaged(path, "config.json does not describe a run")
        return folder

    @property
    def finished(self) -> bool:
        return self.has(WEIGHTS)

    @property
    def training_time(self) -> dict[str, Any]:
        """Seconds of training, number of models trained in them, and name of the device; {} if not stored."""
        found = self.read_json("time.json") if self.has("time.json") else {}
        return found if isinstance(found, dict) else {}

    @property
    def model_info(self) -> dict[str, Any] | None:
        """Form of the data and names of the classes; None for runs written before these were stored."""
        return self.read_json("model.json") if self.has("model.json") else None

    def read_json(self, name: str) -> Any:
        try:
            return json.loads((self.path / name).read_text())
        except (ValueError, OSError) as error:
            raise damaged(self.path, f"{name} cannot be read ({error})") from error

    def write_json(self, name: str, content: Any) -> None:
        write_atomic(self.path / name, (json.dumps(content, indent=2) + "\n").encode())

    def save(self, name: str, tensors: Mapping[str, Tensor], **metadata: str) -> None:
        """Write tensors and text metadata as one safetensors file."""
        flat = {n: t.detach().contiguous().cpu() for n, t in tensors.items()}
        # One entry only: safetensors writes several in random order, but the files of equal runs should be equal.
        write_atomic(self.path / name, save_tensors(flat, metadata={"about": json.dumps({"format": "2", **metadata})}))

    def read(self, name: str) -> tuple[dict[str, Tensor], dict[str, str]]:
        """Return the tensors and the metadata of a file; names from older versions are replaced."""
        metadata, path = self.read_metadata(name), self.path / name
        try:
            tensors = load_tensors(path.read_bytes())
        except (SafetensorError, OSError, ValueError) as error:
            raise damaged(self.path, f"{name} cannot be read ({error})") from error
        return tensors if "format" in metadata else {current_name(n): t for n, t in tensors.items()}, metadata

    def read_metadata(self, name: str) -> dict[str, str]:
        try:
            with safe_open(self.path / name, framework="pt") as file:
                return json.loads((file.metadata() or {}).get("about", "{}"))
        except (SafetensorError, OSError, ValueError) as error:
            raise damaged(self.path, f"{name} cannot be read ({error})") from error

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def remove(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    def append_log(self, record: Mapping[str, Any]) -> None:
        with open(self.path / "log.jsonl", "a") as file:
            file.write(json.dumps(record) + "\n")

    def logs(self) -> list[dict[str, Any]]:
        """Return all complete records; an incomplete last line is ignored."""
        path, records = self.path / "log.jsonl", []
        for line in path.read_text().splitlines(keepends=True) if path.exists() else ():
            with suppress(ValueError):
                records += [json.loads(line)] if line.endswith("\n") else []
        return [{current_name(name): value for name, value in record.items()} for record in records]

    def truncate_log(self, stage: int, step: int) -> None:
        """Remove the records after this position; a resumed run writes them again."""
        kept = [r for r in self.logs() if (r["stage"], r["step"]) <= (stage, step)]
        write_atomic(self.path / "log.jsonl", "".join(json.dumps(r) + "\n" for r in kept).encode())


def current_name(name: str) -> str:
    """Return the current name of a tensor, player or logged quantity of an older run."""
    return (
        name.replace("critic", "discriminator").replace("places_YZ", "cluster_heads").replace("closeness", "repulsion")
    )


def list_runs(root: Path | str) -> list[RunFolder]:
    """Return the run folders directly below a folder, sorted by name."""
    return [RunFolder(p.parent) for p in sorted(Path(root).glob("*/config.json"))]


class MemoryRun(RunFolder):
    """A run without a folder: its log records are kept in `records`, and it has no checkpoints."""

    on_disk = False

    def __init__(self) -> None:
        super().__init__(Path())
        self.records: list[dict[str, Any]] = []

    def has(self, name: str) -> bool:
        return False

    def write_json(self, name: str, content: Any) -> None:
        pass

    def save(self, name: str, tensors: Mapping[str, Tensor], **metadata: str) -> None:
        pass

    def append_log(self, record: Mapping[str, Any]) -> None:
        self.records.append(dict(record))

    def truncate_log(self, stage: int, step: int) -> None:
        pass

    def remove(self, name: str) -> None:
        pass


@contextmanager
def record_training_time(folders: Sequence[RunFolder], device: str) -> Iterator[Callable[[], None]]:
    """Store the seconds that these runs took together, added to those before an interruption.

    Yields a function that stores them at once; call it at each checkpoint, so that a killed run has them too.
    """
    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else device
    before = [folder.training_time.get("seconds", 0.0) for folder in folders]
    began = time.monotonic()

    def write() -> None:
        seconds = time.monotonic() - began
        for folder, earlier in zip(folders, before, strict=True):
            training_time = {"seconds": round(earlier + seconds, 3), "models": len(folders), "device": name}
            with suppress(OSError):  # keeps the error that ended the training
                folder.write_json("time.json", training_time)

    try:
        yield write
    finally:
        write()


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
