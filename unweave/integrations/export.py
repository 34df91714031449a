"""Encode image files, and export encoders as programs that run without unweave."""

import copy
import importlib
import io
import logging
import os
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unweave.contract import Method
from unweave.data.user.input_images import image_files, read_images
from unweave.errors import check_choice, invalid
from unweave.model import TrainedModel
from unweave.runs import write_files

FORMATS = ("onnx", "torch")


def encode_files(
    trained: TrainedModel, paths: str | Path | Iterable[str | Path], out: str | Path, batch: int = 256
) -> int:
    """Write `codes` [N, Z] and `files` [N] to an .npz; return N."""
    files, preprocessing = image_files(paths), trained.preprocessing
    parts = (files[start : start + batch] for start in range(0, len(files), batch))
    codes = [trained.encode(read_images(part, preprocessing)) for part in parts]
    buffer = io.BytesIO()
    np.savez(buffer, codes=np.concatenate(codes), files=np.array([str(f) for f in files]))
    write_files(out, {Path(out): buffer.getvalue()})
    return len(files)


class _Encoder(nn.Module):
    """Module that maps images to codes."""

    def __init__(self, method: Method) -> None:
        super().__init__()
        self.method = method

    def forward(self, images: Tensor) -> Tensor:
        return self.method.representation().require("encode")(images)


def export(trained: TrainedModel, out: str | Path, format: str = "torch") -> Path:
    """Write the encoder as a program: .pt2 for `torch.export.load`, or .onnx. Return its path."""
    check_choice("format", format, FORMATS)
    path = Path(out)
    if format == "onnx":
        _need_onnx()
    elif path.suffix != ".pt2":
        raise invalid("out", str(out), f"a path that ends in .pt2, such as '{path.with_suffix('.pt2')}'")
    program = encoder_program(trained.method, trained.data.shape)
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "encoder.onnx" if format == "onnx" else "encoder.pt2")
        if format == "onnx":
            _save_onnx(program, made)
        else:
            with warnings.catch_warnings():  # a weight that is not contiguous is saved as it is
                warnings.filterwarnings("ignore", "No complete tensor found in the group", UserWarning)
                torch.export.save(program, made)
        write_files(path, {path: Path(made).read_bytes()})
    return path


def encoder_program(method: Method, shape: tuple[int, int, int]) -> torch.export.ExportedProgram:
    """Return the encoder for any batch size, without the weights of the rest of the method."""
    encoder = _Encoder(copy.deepcopy(method).cpu().eval().requires_grad_(False))
    example, batch = torch.zeros(2, *shape), torch.export.Dim("batch", min=1)

    def trace() -> torch.export.ExportedProgram:
        with torch.no_grad():
            return torch.export.export(encoder, (example,), dynamic_shapes={"images": {0: batch}})

    first = trace()
    unused = {node.name for node in first.graph.nodes if node.op == "placeholder" and not node.users}
    for placeholder, name in first.graph_signature.inputs_to_parameters.items():
        if placeholder in unused:
            owner, _, leaf = name.rpartition(".")
            encoder.get_submodule(owner).register_parameter(leaf, None)
    program = trace()
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # it contains paths of this machine
    return program


def _need_onnx() -> None:
    for package in ("onnx", "onnxscript"):
        try:
            importlib.import_module(package)
        except ImportError:
            accepted = "torch, unless it is installed with pip install 'unweave[onnx]'"
            raise invalid("format", "onnx", accepted, context=f"package {package} is not installed") from None


def _save_onnx(program: torch.export.ExportedProgram, path: str) -> None:
    names: dict[str, Any] = {"input_names": ["images"], "output_names": ["codes"]}
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)  # the exporter reports each missing optional package
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the exporter warns of its own internals
            made = torch.onnx.export(program, dynamo=True, verbose=False, **names)
            assert made is not None
            made.save(path, external_data=False)
    finally:
        logger.setLevel(level)
