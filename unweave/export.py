"""Codes of image files, and encoders that run without unweave."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor, nn

from unweave.contract import UserError
from unweave.evaluate import Trained
from unweave.runs import write_atomic

FORMATS = ("onnx", "torch")
SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"}


def read_image(path: Path, shape: tuple[int, int, int]) -> np.ndarray:
    """One image file as [C, H, W] in 0..1, brought to the model's size and channels."""
    try:
        with Image.open(path) as file:
            picture = file.convert("L" if shape[0] == 1 else "RGB").resize((shape[2], shape[1]), Image.Resampling.BOX)
    except (OSError, UnidentifiedImageError, ValueError) as error:
        raise UserError(f"image '{path}' cannot be read ({error}); give picture files such as .png or .jpg") from error
    array = np.asarray(picture, dtype=np.float32) / 255.0
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


def image_files(paths: Iterable[str | Path]) -> list[Path]:
    """The files named, and the pictures inside the folders named."""
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            found += sorted(p for p in path.rglob("*") if p.suffix.lower() in SUFFIXES)
        elif path.exists():
            found.append(path)
        else:
            raise UserError(f"image '{path}' does not exist")
    if not found:
        raise UserError(f"images: no picture found in {', '.join(map(str, paths)) or 'nothing'}")
    return found


def encode_files(trained: Trained, paths: Iterable[str | Path], out: str | Path, batch: int = 256) -> int:
    """Write `codes` [N, Z] and `files` [N] into an .npz; returns N."""
    files, shape = image_files(paths), trained.data.shape
    codes = []
    for start in range(0, len(files), batch):
        codes.append(trained.encode(np.stack([read_image(f, shape) for f in files[start : start + batch]])))
    with tempfile.TemporaryFile() as buffer:
        np.savez(buffer, codes=np.concatenate(codes), files=np.array([str(f) for f in files]))
        buffer.seek(0)
        write_output(Path(out), buffer.read())
    return len(files)


def write_output(path: Path, content: bytes) -> None:
    """Write a result file, with the user's kind of error when that is impossible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content)
    except OSError as error:
        raise UserError(f"out '{path}' cannot be written: {error.strerror or error}") from error


class _Encoder(nn.Module):
    """Images to codes, and nothing else."""

    def __init__(self, trained: Trained) -> None:
        super().__init__()
        self.method = trained.method
        self.representation = trained.representation

    def forward(self, images: Tensor) -> Tensor:
        return self.representation.encode(images)


def export(trained: Trained, out: str | Path, format: str = "torch") -> Path:
    """Write the encoder as a program of its own: .pt2 for `torch.export.load`, or .onnx."""
    if format not in FORMATS:
        raise UserError(f"format '{format}' is unknown; use one of {', '.join(FORMATS)}")
    encoder = _Encoder(trained).cpu().eval()
    example = torch.zeros(2, *trained.data.shape)
    batch = torch.export.Dim("batch", min=1)
    program = torch.export.export(encoder, (example,), dynamic_shapes={"images": {0: batch}})
    path = Path(out)
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "encoder.onnx" if format == "onnx" else "encoder.pt2")
        if format == "onnx":
            _save_onnx(program, made)
        else:
            torch.export.save(program, made)
        write_output(path, Path(made).read_bytes())
    return path


def _save_onnx(program: torch.export.ExportedProgram, path: str) -> None:
    try:
        import onnxscript  # noqa: F401
    except ImportError:
        raise UserError("format 'onnx' needs the optional packages: pip install 'unweave[onnx]'") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns of its own internals
        made = torch.onnx.export(program, dynamo=True, verbose=False, external_data=False, input_names=["images"])
        assert made is not None
        made.save(path)
