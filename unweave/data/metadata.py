"""What a run remembers of the data it was trained on: enough to use its model where those data are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from unweave.contract import DataInfo
from unweave.data.dataset import Dataset
from unweave.data.ranges import Span
from unweave.data.supervision.kind import Supervision
from unweave.data.supervision.label_mapping import LabelMapping, label_mappings
from unweave.data.user.image_io import Preprocessing
from unweave.errors import UserError


class DatasetMetadata(Dataset):
    """Stands for data that were not read: their form, how pictures were prepared, and what the labels told."""

    grid = False
    factor_names = factor_sizes = factor_values = ()

    def __init__(self, name: str, options: dict[str, object], note: Mapping[str, Any]) -> None:
        super().__init__()
        self.name, self.options = name, options
        given: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in note["data"].items()}
        self.data_info = DataInfo(**given)
        self.shape, self.size = self.data_info.shape, self.data_info.size
        self.preprocessing = None if note["pictures"] is None else Preprocessing(**note["pictures"])
        self.label_mappings = [
            LabelMapping(
                one["factor"], dict(zip(one["values"], one["classes"], strict=True)), one["size"], _spans(one["spans"])
            )
            for one in note["labels"]
        ]

    def images(self, index_B: Tensor) -> Tensor:
        raise UserError("the data of this run were not read, only its model; load it with its data for that")


def dataset_metadata(data: Dataset, supervision: Supervision, seed: int) -> dict[str, Any]:
    """What `Remembered` is made of, for a JSON file."""
    preprocessing, labelled = data.preprocessing, supervision.labelled_set(data, seed)
    return {
        "data": supervision.info(data)._asdict(),
        "pictures": None if preprocessing is None else preprocessing._asdict(),
        "labels": [] if labelled is None else [_mapping_to_json(one) for one in label_mappings(labelled)],
    }


def _mapping_to_json(mapping: LabelMapping) -> dict[str, Any]:
    values = [value if isinstance(value, str) else float(value) for value in mapping.classes]
    said = {"values": values, "classes": list(mapping.classes.values()), "spans": mapping.spans}
    return {"factor": mapping.factor, "size": mapping.size, **said}


def _spans(stored: list[list[float]]) -> tuple[Span, ...]:
    return tuple((low, high) for low, high in stored)
