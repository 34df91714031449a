import numpy as np
import pytest
import torch
from published_files import DSPRITES_SIZES, dsprites_arrays, write_dsprites, write_dsprites_hdf5

from unweave.data import load_data


@pytest.mark.parametrize(
    "write, name",
    [(write_dsprites, "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"), (write_dsprites_hdf5, "dsprites.hdf5")],
)
def test_files_are_read(tmp_path, own_cache, write, name):
    arrays = write(tmp_path)
    data, every = load_data("dsprites", path=tmp_path / name), torch.arange(360)
    assert np.array_equal(data.images(every)[:, 0], arrays["imgs"]) and data.grid and data.size == 360
    assert np.array_equal(data.raw_images(every)[:, 0], arrays["imgs"] * 255)
    assert data.factor_names == ("shape", "scale", "orientation", "posX", "posY")
    assert data.factor_sizes == DSPRITES_SIZES[1:]
    assert np.array_equal(data.factors(every), arrays["latents_classes"][:, 1:])
    assert data.factor_values[0] == (1.0, 2.0, 3.0) and data.factor_values[2][-1] == 2 * np.pi


ARRAYS = dsprites_arrays()


@pytest.mark.parametrize(
    "changes, fact",
    [
        ({"imgs": ARRAYS["imgs"][:-1]}, "(359, 64, 64)"),
        ({"imgs": ARRAYS["imgs"][:, :, :60]}, "(360, 64, 60)"),
        ({"latents_classes": ARRAYS["latents_classes"][::-1].copy()}, "order"),
        ({"latents_classes": ARRAYS["latents_classes"][[*range(359), 0]]}, "order"),
        ({name: array[:-1] for name, array in ARRAYS.items()}, "359 rows"),
        ({"latents_values": dsprites_arrays((1, 3, 2, 4, 5, 3))["latents_values"]}, "different factors"),
    ],
)
def test_inconsistent_arrays_are_refused(tmp_path, own_cache, refused, changes, fact):
    write_dsprites(tmp_path, **changes)
    refused(fact, "dsprites", path=tmp_path)


def test_damaged_files_are_refused(tmp_path, own_cache, refused):
    write_dsprites(tmp_path)
    (path,) = tmp_path.glob("*.npz")
    content = path.read_bytes()
    flipped = bytearray(content)
    flipped[len(content) // 4] ^= 255
    for damaged in (content[: len(content) // 2], flipped, b"hello"):
        path.write_bytes(damaged)
        refused("damaged", "dsprites", path=path)
    np.savez(path, images=np.zeros(3))
    refused("'imgs'", "dsprites", path=path)
