import numpy as np
import pytest
import torch

from unweave.data import load_data

FULL, FOUR = (6, 6, 2, 3, 3, 40, 40), (4, 4, 2, 3, 3, 40, 40)


def write(path, sizes, side=1):
    """One array `images` of all pictures. The published ones have 64 pixels a side; these tell their number."""
    number = np.arange(np.prod(sizes))
    images = np.stack([number % 251, number // 251 % 251, number // 251**2], -1).astype(np.uint8)
    np.savez_compressed(path, images=np.broadcast_to(images[:, None, None], (len(number), side, side, 3)))


@pytest.mark.parametrize(
    "name, sizes, first",
    [
        ("mpi3d_toy", FULL, ("white", "cone")),
        ("mpi3d_realistic", FULL, ("white", "cone")),
        ("mpi3d_real", FULL, ("white", "cone")),
        ("mpi3d_complex", FOUR, ("yellow", "coffee-cup")),
        ("mpi3d_toy", FOUR, (0.0, 0.0)),
    ],
)
def test_read_as_written(tmp_path, own_cache, well_formed, name, sizes, first):
    write(tmp_path / "m.npz", sizes)
    data = well_formed(load_data(name, path=tmp_path / "m.npz"))
    assert data.factor_sizes == sizes and data.grid and data.shape == (3, 1, 1)
    assert (data.factor_values[0][0], data.factor_values[1][0]) == first
    assert data.factor_names == ("color", "shape", "size", "camera_height", "background", "horizontal", "vertical")
    classes = torch.tensor([[1, 2, 1, 2, 0, 33, 7]])
    number = np.ravel_multi_index(classes[0].tolist(), sizes)
    r, g, b = (data.images(data.index(classes))[0, :, 0, 0] * 255).round().long().tolist()
    assert r + 251 * g + 251**2 * b == number


def test_larger_pictures(tmp_path, own_cache):
    write(tmp_path / "mpi3d_real_complex.npz", FOUR, side=2)
    assert load_data("mpi3d_complex", path=tmp_path).shape == (3, 2, 2)


def test_mislabelled_and_damaged_files_are_refused(tmp_path, own_cache, refused):
    path = tmp_path / "m.npz"
    write(path, FOUR)
    refused("it has 460800 pictures where mpi3d_real has 1036800", "mpi3d_real", path=path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    refused("damaged", "mpi3d_complex", path=path)
    spoilt = bytearray(whole)
    spoilt[len(whole) // 2] ^= 255
    path.write_bytes(spoilt)
    refused("damaged", "mpi3d_complex", path=path)
    np.savez(path, images=np.zeros((460800, 1, 1), np.uint8))
    refused("not bytes", "mpi3d_complex", path=path)
    np.savez(path, images=np.zeros((10, 4, 4, 3), np.uint8))
    refused("it has 10 pictures where mpi3d_toy has 1036800 or 460800", "mpi3d_toy", path=path)
    np.savez(path, labels=np.zeros(3))
    refused("no array 'images'", "mpi3d_toy", path=path)
