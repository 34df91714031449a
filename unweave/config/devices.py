"""The device of a run or of a computation, from the option `device`."""

import re

import torch

from unweave.config.run_config import PRECISIONS
from unweave.errors import UserError, check_choice, invalid


def find_device(device: str, precision: str = "float32") -> str:
    """Return the device to use; "auto" is the first CUDA device, or else the CPU."""
    check_choice("precision", precision, PRECISIONS)
    usable = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if device == "auto":
        device = "cuda" if usable["cuda"] else "cpu"
    if not re.fullmatch(r"cpu|cuda(:[0-9]{1,4})?|mps", str(device)):
        raise invalid("device", device, "auto, cpu, cuda, cuda:N or mps")
    kind, _, index = device.partition(":")
    if not usable[kind] or (index and int(index) >= torch.cuda.device_count()):
        accepted = ", ".join(name for name, is_usable in usable.items() if is_usable)
        message = f"device '{device}' is not available on this machine; available: {accepted}"
        raise UserError(message, argument="device", value=device, accepted=accepted)
    if precision == "bf16" and kind != "cuda":
        raise invalid("precision", precision, f"float32 or tf32 on device '{device}'", hint="bf16 needs CUDA")
    return device
