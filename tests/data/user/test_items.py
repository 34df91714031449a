"""Data sets of other libraries are read item by item."""

from types import SimpleNamespace

import datasets
import numpy as np
import pytest
import torch
from image_files import draw_image
from PIL import Image
from raises import raises
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset

import unweave as uw
from unweave.data import load_data

BYTES = np.random.default_rng(0).integers(2, 256, (6, 3, 16, 16), dtype=np.uint8)


class Items(Dataset):
    def __init__(self, items, **more):
        self.items = items
        self.__dict__.update(more)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, number):
        return self.items[number]


def everything(data):
    return data.images(torch.arange(data.size)).numpy()


@pytest.mark.parametrize("form", ["tensor", "bytes", "NHWC", "picture"])
def test_image_types(form):
    one = {
        "tensor": lambda row: torch.from_numpy(row) / 255.0,
        "bytes": torch.from_numpy,
        "NHWC": lambda row: row.transpose(1, 2, 0),
        "picture": lambda row: Image.fromarray(row.transpose(1, 2, 0)),
    }[form]
    data = load_data(Items([one(row) for row in BYTES]))
    assert np.allclose(everything(data), BYTES / 255.0) and data.pixels.dtype == torch.uint8
    assert data.factor_names == ()


def test_labels_of_tuples():
    data = load_data(TensorDataset(torch.from_numpy(BYTES), torch.arange(6) % 3, torch.arange(6) / 4))
    assert data.factor_names == ("label0", "label1") and data.factor_types == ("discrete", "continuous")
    named = load_data(Items([(row, i % 2) for i, row in enumerate(BYTES)], classes=["cat", "dog"]))
    assert named.factor_names == ("label",) and named.factor_values == (("cat", "dog"),)
    several = load_data(Items([(row, np.array([i % 2, i % 3])) for i, row in enumerate(BYTES)]), names=["v"])
    assert several.factor_names == ("v0", "v1")
    assert load_data(Subset(named_items(), [0, 2, 4])).size == 3


def named_items():
    return Items([(row, i) for i, row in enumerate(BYTES)])


def test_dictionaries():
    rows = [
        {"image": draw_image(20, 14 + i), "label": i % 2, "age": i + 0.5, "box": [[1, 2]], "text": "t"}
        for i in range(6)
    ]
    source = Items(rows, features={"label": SimpleNamespace(names=["cat", "dog"])}, column_names=list(rows[0]))
    data = load_data(source, size=16)
    assert data.shape == (3, 16, 16)
    assert data.factor_names == ("label", "age") and data.factor_values[0] == ("cat", "dog")
    assert set(data.source_info.excluded_columns) == {"text", "box"}
    with raises("data", value="dict"):
        load_data({"train": source, "test": source})


def test_hugging_face_data_sets():
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])})
    rows = {"image": [draw_image(16, 16) for _ in range(4)], "label": [0, 1, 0, 1]}
    data = load_data(datasets.Dataset.from_dict(rows, features=features))
    assert data.factor_values == (("cat", "dog"),)


def test_pil_images_are_grey_if_no_image_has_colour():
    gray, colour = Image.fromarray(BYTES[0, 0]), Image.fromarray(BYTES[0].transpose(1, 2, 0))
    assert load_data(Items([gray, gray.convert("RGB")])).shape == (1, 16, 16)
    assert load_data(Items([gray, gray]), channels="rgb").shape == (3, 16, 16)
    for pictures in ([gray, colour, gray], [colour, gray, gray]):
        data = load_data(Items(pictures))
        expected = [np.asarray(picture.convert("RGB")).transpose(2, 0, 1) for picture in pictures]
        assert np.array_equal(data.pixels.numpy(), expected)


def test_floats_stay_floats_if_one_item_is_not_divided_bytes():
    images = [BYTES[0] / np.float32(255), np.random.default_rng(0).random((3, 16, 16), np.float32)]
    data = load_data(Items(images))
    assert data.pixels.dtype == torch.float32 and np.array_equal(everything(data), images)
    assert load_data(Items([torch.rand(1, 8, 8).bfloat16()] * 2)).shape == (1, 8, 8)


def test_a_range_that_grows_is_refused_if_the_background_is_drawn():
    items = Items([np.ones((3, 8, 16), np.uint8), BYTES[1, :, :8]])
    with raises("images", value="values up to 254 after values up to 1"):
        load_data(items, size=16, fit="pad")
    assert load_data(items, size=16, fit="pad", white=255).shape == (3, 16, 16)
    assert load_data(items, size=16).pixels[0].max() == 1


class Endless(IterableDataset):
    def __iter__(self):
        yield BYTES[0]


@pytest.mark.parametrize(
    "source, options, argument, value",
    [
        (Items([BYTES[0]]), {}, "data", "1 items"),
        (Items([BYTES[0], BYTES[1, :, :8, :8]]), {}, "images", "[3, 8, 8] after [3, 16, 16]"),
        (Items([torch.randn(3, 8, 8) for _ in range(3)]), {}, "images", ...),
        (Items([{"a": 1}, {"a": 2}]), {}, "data", "a"),
        (Items([{"a": BYTES[0]}] * 2), {"image": "b"}, "image", "b"),
        (Items(["x", "y"]), {}, "data", "str of shape []"),
        (Items([(BYTES[0], 1)] * 2), {"names": ["a", "b"]}, "names", ["a", "b"]),
        (Items([BYTES[0]] * 2), {"fold": 1}, "option", "fold"),
        (Items([Image.fromarray(BYTES[0, 0] / np.float32(2))] * 2), {}, "images", ...),
        (Items([BYTES[0]] * 2), {"alpha": True}, "alpha", True),
        (Items([np.zeros((3, 8, 3), np.uint8)] * 2), {}, "layout", [1, 3, 8, 3]),
        (DataLoader(Items([BYTES[0]] * 2)), {}, "data", "DataLoader"),
        (Endless(), {}, "data", "Endless"),
    ],
)
def test_invalid_items_are_refused(source, options, argument, value):
    with raises(argument, value=value):
        load_data(source, **options)


def test_trains(tmp_path):
    run = uw.train("vae", named_items(), steps=2, batch=4, net="small", latents=3, device="cpu", out=tmp_path / "r")
    with raises("data"):
        uw.load(run.folder.path)
    assert uw.load(run.folder.path, data=load_data(named_items())).encode(BYTES / 255.0).shape == (6, 3)
