import gzip
import itertools
import struct

import numpy as np
import pytest
import torch
from PIL import Image

from unweave.data import load_data

MAGIC = {"uint8": 0x1E3D4C55, "int32": 0x1E3D4C54}
FILES = {"train": "smallnorb-5x46789x9x18x6x2x96x96-training", "test": "smallnorb-5x01235x9x18x6x2x96x96-testing"}
INSTANCES = {"train": (4, 6), "test": (0, 1)}


def matrix(array):
    """NORB's own format: magic number, number of sizes, at least three sizes, the data, all little endian."""
    sizes = [*array.shape, *[1] * (3 - array.ndim)]
    head = struct.pack(f"<ii{len(sizes)}i", MAGIC[array.dtype.name], array.ndim, *sizes)
    return head + array.astype(array.dtype.newbyteorder("<")).tobytes()


def write(folder, packed=True, seed=0):
    """Both parts, rows in random order; the pictures of a camera tell the factors by their first pixels."""
    random = np.random.default_rng(seed)
    rows = {}
    for part, name in FILES.items():
        table = np.array(list(itertools.product(range(5), INSTANCES[part], (0, 3), (0, 2, 34), (1, 5))), np.int32)
        table = random.permutation(table)
        images = random.integers(0, 256, (len(table), 2, 96, 96), dtype=np.uint8)
        rows |= {tuple(row): pair for row, pair in zip(table.tolist(), images, strict=True)}
        content = {"dat": images, "cat": table[:, 0].copy(), "info": table[:, 1:].copy()}
        for kind, array in content.items():
            put(folder, f"{name}-{kind}", matrix(array), packed)
    return rows


def put(folder, name, content, packed=True):
    path = folder / (f"{name}.mat.gz" if packed else f"{name}.mat")
    path.write_bytes(gzip.compress(content, 1) if packed else content)


@pytest.mark.parametrize("packed, camera", [(True, 0), (False, 1)])
def test_read_as_written(tmp_path, own_cache, well_formed, packed, camera):
    rows = write(tmp_path, packed)
    data = well_formed(load_data("smallnorb", path=tmp_path, size=96, camera=camera))
    assert data.grid and data.shape == (1, 96, 96) and data.factor_sizes == (5, 4, 2, 3, 2)
    assert data.factor_names == ("category", "instance", "elevation", "azimuth", "lighting")
    assert data.factor_values[0] == ("animal", "human", "airplane", "truck", "car")
    assert data.factor_values[1:] == ((0, 1, 4, 6), (30, 45), (0, 20, 340), (1, 5))
    stored = np.stack([rows[row][camera] for row in sorted(rows)])
    assert np.array_equal((data.images(torch.arange(data.size))[:, 0] * 255).round().byte(), stored)


def test_parts_and_size(tmp_path, own_cache, well_formed):
    rows = write(tmp_path)
    data = well_formed(load_data("smallnorb", path=tmp_path, part="test"))
    assert data.factor_sizes == (5, 2, 2, 3, 2) and data.factor_values[1] == (0, 1) and data.shape == (1, 64, 64)
    picture = Image.fromarray(rows[3, 1, 3, 2, 5][0]).resize((64, 64), Image.Resampling.LANCZOS)
    found = data.images(data.index(torch.tensor([[3, 1, 1, 1, 1]])))
    assert np.array_equal((found[0, 0] * 255).round().byte(), picture)


@pytest.mark.parametrize(
    "kind, content, said",
    [
        ("cat", lambda c: b"\0\0\0\0" + c[4:], "does not begin as a NORB matrix"),
        ("cat", lambda c: c[:6], "damaged or not what it should be"),
        ("dat", lambda c: c[:-1], "bytes where its header announces"),
        ("dat", lambda c: c + b"\0", "bytes where its header announces"),
        ("cat", lambda c: matrix(np.zeros(119, np.int32)), "do not fit together"),
        ("cat", lambda c: matrix(np.zeros(120, np.int32)), "not every combination"),
        ("cat", lambda c: matrix(np.frombuffer(c[20:], "<i4") + 1), "categories"),
        ("info", lambda c: matrix(np.zeros((120, 3), np.int32)), "do not fit together"),
    ],
)
def test_damaged_and_mislabelled_files_are_refused(tmp_path, own_cache, refused, kind, content, said):
    write(tmp_path, packed=False)
    path = tmp_path / f"{FILES['train']}-{kind}.mat"
    path.write_bytes(content(path.read_bytes()))
    refused(said, "smallnorb", path=tmp_path, part="train")


def test_missing_and_cut_off_files_are_refused(tmp_path, own_cache, refused):
    write(tmp_path)
    path = tmp_path / f"{FILES['test']}-info.mat.gz"
    path.write_bytes(path.read_bytes()[:-20])
    refused("end-of-stream|ended before", "smallnorb", path=tmp_path)
    path.unlink()
    refused("holds no smallnorb-5x01235x9x18x6x2x96x96-testing-info.mat.gz", "smallnorb", path=tmp_path)


@pytest.mark.parametrize(
    "options, said", [({"camera": 2}, "camera=2"), ({"size": 97}, "size=97"), ({"part": "x"}, "'x'")]
)
def test_options_refused(own_cache, options, said):
    with pytest.raises(ValueError, match=said):
        load_data("smallnorb", **options)
