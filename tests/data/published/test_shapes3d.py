import h5py
import numpy as np
import pytest
import torch
from published_files import SHAPES3D_SIZES, write_shapes3d

from unweave.data import load_data


@pytest.mark.parametrize("chunks", [None, (50, 2, 64, 3)])
def test_files_are_read(tmp_path, own_cache, chunks):
    images, classes = write_shapes3d(tmp_path, chunks)
    data, every = load_data("shapes3d", path=tmp_path), torch.arange(288)
    assert np.array_equal((data.images(every) * 255).round().byte().permute(0, 2, 3, 1), images)
    assert np.array_equal(data.factors(every), classes) and data.grid and data.factor_sizes == SHAPES3D_SIZES
    assert data.factor_names == ("floor_hue", "wall_hue", "object_hue", "scale", "shape", "orientation")
    assert data.factor_values[4] == ("cube", "cylinder", "sphere", "capsule")
    assert data.factor_values[3] == (0.75, 1.0, 1.25) and data.factor_values[5] == (-30.0, 30.0)


@pytest.mark.parametrize(
    "changes, fact",
    [
        ({"images": np.zeros((287, 8, 8, 3), np.uint8)}, "(287, 8, 8, 3)"),
        ({"images": np.zeros((288, 8, 8, 3), np.float32)}, "(288, 8, 8, 3)"),
        ({"labels": np.zeros((288, 6))}, "288 rows"),
        ({"labels": np.arange(288 * 6.0).reshape(288, 6)}, "288 rows"),
    ],
)
def test_inconsistent_arrays_are_refused(tmp_path, own_cache, refused, changes, fact):
    write_shapes3d(tmp_path, **changes)
    refused(fact, "shapes3d", path=tmp_path / "3dshapes.h5")


def test_damaged_files_are_refused(tmp_path, own_cache, refused):
    write_shapes3d(tmp_path)
    path = tmp_path / "3dshapes.h5"
    for content in (path.read_bytes()[:-1000], b""):
        path.write_bytes(content)
        refused("damaged", "shapes3d", path=path)
    with h5py.File(path, "w") as file:
        file["pictures"] = np.zeros(3)
    refused("images", "shapes3d", path=path)
