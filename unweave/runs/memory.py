"""A run without a folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from unweave.runs.folder import RunFolder


class MemoryRun(RunFolder):
    """A run without a folder: its log records are kept in `records`, and it has no checkpoints."""

    on_disk = False

    def __init__(self) -> None:
        super().__init__(Path())
        self.records: list[dict[str, Any]] = []

    @property
    def writable(self) -> bool:
        return True

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
