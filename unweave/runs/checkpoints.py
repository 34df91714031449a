"""The latest checkpoint of a run and the one before it, which is used if the latest is damaged."""

import os
import warnings
from contextlib import suppress
from typing import Any

from torch import Tensor

from unweave.errors import UserError, UserNotice
from unweave.runs.files import keep_copy, sync_folder
from unweave.runs.folder import CHECKPOINT, PREVIOUS, RunFolder, damaged


def has_checkpoint(folder: RunFolder) -> bool:
    return folder.has(CHECKPOINT) or folder.has(PREVIOUS)


def read_checkpoint(folder: RunFolder) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return tensors and metadata of the latest intact checkpoint; raise if none is."""
    return _read_intact(folder)[1:]


def checkpoint_metadata(folder: RunFolder) -> dict[str, Any]:
    """Return the metadata of the latest checkpoint whose header is intact; {} if there is none."""
    for name in (CHECKPOINT, PREVIOUS):
        with suppress(UserError):
            if folder.has(name):
                return folder.read_metadata(name)
    return {}


def keep_previous_checkpoint(folder: RunFolder) -> None:
    """Keep the latest checkpoint as the previous one, before the next is written."""
    if folder.has(CHECKPOINT):
        keep_copy(folder.path / CHECKPOINT, folder.path / PREVIOUS)


def repair_checkpoint(folder: RunFolder) -> None:
    """Replace a damaged checkpoint by the previous one; the folder must be locked."""
    if has_checkpoint(folder) and _read_intact(folder)[0] == PREVIOUS:
        os.replace(folder.path / PREVIOUS, folder.path / CHECKPOINT)
        sync_folder(folder.path)


def remove_checkpoints(folder: RunFolder, keep_latest: bool = False) -> None:
    folder.remove(PREVIOUS)
    if not keep_latest:
        folder.remove(CHECKPOINT)


def _read_intact(folder: RunFolder) -> tuple[str, dict[str, Tensor], dict[str, Any]]:
    try:
        return CHECKPOINT, *_read(folder, CHECKPOINT)
    except UserError as error:
        if not folder.has(PREVIOUS):
            raise
        tensors, metadata = _read(folder, PREVIOUS)
        stage = f" of stage {int(metadata['stage']) + 1}" if metadata.get("stage", "0") != "0" else ""
        used = f"step {int(tensors['step']):,}{stage}"
        warnings.warn(f"{error}; using the previous checkpoint, {used}", UserNotice, stacklevel=2)
        return PREVIOUS, tensors, metadata


def _read(folder: RunFolder, name: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    tensors, metadata = folder.read(name)
    if "step" not in tensors or tensors["step"].dim() or tensors["step"].is_floating_point():
        raise damaged(folder.path, f"{name} is not a checkpoint")
    return tensors, metadata
