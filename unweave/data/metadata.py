"""The part of a data set that a run folder stores, so that its model can be used without the data."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from unweave.contract import DataInfo
from unweave.data.dataset import Dataset
from unweave.data.supervision.kind import Supervision
from unweave.data.supervision.label_mapping import LabelMapping, label_mappings
from unweave.data.user.image_io import Preprocessing
from unweave.errors import UserError
from unweave.runs.schema import check_fields

_LABELS = {
    "factor": str,
    "size": int,
    "values": list[str | float],
    "classes": list[int],
    "spans": list[tuple[float, float]],
}


class DatasetMetadata(Dataset):
    """Placeholder for data that were not read: shapes, preprocessing of image files, meaning of the labels."""

    grid = False
    factor_names = factor_sizes = factor_values = ()

    def __init__(self, name: str, options: dict[str, object], stored: Mapping[str, Any]) -> None:
        super().__init__()
        _check(stored)
        self.name, self.options = name, options
        info: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in stored["data"].items()}
        self.data_info = DataInfo(**info)
        self.shape, self.size = self.data_info.shape, self.data_info.size
        self.preprocessing = _preprocessing(stored["pictures"])
        self.label_mappings = []
        for mapping in stored["labels"]:
            classes = dict(zip(mapping["values"], mapping["classes"], strict=True))
            spans = tuple((low, high) for low, high in mapping["spans"])
            self.label_mappings.append(LabelMapping(mapping["factor"], classes, mapping["size"], spans))

    def images(self, index_B: Tensor) -> Tensor:
        message = f"data {self.name!r} were not read, only the model of the run; load the run with its data"
        raise UserError(message, argument="data", value=self.name, accepted="the data of the run")


def _check(stored: Mapping[str, Any]) -> None:
    """Raise a ValueError unless a description, read from JSON, has values of the right types."""
    check_fields(stored, {"data": dict, "pictures": dict | None, "labels": list[dict]}, required=True)
    check_fields(stored["data"], DataInfo)
    check_fields(stored["pictures"] or {}, Preprocessing)
    if min(*stored["data"]["shape"], stored["data"]["size"]) < 1:
        raise ValueError("shape and size must be at least 1")
    for mapping in stored["labels"]:
        check_fields(mapping, _LABELS, required=True)


def _preprocessing(stored: Mapping[str, Any] | None) -> Preprocessing | None:
    if stored is None:
        return None
    size = stored["size"]
    return Preprocessing(**{**stored, "size": tuple(size) if isinstance(size, list) else size})


def dataset_metadata(data: Dataset, supervision: Supervision, seed: int) -> dict[str, Any]:
    """Return the content of a JSON file from which `DatasetMetadata` is made."""
    preprocessing, labelled = data.preprocessing, supervision.labelled_set(data, seed)
    return {
        "data": supervision.info(data)._asdict(),
        "pictures": None if preprocessing is None else preprocessing._asdict(),
        "labels": [
            {
                "factor": mapping.factor,
                "size": mapping.size,
                "values": [value if isinstance(value, str | int) else float(value) for value in mapping.classes],
                "classes": list(mapping.classes.values()),
                "spans": mapping.spans,
            }
            for mapping in ([] if labelled is None else label_mappings(labelled))
        ],
    }
