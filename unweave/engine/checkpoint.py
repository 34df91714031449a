"""The training state in a run folder, with the log record that was unfinished when it was saved."""

from typing import Any, NamedTuple

from torch import Tensor

from unweave.engine.program import State
from unweave.runs import CHECKPOINT, RunFolder, damaged
from unweave.runs.checkpoints import keep_previous_checkpoint, read_checkpoint


class OpenRecord(NamedTuple):
    """Sums of the logged quantities from `first_step` to the step of the checkpoint; empty at the end of a record."""

    sums: dict[str, Tensor]
    first_step: int


def save_state(folder: RunFolder, state: State, stage: int, record: OpenRecord | None = None, **metadata: Any) -> None:
    """Write a checkpoint with further metadata, and keep the one before it."""
    tensors, about = dict(state.tensors()), {"stage": str(stage), **metadata}
    if record is not None:
        tensors |= {f"sums/{name}": total for name, total in record.sums.items()}
        about["first_step"] = str(record.first_step)
    keep_previous_checkpoint(folder)
    folder.save(CHECKPOINT, tensors, **about)


def saved_stage(folder: RunFolder) -> int | None:
    """Return the stage of the stored state, or None if there is none."""
    return int(folder.read_metadata(CHECKPOINT).get("stage", "0")) if folder.has(CHECKPOINT) else None


def restore_state(folder: RunFolder, state: State) -> OpenRecord | None:
    """Fill `state`, in place, with the stored one; return the unfinished log record, if any."""
    stored, metadata = read_checkpoint(folder)
    for name, tensor in state.tensors():
        if name not in stored or stored[name].shape != tensor.shape:
            raise damaged(folder.path, f"{CHECKPOINT} does not fit its config.json ({name})")
        tensor.copy_(stored[name])
    if "first_step" not in metadata:
        return None
    sums = {name.removeprefix("sums/"): total for name, total in stored.items() if name.startswith("sums/")}
    return OpenRecord(sums, int(metadata["first_step"]))
