"""A trained model: encode and decode with it, and load one from its run folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.config import RunConfig, read_config
from unweave.contract import Method, Representation, stages
from unweave.data import USER_DATASETS, Dataset, load_data, supervised_info
from unweave.data.metadata import DatasetMetadata
from unweave.data.published import FILES
from unweave.errors import UserError, check_choice
from unweave.methods import METHODS, construct
from unweave.runs import CHECKPOINT, WEIGHTS, RunFolder

_ROUNDING = 1e-3  # by which a float may leave 0..1


class TrainedModel(NamedTuple):
    """A trained model with where it lives, how it was made, and what it was trained on."""

    folder: RunFolder
    config: RunConfig
    method: Method
    data: Dataset

    @property
    def representation(self) -> Representation:
        return self.method.representation()

    def encode(self, images: Any) -> np.ndarray:
        """Codes [N, Z] of images [N, C, H, W], bytes or floats in 0..1."""
        with torch.no_grad():
            return self.representation.require("encode")(self._images(images)).cpu().numpy()

    def encode_group(self, images: Any) -> np.ndarray:
        """Codes [G, Z] of images [G, C, H, W] that are one group, with the content that all of them tell together.

        Several groups of one size may come at once, [B, G, C, H, W] -> [B, G, Z].
        """
        encode = self.representation.encode_group
        if encode is None:
            raise UserError(f"method '{self.config.method}' does not join the codes of a group; use encode")
        return encode(self._images(images)).cpu().numpy()

    def decode(self, codes: Any) -> np.ndarray:
        """Images [N, C, H, W] of codes [N, Z]."""
        decoder = self.representation.decode
        if decoder is None:
            raise UserError(f"method '{self.config.method}' has no decoder")
        latents, code = self.representation.latents, self._tensor(codes)
        if code.ndim != 2 or code.shape[1] != latents:
            raise UserError(f"codes have shape {tuple(code.shape)}; the model takes (N, {latents})")
        with torch.no_grad():
            return decoder(code).cpu().numpy()

    def _images(self, values: Any) -> Tensor:
        given = torch.as_tensor(values)
        images = self._tensor(given / 255.0 if given.dtype == torch.uint8 else given)
        if images.ndim < 4 or tuple(images.shape[-3:]) != tuple(self.data.shape):
            takes = ", ".join(map(str, self.data.shape))
            raise UserError(f"images have shape {tuple(images.shape)}; the model takes (N, {takes})")
        low, high = (float(end) for end in images.aminmax()) if images.numel() else (0.0, 1.0)
        if not (low >= -_ROUNDING and high <= 1.0 + _ROUNDING):  # not if it is no number
            raise UserError(f"images hold numbers from {low:g} to {high:g}; give bytes, or floats in 0..1")
        return images

    def _tensor(self, values: Any) -> Tensor:
        return torch.as_tensor(values, dtype=torch.float32, device=next(self.method.parameters()).device)


class Diverged(NamedTuple):
    """A run whose losses turned non-finite; its folder holds its last finite state."""

    folder: RunFolder
    config: RunConfig
    step: int
    quantity: str = "a logged quantity"  # which was not finite


def load(
    path: str | Path,
    *,
    device: str = "cpu",
    method: type[Method] | None = None,
    data: str | Dataset | None = None,
    with_data: bool = True,
) -> TrainedModel:
    """The model in a run folder, finished or as far as its last checkpoint.

    `method` and `data` are for runs on classes of your own, which a folder cannot bring back by itself.
    `with_data=False` does not read what it was trained on, which then need not be there: enough for new pictures.
    """
    folder = RunFolder.open(path)
    config = read_config(folder)
    if method is None:
        check_choice("method", config.method, METHODS, context=f"run '{path}'")
        method = METHODS[config.method]
    weights, about = load_weights(folder)
    if data is not None:
        data = _fitting(load_data(data), folder)
    try:
        data = data or (None if with_data else _remembered(folder)) or load_training_data(folder)
        model = _rebuild(method, config, data, int(about.get("stage", 0)))
        model.load_state_dict(weights)
    except (KeyError, RuntimeError, TypeError) as error:
        first = str(error).splitlines()[0]
        raise UserError(f"run '{path}' is damaged: its weights do not fit its config.json ({first})") from error
    return TrainedModel(folder, config, model.to(device).eval(), data.to(device))


def _fitting(data: Dataset, folder: RunFolder) -> Dataset:
    """The data, if the model can take them."""
    note = _remembered(folder)
    if note is not None and tuple(note.shape) != tuple(data.shape):
        raise UserError(
            f"data has images of shape {data.shape}, but run '{folder.path}' takes {note.shape}; give those"
        )
    return data


def relocated_data(path: str | Path, data: Path | None, factors: Path | None) -> Dataset | None:
    """The data of a run from where they, or their table, lie now; None if nothing is said. They must be the same."""
    given = {"path": data, "factors": factors}
    moved = {name: str(place) for name, place in given.items() if place is not None}
    if not moved:
        return None
    config = read_config(RunFolder.open(path))
    for option, place, having, what in (
        ("data", data, (*USER_DATASETS, *FILES), "files"),
        ("factors", factors, USER_DATASETS, "table"),
    ):
        if place is not None and config.data not in having:
            raise UserError(
                f"{option} '{place}' cannot be given to run '{path}': its data are '{config.data}', no {what}"
            )
    _all_there(path, {n: place for n, place in config.data_options.items() if n not in moved})
    return load_data(config.data, **{**config.data_options, **moved})


def load_training_data(folder: RunFolder) -> Dataset:
    """The data a run was trained on, read again."""
    config = read_config(folder)
    name, options = config.data, config.data_options
    if name in (*USER_DATASETS, *FILES):
        _all_there(folder.path, options)
    return load_data(name, **options)


def _all_there(run: str | Path, options: Mapping[str, Any]) -> None:
    """The files that a run's data are made of."""
    for name, option in (("path", "data"), ("factors", "factors")):
        place = options.get(name)
        if place is not None and not Path(str(place)).exists():
            raise UserError(
                f"run '{run}' was trained on {option} '{place}', which is not there; put it back, or say where it is "
                f"now: --{option} of predict, report, evaluate, compare and train --resume; in Python, data= of load"
            )


