"""Trained models: load one from its run folder, encode images, decode codes."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.config import RunConfig, read_config
from unweave.config.devices import find_device
from unweave.config.identity import check_identity
from unweave.config.model_size import check_model_size
from unweave.contract import Method, Representation, stages
from unweave.data import USER_DATASETS, Dataset, load_data
from unweave.data.metadata import DatasetMetadata
from unweave.data.published import FILES
from unweave.data.storage.digest import changed_parts, digest_size, is_sampled
from unweave.data.supervision.kind import Supervision
from unweave.data.supervision.parse import parse_supervision
from unweave.data.user.image_io import Preprocessing
from unweave.data.user.input_images import input_preprocessing
from unweave.errors import UserError, check_choice, invalid
from unweave.methods import METHODS, construct
from unweave.runs import CHECKPOINT, WEIGHTS, RunFolder, damaged
from unweave.runs.checkpoints import has_checkpoint, read_checkpoint

_ROUNDING = 1e-3  # floats may exceed 0..1 by this much
_OTHER_DATA = ", or give data= (--data on the command line) to use other data deliberately"


class TrainedModel(NamedTuple):
    """A trained model with its run folder, its configuration and the data it was trained on."""

    folder: RunFolder
    config: RunConfig
    method: Method
    data: Dataset

    @property
    def representation(self) -> Representation:
        return self.method.representation()

    @property
    def supervision(self) -> Supervision:
        """Supervision of the run, parsed for the data."""
        return parse_supervision(self.config.supervision, self.data)

    @property
    def preprocessing(self) -> Preprocessing:
        """Preprocessing with which image files become images like those of the training."""
        return input_preprocessing(_dataset_metadata(self.folder) or self.data)

    def encode(self, images: Any) -> np.ndarray:
        """Return the codes [N, Z] of images [N, C, H, W], bytes or floats in 0..1."""
        return self._apply("encode", self._images(images))

    def encode_group(self, images: Any) -> np.ndarray:
        """Return the codes [G, Z] of images [G, C, H, W] that form one group; they share the content part.

        Several groups of one size may be passed together, [B, G, C, H, W] -> [B, G, Z].
        """
        return self._apply("encode_group", self._images(images))

    def decode(self, codes: Any) -> np.ndarray:
        """Return the images [N, C, H, W] of codes [N, Z]."""
        code_NZ, latents = self._tensor(codes), self.representation.latents
        if code_NZ.ndim != 2 or code_NZ.shape[1] != latents:
            raise invalid("codes", tuple(code_NZ.shape), f"an array of shape (N, {latents})")
        return self._apply("decode", code_NZ)

    def _apply(self, function: str, values: Tensor) -> np.ndarray:
        with torch.no_grad():
            return self.representation.require(function)(values).cpu().numpy()

    def _images(self, values: Any) -> Tensor:
        given = torch.as_tensor(values)
        images = self._tensor(given / 255.0 if given.dtype == torch.uint8 else given)
        if images.ndim < 4 or tuple(images.shape[-3:]) != tuple(self.data.shape):
            shape = ", ".join(map(str, self.data.shape))
            raise invalid("images", tuple(images.shape), f"an array of shape (N, {shape})")
        low, high = (float(end) for end in images.aminmax()) if images.numel() else (0.0, 1.0)
        if not (low >= -_ROUNDING and high <= 1.0 + _ROUNDING):  # also if NaN
            raise invalid("images", (low, high), "bytes, or floats from 0 to 1", hint="the value is their range")
        return images

    def _tensor(self, values: Any) -> Tensor:
        return torch.as_tensor(values, dtype=torch.float32, device=next(self.method.parameters()).device)


class Diverged(NamedTuple):
    """A run that stopped because a logged quantity was not finite.

    Its folder has the last finite state if it was trained in a fleet, or else the last checkpoint before.
    """

    folder: RunFolder
    config: RunConfig
    step: int
    quantity: str = "a logged quantity"


def load(
    path: str | Path,
    *,
    device: str = "cpu",
    method: type[Method] | None = None,
    data: str | Dataset | None = None,
    with_data: bool = True,
) -> TrainedModel:
    """Load the model of a run folder, with its final weights or those of its last checkpoint.

    Give `method` and `data` if the run used classes of your own, which a folder does not store. With
    `with_data=False` the training data are not read and need not exist, which suffices to encode new images.
    """
    folder, device = RunFolder.open(path), find_device(device)
    config = read_config(folder)
    if method is None:
        check_choice("method", config.method, METHODS, context=f"run '{path}'")
        method = METHODS[config.method]
    weights, metadata = load_weights(folder)
    check_unchanged(folder, config, method, metadata)
    if data is not None:
        data, info = load_data(data), _dataset_metadata(folder)
        if info is not None and tuple(info.shape) != tuple(data.shape):
            accepted = f"a data set with images of shape {info.shape} for run '{folder.path}'"
            raise invalid("data", data.shape, accepted)
    try:
        data = data or (None if with_data else _dataset_metadata(folder)) or load_training_data(folder)
        model = _rebuild(method, config, data, int(metadata.get("stage", 0)))
        model.load_state_dict(weights)
    except (KeyError, RuntimeError, TypeError) as error:
        first = str(error).splitlines()[0]
        raise damaged(path, f"its weights do not fit its config.json ({first})") from error
    return TrainedModel(folder, config, model.to(device).eval(), data.to(device))


def check_unchanged(folder: RunFolder, config: RunConfig, method: type[Method], metadata: Mapping[str, Any]) -> None:
    """Raise if the configuration is not that of the training; `metadata` are those of the weights or checkpoint.

    The steps of an unfinished run of one stage may be more than when its checkpoint was written: it is extended.
    """
    final, count = folder.finished, len(stages(method))
    if int(metadata.get("stage", 0)) >= count:
        raise damaged(
            folder.path, f"its weights are of stage {int(metadata['stage']) + 1}, but '{config.method}' has {count}"
        )
    file = WEIGHTS if final else CHECKPOINT
    extended = count == 1 and not final
    check_identity(folder.path, config, method, metadata.get("identity"), file, extended=extended)


def relocated_data(path: str | Path, data: Path | None, factors: Path | None) -> Dataset | None:
    """Return the data of a run, read from where its files or its table of factors are now; None if neither is given."""
    moved = {name: str(path) for name, path in (("path", data), ("factors", factors)) if path is not None}
    if not moved:
        return None
    config = read_config(RunFolder.open(path))
    for option, location, movable in (("data", data, (*USER_DATASETS, *FILES)), ("factors", factors, USER_DATASETS)):
        if location is not None and config.data not in movable:
            accepted = f"left out, because run '{path}' was trained on '{config.data}', which is not read from there"
            raise invalid(option, str(location), accepted)
    _check_files(path, {n: option for n, option in config.data_options.items() if n not in moved})
    return load_data(config.data, **{**config.data_options, **moved})


def load_training_data(folder: RunFolder, hint: str = _OTHER_DATA, config: RunConfig | None = None) -> Dataset:
    """Read the data a run was trained on; raise if they have changed since.

    `config` is the configuration of the run if it has no folder yet.
    """
    config = config or read_config(folder)
    if config.data in (*USER_DATASETS, *FILES):
        _check_files(folder.path, config.data_options)
    if config.data in USER_DATASETS and "path" not in config.data_options:
        again = "pass them as data= to load or resume, or repeat the call of fit with resume=True"
        message = f"run '{folder.path}' was trained on arrays in memory, which are not stored; {again}"
        raise UserError(message, argument="data", value=config.data, accepted="the same arrays")
    data = load_data(config.data, **config.data_options)
    check_data(folder, config, data, hint)
    return data


def check_data(folder: RunFolder, config: RunConfig, data: Dataset, hint: str = "") -> bool:
    """Raise unless these are the data that the run was trained on; return False if that could not be verified."""
    if change := data_change(folder, config, data):
        argument = "factors" if change.startswith("factors") else "data"
        location = config.data_options.get("factors" if argument == "factors" else "path")
        message = f"the {change}; restore them{hint}"
        raise UserError(message, argument=argument, value=location or config.data, accepted="the data of the run")
    # Older versions stored a fingerprint in the options of folders and array files, which was compared on opening.
    opened = "fingerprint" in str(config.data_options) and str(data.options) == str(config.data_options)
    return bool(config.data_digest) or opened


def data_change(folder: RunFolder, config: RunConfig, data: Dataset) -> str:
    """Return how these data differ from those that the run was trained on, "" if no difference is known."""
    if stored := str(config.data_digest or ""):
        sampled, then = is_sampled(stored), digest_size(stored)
        now = data.digest if is_sampled(data.digest) == sampled else data.compute_digest(sampled)
        parts = changed_parts(stored, now)
    else:
        info = _dataset_metadata(folder)
        then = data.size if info is None else info.size
        parts = () if info is None or (then, tuple(info.shape)) == (data.size, tuple(data.shape)) else ("images",)
    if not parts:
        return ""
    location = data.options.get("factors" if parts == ("factors",) else "path")
    where = f" in '{location}'" if location else ""
    counts = f" ({then} images then, {data.size} now)" if then != data.size else ""
    return f"{' and '.join(parts)}{where} are not those that run '{folder.path}' was trained on{counts}"


def _check_files(run: str | Path, options: Mapping[str, Any]) -> None:
    """Raise if a file or folder of a run's data does not exist."""
    for name, option in (("path", "data"), ("factors", "factors")):
        location = options.get(name)
        if location is not None and not Path(str(location)).exists():
            commands = "predict, report, evaluate, compare or train --resume"
            accepted = f"restored, or its new location given by --{option} of {commands}; in Python, by data= of load"
            message = f"run '{run}' was trained on {option} '{location}', which does not exist; it must be {accepted}"
            raise UserError(message, argument=option, value=location, accepted=accepted)


