import zipfile

import numpy as np
import torch
from PIL import Image
from published_files import coil20_files, coil20_images, save_files, write_coil20

from unweave.data import load_data


def test_files_are_read(tmp_path, own_cache):
    images = coil20_images()
    write_coil20(tmp_path, dict(reversed(images.items())))
    data = load_data("coil20", path=tmp_path)
    assert data.grid and data.factor_names == ("object", "pose") and data.factor_sizes == (2, 12)
    assert data.factor_values[1] == tuple(5.0 * p for p in range(12))  # 10 comes after 9, not after 1
    small = Image.fromarray(images[2, 10]).resize((64, 64), Image.Resampling.LANCZOS)
    x = data.images(data.index(torch.tensor([[1, 10]])))
    assert np.array_equal((x[0, 0] * 255).round().byte(), small)


def test_the_published_size_is_unchanged(tmp_path, own_cache):
    images = write_coil20(tmp_path)
    data = load_data("coil20", path=tmp_path / "coil-20-proc.zip", size=128)
    assert np.array_equal(data.pixels, np.stack(list(images.values())))
    with zipfile.ZipFile(tmp_path / "coil-20-proc.zip") as archive:
        archive.extractall(tmp_path / "out")
    assert torch.equal(load_data("coil20", path=tmp_path / "out", size=128).pixels, data.pixels)


def test_invalid_files_are_refused(tmp_path, own_cache, refused):
    folder = tmp_path / "coil-20-proc"
    folder.mkdir()
    refused("obj1__0.png", "coil20", path=folder)
    save_files(tmp_path, coil20_files(coil20_images()))
    image = folder / "obj2__5.png"
    image.write_bytes(image.read_bytes()[:-200])
    refused("obj2__5.png", "coil20", path=folder)
    image.unlink()
    refused("23 rows", "coil20", path=folder)
