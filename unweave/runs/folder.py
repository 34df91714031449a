"""`RunFolder`: the files of one run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from unweave.errors import UserError, invalid
from unweave.runs.files import (
    LOCK,
    existing_folder_error,
    is_temporary,
    new_folder,
    remove_temporary_files,
    sync_file,
    unwritable,
    write_atomic,
    write_new,
)
from unweave.runs.lock import lock
from unweave.runs.schema import check_fields, fits
from unweave.runs.tensors import pack, read_metadata, unpack

CHECKPOINT, PREVIOUS = "checkpoint.safetensors", "checkpoint.previous.safetensors"
WEIGHTS = "weights.safetensors"
_WRITTEN_BY_TRAINING = ("config.json", "model.json", "log.jsonl", "time.json", CHECKPOINT, PREVIOUS, WEIGHTS)
_TIME = {"seconds": float, "models": int, "device": str}


def damaged(run: Path | str, fault: str) -> UserError:
    """Return the error for a run with a file that cannot be read."""
    message = f"run '{run}' is damaged: {fault}"
    return UserError(message, argument="run", value=str(run), accepted="an intact run folder")


def is_damaged(error: UserError, folder: RunFolder) -> bool:
    """Return True if an error says that this run is damaged."""
    return (error.argument, error.value, error.accepted) == ("run", str(folder.path), damaged("", "").accepted)


class RunFolder:
    """The folder of one run."""

    on_disk = True

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).expanduser()

    @contextmanager
    def create(
        self,
        config: Mapping[str, Any],
        model_info: Mapping[str, Any] | None = None,
        write: Callable[[RunFolder], None] | None = None,
    ) -> Iterator[None]:
        """Create the folder, complete with the configuration and the description of the model, and hold its lock.

        `write` writes further files.
        """
        if os.path.lexists(self.path):
            raise existing_folder_error(self.path)
        with ExitStack() as stack:
            try:
                with new_folder(self.path) as temporary:
                    stack.enter_context(lock(temporary / LOCK, self._in_use))
                    write_new(temporary / "config.json", _json_bytes(config))
                    if model_info is not None:
                        write_new(temporary / "model.json", _json_bytes(model_info))
                    if write is not None:
                        write(type(self)(temporary))
            except OSError as error:
                raise unwritable(self.path, error) from error
            yield

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of an existing run, so that no other process trains it; the lock of a dead process is free."""
        with ExitStack() as stack:
            try:
                stack.enter_context(lock(self.path / LOCK, self._in_use))
                remove_temporary_files(self.path, _WRITTEN_BY_TRAINING)
            except OSError as error:
                raise unwritable(self.path, error, "run") from error
            yield

    def _in_use(self, holder: str) -> UserError:
        message = f"run '{self.path}' is being trained by {holder}; wait until it ends, or stop it"
        return UserError(message, argument="run", value=str(self.path), accepted="a run that is not being trained")

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
    def writable(self) -> bool:
        """False for a folder of another user or on a read-only file system."""
        return os.access(self.path, os.W_OK)

    @property
    def finished(self) -> bool:
        return self.has(WEIGHTS)

    @property
    def training_time(self) -> dict[str, Any]:
        """Seconds of training, number of models trained in them, and name of the device; {} if not stored."""
        found = self.read_json("time.json") if self.has("time.json") else {}
        with self._reading("time.json"):
            check_fields(found, _TIME)
        return found

    @property
    def model_info(self) -> dict[str, Any] | None:
        """Form of the data and names of the classes; None for runs written before these were stored."""
        return self.read_json("model.json") if self.has("model.json") else None

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        """Turn the errors of a file that cannot be read into the error for a damaged run."""
        try:
            yield
        except UserError:
            raise
        except (OSError, ValueError, RecursionError) as error:
            raise damaged(self.path, f"{name} cannot be read ({error})") from error

    def read_json(self, name: str) -> Any:
        with self._reading(name):
            return json.loads((self.path / name).read_text())

    def write_json(self, name: str, content: Any) -> None:
        write_atomic(self.path / name, _json_bytes(content))

    def save(self, name: str, tensors: Mapping[str, Tensor], **metadata: Any) -> None:
        """Write tensors and metadata as one safetensors file. The log records before it are on disk first."""
        if self.has("log.jsonl"):
            sync_file(self.path / "log.jsonl")
        write_atomic(self.path / name, pack(tensors, metadata))

    def read(self, name: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the tensors and the metadata of a file; raise if they have changed since they were written.

        Names of tensors from older versions are replaced.
        """
        with self._reading(name):
            tensors, metadata = unpack((self.path / name).read_bytes())
        return tensors if "format" in metadata else {current_name(n): t for n, t in tensors.items()}, metadata

    def read_metadata(self, name: str) -> dict[str, Any]:
        with self._reading(name):
            return read_metadata(self.path / name)

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def remove(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    def append_log(self, record: Mapping[str, Any]) -> None:
        path = self.path / "log.jsonl"
        try:
            with open(path, "a") as file:
                file.write(json.dumps(record) + "\n")
        except OSError as error:
            error.filename = str(path)  # missing in the error of a full disk
            raise

    def logs(self) -> list[dict[str, Any]]:
        """Return all complete records; an incomplete last line is ignored."""
        path, records = self.path / "log.jsonl", []
        with self._reading("log.jsonl"):
            lines = path.read_text().splitlines(keepends=True) if path.exists() else []
            for number, line in enumerate(lines, start=1):
                if line.endswith("\n"):
                    records.append(_parse_record(line, number))
        return [{current_name(name): value for name, value in record.items()} for record in records]

    def truncate_log(self, stage: int, step: int) -> None:
        """Remove the records after this position; a resumed run writes them again."""
        kept = [r for r in self.logs() if (r["stage"], r["step"]) <= (stage, step)]
        write_atomic(self.path / "log.jsonl", "".join(json.dumps(r) + "\n" for r in kept).encode())


def _json_bytes(content: Any) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()


def _parse_record(line: str, number: int) -> dict[str, Any]:
    """Return a log record; raise a ValueError if it is not one."""
    try:
        record = json.loads(line)
        check_fields(record, {"stage": int, "step": int}, required=True)
        if not all(fits(value, float | None) for value in record.values()):
            raise ValueError("a value is not a number")
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from error
    return record


def current_name(name: str) -> str:
    """Return the current name of a tensor, player or logged quantity of an older run."""
    return (
        name.replace("critic", "discriminator").replace("places_YZ", "cluster_heads").replace("closeness", "repulsion")
    )


def list_runs(root: Path | str) -> list[RunFolder]:
    """Return the run folders directly below a folder, sorted by name."""
    paths = sorted(file.parent for file in Path(root).glob("*/config.json"))
    return [RunFolder(path) for path in paths if not is_temporary(path)]
