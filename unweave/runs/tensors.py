"""Files of tensors with text metadata, in the format safetensors, and the digest of their content."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from unweave.runs.schema import check_fields

_MAX_HEADER = 100_000_000  # bytes, the limit of safetensors
_NUMBERS = ("stage", "step", "steps", "first_step")  # metadata that are integers, as text
_TYPES = {"digest": str, "identity": dict[str, Any], "versions": dict[str, str], **dict.fromkeys(_NUMBERS, str)}


def pack(tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> bytes:
    """Return the content of a file; equal tensors and metadata have equal files."""
    flat = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
    about = {"format": "2", **metadata}
    about["digest"] = _digest(flat, about)
    # One entry only: safetensors writes several in random order, but the files of equal runs should be equal.
    return save(flat, metadata={"about": json.dumps(about)})


def unpack(content: bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return tensors and metadata; raise a ValueError if the content is not what was written.

    Files of versions without digests are not compared.
    """
    try:
        tensors = load(content)
    except SafetensorError as error:
        raise ValueError(error) from error
    metadata = _parse_header(content[8 : 8 + int.from_bytes(content[:8], "little")])
    if "digest" in metadata and metadata["digest"] != _digest(tensors, metadata):
        raise ValueError("its content has changed since it was written")
    return tensors, metadata


def read_metadata(path: Path) -> dict[str, Any]:
    """Return the metadata of a file without its tensors, which are not compared with the digest."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > _MAX_HEADER:
            raise ValueError("it is not a safetensors file")
        return _parse_header(file.read(length))


def _parse_header(header: bytes) -> dict[str, Any]:
    try:
        metadata = json.loads(json.loads(header).get("__metadata__", {}).get("about", "{}"))
        check_fields(metadata, _TYPES)
    except (AttributeError, RecursionError, TypeError) as error:
        raise ValueError("its metadata cannot be read") from error
    for name in _NUMBERS:
        if not (text := metadata.get(name, "0")).isascii() or not text.isdigit() or len(text) > 15:
            raise ValueError(f"its metadata {name} is not a number")
    return metadata


def _digest(tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> str:
    """Return a SHA-256 of names, types, shapes and values of the tensors, and of the metadata."""
    about = {name: value for name, value in metadata.items() if name != "digest"}
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