def _remembered(folder: RunFolder) -> DatasetMetadata | None:
    """What stands for the data of a run; None if the run is from before that was noted."""
    note, config = folder.model_info, read_config(folder)
    try:
        return None if note is None else DatasetMetadata(config.data, config.data_options, note)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"run '{folder.path}' is damaged: model.json does not say what the model takes") from error


def _rebuild(method: type[Method], config: RunConfig, data: Dataset, stage: int) -> Method:
    told = data.data_info if isinstance(data, DatasetMetadata) else supervised_info(data, config.supervision)
    model = None
    for cls in stages(method)[: stage + 1]:
        model = construct(cls, told, config.arguments, model)
    assert model is not None
    return model


def checkpoint_step(folder: RunFolder) -> int:
    """Return the step of the current stage at which the weights in the folder were saved."""
    if folder.finished:
        return read_config(folder).steps
    return int(folder.read(CHECKPOINT)[0]["step"]) if folder.has(CHECKPOINT) else 0


def load_weights(folder: RunFolder) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the weights of a run, final or of its last checkpoint, and the metadata of their file."""
    if folder.finished:
        return folder.read(WEIGHTS)
    if not folder.has(CHECKPOINT):
        raise UserError(f"run '{folder.path}' has no weights yet; finish it with: unweave train --resume {folder.path}")
    stored, about = folder.read(CHECKPOINT)
    return {n.split("/", 1)[1]: t for n, t in stored.items() if n.startswith(("params/", "buffers/"))}, about
