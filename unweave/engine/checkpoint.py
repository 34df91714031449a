"""The training state in a run folder."""

from __future__ import annotations

from unweave.engine.program import State
from unweave.errors import UserError
from unweave.runs import RunFolder

CHECKPOINT = "checkpoint.safetensors"


def save_state(folder: RunFolder, state: State, stage: int) -> None:
    folder.save(CHECKPOINT, dict(state.tensors()), stage=str(stage))


def saved_stage(folder: RunFolder) -> int | None:
    """The stage of the stored state; None when nothing was stored yet."""
    if not (folder.path / CHECKPOINT).exists():
        return None
    return int(folder.read(CHECKPOINT)[1].get("stage", "0"))


def restore_state(folder: RunFolder, state: State) -> None:
    """Fill `state`, in place, with what the folder holds."""
    stored, _ = folder.read(CHECKPOINT)
    for name, tensor in state.tensors():
        if name not in stored or stored[name].shape != tensor.shape:
            raise UserError(f"run '{folder.path}' is damaged: {CHECKPOINT} does not fit its config.json ({name})")
        tensor.copy_(stored[name])
