import numpy as np
import pytest
import torch
from PIL import Image
from published_files import NORB_FILES, norb_matrix, write_smallnorb
from raises import raises

from unweave.data import load_data


@pytest.mark.parametrize("zipped, camera", [(True, 0), (False, 1)])
def test_files_are_read(tmp_path, own_cache, zipped, camera):
    rows = write_smallnorb(tmp_path, zipped)
    data = load_data("smallnorb", path=tmp_path, size=96, camera=camera)
    assert data.grid and data.shape == (1, 96, 96) and data.factor_sizes == (5, 4, 2, 3, 2)
    assert data.factor_names == ("category", "instance", "elevation", "azimuth", "lighting")
    assert data.factor_values[0] == ("animal", "human", "airplane", "truck", "car")
    assert data.factor_values[1:] == ((0, 1, 4, 6), (30, 45), (0, 20, 340), (1, 5))
    stored = np.stack([rows[row][camera] for row in sorted(rows)])
    assert np.array_equal((data.images(torch.arange(data.size))[:, 0] * 255).round().byte(), stored)


def test_parts_and_size(tmp_path, own_cache):
    rows = write_smallnorb(tmp_path)
    data = load_data("smallnorb", path=tmp_path, part="test")
    assert data.factor_sizes == (5, 2, 2, 3, 2) and data.factor_values[1] == (0, 1) and data.shape == (1, 64, 64)
    image = Image.fromarray(rows[3, 1, 3, 2, 5][0]).resize((64, 64), Image.Resampling.LANCZOS)
    x = data.images(data.index(torch.tensor([[3, 1, 1, 1, 1]])))
    assert np.array_equal((x[0, 0] * 255).round().byte(), image)


@pytest.mark.parametrize(
    "kind, change, fact",
    [
        ("cat", lambda c: b"\0\0\0\0" + c[4:], "training-cat"),
        ("cat", lambda c: c[:6], "damaged"),
        ("dat", lambda c: c[:-1], "2211863 bytes"),
        ("dat", lambda c: c + b"\0", "2211865 bytes"),
        ("cat", lambda c: norb_matrix(np.zeros(119, np.int32)), "(120, 2, 96, 96)"),
        ("cat", lambda c: norb_matrix(np.zeros(120, np.int32)), "120 rows"),
        ("cat", lambda c: norb_matrix(np.frombuffer(c[20:], "<i4") + 1), "[1, 2, 3, 4, 5]"),
        ("info", lambda c: norb_matrix(np.zeros((120, 3), np.int32)), "(120, 3)"),
    ],
)
def test_invalid_files_are_refused(tmp_path, own_cache, refused, kind, change, fact):
    write_smallnorb(tmp_path, zipped=False)
    path = tmp_path / f"{NORB_FILES['train']}-{kind}.mat"
    path.write_bytes(change(path.read_bytes()))
    refused(fact, "smallnorb", path=tmp_path, part="train")


def test_missing_and_truncated_files_are_refused(tmp_path, own_cache, refused):
    write_smallnorb(tmp_path)
    path = tmp_path / f"{NORB_FILES['test']}-info.mat.gz"
    path.write_bytes(path.read_bytes()[:-20])
    refused("damaged", "smallnorb", path=tmp_path)
    path.unlink()
    refused(path.name, "smallnorb", path=tmp_path)


@pytest.mark.parametrize("argument, value", [("camera", 2), ("size", 97), ("part", "x")])
def test_invalid_options_are_refused(own_cache, argument, value):
    with raises(argument, value=value):
        load_data("smallnorb", **{argument: value})
