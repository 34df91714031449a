"""The training time of runs, stored in their folders."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import torch

from unweave.runs.folder import RunFolder


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
