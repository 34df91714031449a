import numpy as np
import pytest
import torch
from published_files import MPI3D_COMPLEX_SIZES, MPI3D_SIZES, write_mpi3d

from unweave.data import load_data


@pytest.mark.parametrize(
    "name, sizes, first",
    [
        ("mpi3d_real", MPI3D_SIZES, ("white", "cone")),
        ("mpi3d_complex", MPI3D_COMPLEX_SIZES, ("yellow", "coffee-cup")),
        ("mpi3d_toy", MPI3D_COMPLEX_SIZES, (0.0, 0.0)),
    ],
)
def test_files_are_read(tmp_path, own_cache, name, sizes, first):
    write_mpi3d(tmp_path / "m.npz", sizes)
    data = load_data(name, path=tmp_path / "m.npz")
    assert data.factor_sizes == sizes and data.grid and data.shape == (3, 1, 1)
    assert (data.factor_values[0][0], data.factor_values[1][0]) == first
    assert data.factor_names == ("color", "shape", "size", "camera_height", "background", "horizontal", "vertical")
    classes = torch.tensor([[1, 2, 1, 2, 0, 33, 7]])
    r, g, b = (data.images(data.index(classes))[0, :, 0, 0] * 255).round().long().tolist()
    assert r + 251 * g + 251**2 * b == np.ravel_multi_index(classes[0].tolist(), sizes)


def test_larger_images(tmp_path, own_cache):
    write_mpi3d(tmp_path / "mpi3d_real_complex.npz", MPI3D_COMPLEX_SIZES, side=2)
    assert load_data("mpi3d_complex", path=tmp_path).shape == (3, 2, 2)


def test_invalid_files_are_refused(tmp_path, own_cache, refused):
    path = tmp_path / "m.npz"
    write_mpi3d(path, MPI3D_COMPLEX_SIZES)
    refused("460800", "mpi3d_real", path=path)
    content = path.read_bytes()
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 255
    for damaged in (content[:-100], flipped):
        path.write_bytes(damaged)
        refused("damaged", "mpi3d_complex", path=path)
    np.savez(path, images=np.zeros((460800, 1, 1), np.uint8))
    refused("(460800, 1, 1)", "mpi3d_complex", path=path)
    np.savez(path, images=np.zeros((10, 4, 4, 3), np.uint8))
    refused("1036800 or 460800", "mpi3d_toy", path=path)
    np.savez(path, labels=np.zeros(3))
    refused("'images'", "mpi3d_toy", path=path)
