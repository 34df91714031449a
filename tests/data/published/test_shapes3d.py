import h5py
import numpy as np
import pytest
import torch

from unweave.data import load_data

SIZES = (3, 2, 2, 3, 4, 2)


def write(path, chunks=None, **change):
    classes = np.stack(np.unravel_index(np.arange(np.prod(SIZES)), SIZES), 1)
    hues = [np.arange(size) / 10 for size in SIZES[:3]]
    tables = [*hues, np.linspace(0.75, 1.25, SIZES[3]), np.arange(4.0), np.linspace(-30, 30, SIZES[5])]
    labels = np.stack([table[column] for table, column in zip(tables, classes.T, strict=True)], 1)
    images = np.random.default_rng(0).integers(0, 256, (len(classes), 64, 64, 3), dtype=np.uint8)
    given = {"images": images, "labels": labels, **change}
    with h5py.File(path, "w") as file:
        for name, array in given.items():
            file.create_dataset(name, data=array, chunks=chunks if name == "images" else None)
    return images, classes


@pytest.mark.parametrize("chunks", [None, (50, 2, 64, 3)])
def test_read_as_written(tmp_path, own_cache, well_formed, chunks):
    images, classes = write(tmp_path / "3dshapes.h5", chunks)
    data = well_formed(load_data("shapes3d", path=tmp_path))
    every = torch.arange(data.size)
    assert np.array_equal((data.images(every) * 255).round().byte().permute(0, 2, 3, 1), images)
    assert np.array_equal(data.factors(every), classes) and data.grid and data.factor_sizes == SIZES
    assert data.factor_names == ("floor_hue", "wall_hue", "object_hue", "scale", "shape", "orientation")
    assert data.factor_values[4] == ("cube", "cylinder", "sphere", "capsule")
    assert data.factor_values[3] == (0.75, 1.0, 1.25) and data.factor_values[5] == (-30.0, 30.0)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"images": np.zeros((287, 8, 8, 3), np.uint8)}, "are not those of 3D Shapes"),
        ({"images": np.zeros((288, 8, 8, 3), np.float32)}, "are not those of 3D Shapes"),
        ({"labels": np.zeros((288, 6))}, "not every combination"),
        ({"labels": np.arange(288 * 6.0).reshape(288, 6)}, "not every combination"),
    ],
)
def test_mislabelled_files_are_refused(tmp_path, own_cache, refused, change, said):
    write(tmp_path / "3dshapes.h5", **change)
    refused(said, "shapes3d", path=tmp_path / "3dshapes.h5")


def test_damaged_files_are_refused(tmp_path, own_cache, refused):
    path = tmp_path / "3dshapes.h5"
    write(path)
    path.write_bytes(path.read_bytes()[:-1000])
    refused("truncated|Unable", "shapes3d", path=path)
    path.write_bytes(b"")
    refused("damaged or not what it should be", "shapes3d", path=path)
    with h5py.File(path, "w") as file:
        file["pictures"] = np.zeros(3)
    refused("images", "shapes3d", path=path)
