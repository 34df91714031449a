import io
import pickle
import zipfile

import h5py
import numpy as np
import pytest
import torch

from unweave.data import load_data

SIZES = (1, 3, 2, 4, 3, 5)


class Trap:
    """Unpickling this fails the test."""

    def __reduce__(self):
        return pytest.fail, ("unpickled",)


def arrays(sizes=SIZES):
    classes = np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes), 1).astype(np.int64)
    spans = ((1, 1), (1, 3), (0.5, 1), (0, 2 * np.pi), (0, 1), (0, 1))
    tables = [np.linspace(*span, size) for span, size in zip(spans, sizes, strict=True)]
    values = np.stack([table[column] for table, column in zip(tables, classes.T, strict=True)], 1)
    images = np.random.default_rng(0).integers(0, 2, (len(classes), 64, 64), dtype=np.uint8)
    return {"imgs": images, "latents_classes": classes, "latents_values": values}


def write_npz(path, **change):
    """Deflated, with `metadata` pickled as Python 2 did."""
    given = {**arrays(), **change}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        buffer = io.BytesIO()
        np.lib.format.write_array_header_1_0(buffer, {"descr": "|O", "fortran_order": False, "shape": ()})
        archive.writestr("metadata.npy", buffer.getvalue() + pickle.dumps(Trap(), protocol=2))
        for name, array in given.items():
            buffer = io.BytesIO()
            np.save(buffer, array)
            archive.writestr(f"{name}.npy", buffer.getvalue())
    return given


def write_hdf5(path):
    given = arrays()
    with h5py.File(path, "w") as file:
        file.create_dataset("imgs", data=given["imgs"], chunks=(45, 2, 4), compression="gzip")
        file["latents/classes"], file["latents/values"] = given["latents_classes"], given["latents_values"]
    return given


@pytest.mark.parametrize("write, name", [(write_npz, "d.npz"), (write_hdf5, "d.hdf5")])
def test_read_as_written(tmp_path, own_cache, well_formed, write, name):
    given = write(tmp_path / name)
    data = well_formed(load_data("dsprites", path=tmp_path / name))
    every = torch.arange(data.size)
    assert np.array_equal(data.images(every)[:, 0], given["imgs"]) and data.grid
    assert np.array_equal(data.rows(every)[:, 0], given["imgs"] * 255)
    assert data.factor_names == ("shape", "scale", "orientation", "posX", "posY") and data.factor_sizes == SIZES[1:]
    assert np.array_equal(data.factors(every), given["latents_classes"][:, 1:])
    assert data.factor_values[0] == (1.0, 2.0, 3.0) and data.factor_values[2][-1] == 2 * np.pi


def test_its_folder_will_do(tmp_path, own_cache):
    write_npz(tmp_path / "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz")
    assert load_data("dsprites", path=tmp_path).size == 360


@pytest.mark.parametrize(
    "change, said",
    [
        ({"imgs": arrays()["imgs"][:-1]}, "do not fit together"),
        ({"imgs": arrays()["imgs"][:, :, :60]}, "do not fit together"),
        ({"latents_classes": arrays()["latents_classes"][::-1].copy()}, "order of the factors"),
        ({"latents_classes": arrays()["latents_classes"][[*range(359), 0]]}, "order of the factors"),
        ({name: array[:-1] for name, array in arrays().items()}, "not every combination"),
        ({"latents_values": arrays((1, 3, 2, 4, 5, 3))["latents_values"]}, "not of the same factors"),
    ],
)
def test_mislabelled_files_are_refused(tmp_path, own_cache, refused, change, said):
    write_npz(tmp_path / "d.npz", **change)
    refused(said, "dsprites", path=tmp_path / "d.npz")


def test_damaged_files_are_refused(tmp_path, own_cache, refused):
    path = tmp_path / "d.npz"
    write_npz(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused("not a zip file", "dsprites", path=path)
    spoilt = bytearray(whole)
    spoilt[len(whole) // 4] ^= 255
    path.write_bytes(spoilt)
    refused("damaged or not what it should be", "dsprites", path=path)
    np.savez(path, images=np.zeros(3))
    refused("it has no array 'imgs'", "dsprites", path=path)
    path.write_text("hello")
    refused("not a zip file", "dsprites", path=path)


def test_the_whole_set(own_cache, sprites, reference):
    """All 737280 pictures of a real file, 3 GB unpacked: the one slow test here, about ten seconds."""
    data = load_data("dsprites", path=reference("dsprites_rerendered.npz"))
    assert data.size == 737280 and data.factor_sizes == sprites.factor_sizes
    assert data.factor_values == sprites.factor_values
    lit = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(1, dtype=np.uint8)
    assert sum(int(lit[part].sum()) for part in np.array_split(data.pixels.numpy(), 500)) == 128_328_864
    index = torch.randint(0, data.size, (5000,), generator=torch.Generator().manual_seed(0))
    assert torch.equal(data.images(index), sprites.images(index))
    with np.load(reference("dsprites_genuine_363.npz")) as genuine:
        classes = torch.from_numpy(genuine["latents_classes"][:, 1:])
        assert np.array_equal(data.images(data.index(classes))[:, 0], genuine["imgs"])