def _dataset_metadata(folder: RunFolder) -> DatasetMetadata | None:
    """Return the stored description of a run's data; None if an older version wrote the run without one."""
    stored = folder.model_info
    if stored is None:
        return None
    config = read_config(folder)
    try:
        return DatasetMetadata(config.data, config.data_options, stored)
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(folder.path, "model.json does not describe the data of a model") from error


def _rebuild(method: type[Method], config: RunConfig, data: Dataset, stage: int) -> Method:
    if isinstance(data, DatasetMetadata):
        info = data.data_info
    else:
        info = parse_supervision(config.supervision, data).info(data)
    check_model_size(method, info, config.arguments)
    model = None
    for cls in stages(method)[: stage + 1]:
        model = construct(cls, info, config.arguments, model)
    assert model is not None
    return model


def checkpoint_step(folder: RunFolder) -> int:
    """Return the step of the current stage at which the weights in the folder were saved."""
    if folder.finished:
        return read_config(folder).steps
    return int(read_checkpoint(folder)[0]["step"]) if has_checkpoint(folder) else 0


def load_weights(folder: RunFolder) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the weights of a run, final or of its last checkpoint, and the metadata of their file."""
    if folder.finished:
        return folder.read(WEIGHTS)
    if not has_checkpoint(folder):
        accepted = f"a run with weights; continue it with: unweave train --resume {shlex.quote(str(folder.path))}"
        raise invalid("run", str(folder.path), accepted)
    try:
        stored, metadata = read_checkpoint(folder)
    except UserError:
        if folder.finished:  # meanwhile, and the checkpoint was removed
            return folder.read(WEIGHTS)
        raise
    return {n.split("/", 1)[1]: t for n, t in stored.items() if n.startswith(("params/", "buffers/"))}, metadata
