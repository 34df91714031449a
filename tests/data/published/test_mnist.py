import gzip
import shutil
import struct

import numpy as np
import pytest
import torch
from PIL import Image

from unweave.data import load_data

NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def idx(array):
    """The idx format: two zero bytes, 8 for bytes, the number of sizes; the sizes, highest byte first; the data."""
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write(folder, train=12, test=5, packed=True):
    random = np.random.default_rng(0)
    parts = [random.integers(0, 256, (n, 28, 28), dtype=np.uint8) for n in (train, test)]
    labels = [random.integers(0, 10, n, dtype=np.uint8) for n in (train, test)]
    folder.mkdir(exist_ok=True)
    for name, array in zip(NAMES, (parts[0], labels[0], parts[1], labels[1]), strict=True):
        if packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(idx(array)))
        else:
            (folder / name).write_bytes(idx(array))
    return np.concatenate(parts), np.concatenate(labels)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_read_as_written(tmp_path, own_cache, well_formed, name, packed):
    images, labels = write(tmp_path / "here", packed=packed)
    data = well_formed(load_data(name, path=tmp_path / "here", size=28))
    every = torch.arange(17)
    assert np.array_equal((data.images(every)[:, 0] * 255).round().byte(), images)
    assert data.factors(every)[:, 0].tolist() == labels.tolist()
    assert data.size == 17 and data.factor_sizes == (10,) and not data.grid


def test_sizes_and_parts(tmp_path, own_cache, well_formed):
    images, labels = write(tmp_path / "here")
    framed = well_formed(load_data("mnist", path=str(tmp_path / "here"), part="test"))
    assert framed.shape == (1, 32, 32) and framed.size == 5
    x = framed.images(torch.arange(5))[:, 0]
    assert np.array_equal((x[:, 2:-2, 2:-2] * 255).round().byte(), images[12:])
    assert not x[:, :2].any() and not x[:, -2:].any() and not x[:, :, :2].any() and not x[:, :, -2:].any()
    assert framed.factors(torch.arange(5))[:, 0].tolist() == labels[12:].tolist()
    large = load_data("mnist", path=tmp_path / "here", part="train", size=64)
    expected = np.asarray(Image.fromarray(images[3]).resize((64, 64), Image.Resampling.LANCZOS))
    assert np.array_equal((large.images(torch.tensor([3]))[0, 0] * 255).round().byte(), expected)


def test_converted_once(tmp_path, own_cache, monkeypatch):
    write(tmp_path / "here")
    first = load_data("mnist", path=tmp_path / "here")
    monkeypatch.setattr("unweave.data.published.mnist.read_idx", lambda *args: pytest.fail("read again"))
    second = load_data("mnist", path=tmp_path / "here")
    assert torch.equal(first.pixels, second.pixels)


@pytest.mark.parametrize(
    "name, change, said",
    [
        (NAMES[0], lambda b: gzip.compress(gzip.decompress(b)[:-100]), "9324 bytes where its header announces 9424"),
        (NAMES[0], lambda b: gzip.compress(gzip.decompress(b) + b"x"), "9425 bytes where"),
        (NAMES[0], lambda b: b[: len(b) // 2], "ended before|end-of-stream"),
        (NAMES[0], lambda b: gzip.compress(b"\0\0\x0d\3" + gzip.decompress(b)[4:]), "does not begin as an idx file"),
        (NAMES[0], lambda b: b"", "does not begin as an idx file"),
        (NAMES[1], lambda b: gzip.compress(idx(np.zeros(11, np.uint8))), "12 pictures, .* 11 labels"),
        (NAMES[3], lambda b: gzip.compress(idx(np.full(5, 10, np.uint8))), "label 10"),
    ],
)
def test_damaged_files_are_refused(tmp_path, own_cache, refused, name, change, said):
    write(tmp_path / "here")
    path = tmp_path / "here" / f"{name}.gz"
    path.write_bytes(change(path.read_bytes()))
    refused(said, "mnist", path=tmp_path / "here")


def test_missing_files_are_named(tmp_path, own_cache, refused):
    write(tmp_path / "here")
    (tmp_path / "here" / f"{NAMES[2]}.gz").unlink()
    refused("holds no t10k-images-idx3-ubyte.gz", "mnist", path=tmp_path / "here")
    assert load_data("mnist", path=tmp_path / "here", part="train").size == 12
    refused("is one file", "mnist", path=tmp_path / "here" / f"{NAMES[0]}.gz")
    refused("does not exist", "mnist", path=tmp_path / "nowhere")


def test_a_damaged_copy_of_the_published_file_is_refused(tmp_path, own_cache, refused, reference):
    """It has the published length but not the published checksum."""
    shutil.copytree(reference("mnist"), tmp_path / "here", copy_function=shutil.copyfile)
    path = tmp_path / "here" / f"{NAMES[3]}.gz"
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    content[9] ^= 1  # the operating system in gzip's head, which no reader looks at
    path.write_bytes(content)
    refused("its SHA-256 is .*, not the published f7ae60f92e00", "mnist", path=tmp_path / "here", part="test")


@pytest.mark.parametrize("name, folder, mean", [("mnist", "mnist", 0.1309), ("fashion_mnist", "fashion-mnist", 0.2861)])
def test_the_real_files(own_cache, well_formed, reference, name, folder, mean):
    data = well_formed(load_data(name, path=reference(folder), size=28))
    assert data.size == 70000 and data.shape == (1, 28, 28)
    assert abs(float(data.pixels.float().mean()) / 255 - mean) < 1e-3
    counts = torch.bincount(data.factors(torch.arange(70000))[:, 0])
    expected = [6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958] if name == "mnist" else [7000] * 10
    assert counts.tolist() == expected
    if name == "mnist":
        assert data.factors(torch.arange(5))[:, 0].tolist() == [5, 0, 4, 1, 9]


@pytest.mark.parametrize("options, said", [({"size": 7}, "size=7"), ({"part": "half"}, "part 'half'")])
def test_options_refused(own_cache, options, said):
    with pytest.raises(ValueError, match=said):
        load_data("mnist", **options)
