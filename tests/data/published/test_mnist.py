import gzip
import hashlib

import numpy as np
import pytest
import torch
from PIL import Image
from published_files import MNIST_FILES, idx, write_mnist
from raises import raises

from unweave.data import load_data
from unweave.data.published import mnist


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_files_are_read(tmp_path, own_cache, name, zipped):
    images, labels = write_mnist(tmp_path, zipped=zipped)
    data, every = load_data(name, path=tmp_path, size=28), torch.arange(17)
    assert np.array_equal((data.images(every)[:, 0] * 255).round().byte(), images)
    assert data.factors(every)[:, 0].tolist() == labels.tolist()
    assert data.size == 17 and data.factor_sizes == (10,) and not data.grid


def test_sizes_and_parts(tmp_path, own_cache):
    images, labels = write_mnist(tmp_path)
    padded = load_data("mnist", path=str(tmp_path), part="test")
    assert padded.shape == (1, 32, 32) and padded.size == 5
    x = padded.images(torch.arange(5))[:, 0]
    assert np.array_equal((x[:, 2:-2, 2:-2] * 255).round().byte(), images[12:])
    assert not x[:, :2].any() and not x[:, -2:].any() and not x[:, :, :2].any() and not x[:, :, -2:].any()
    assert padded.factors(torch.arange(5))[:, 0].tolist() == labels[12:].tolist()
    large = load_data("mnist", path=tmp_path, part="train", size=64)
    expected = np.asarray(Image.fromarray(images[3]).resize((64, 64), Image.Resampling.LANCZOS))
    assert np.array_equal((large.images(torch.tensor([3]))[0, 0] * 255).round().byte(), expected)


def test_files_are_converted_once(tmp_path, own_cache, monkeypatch):
    write_mnist(tmp_path)
    first = load_data("mnist", path=tmp_path)
    monkeypatch.setattr(mnist, "read_idx", lambda *args: pytest.fail("read again"))
    assert torch.equal(first.pixels, load_data("mnist", path=tmp_path).pixels)


@pytest.mark.parametrize(
    "name, change, fact",
    [
        (MNIST_FILES[0], lambda b: gzip.compress(gzip.decompress(b)[:-100]), "9324 bytes instead of the 9424"),
        (MNIST_FILES[0], lambda b: gzip.compress(gzip.decompress(b) + b"x"), "9425 bytes"),
        (MNIST_FILES[0], lambda b: b[: len(b) // 2], "damaged"),
        (MNIST_FILES[0], lambda b: gzip.compress(b"\0\0\x0d\3" + gzip.decompress(b)[4:]), MNIST_FILES[0]),
        (MNIST_FILES[0], lambda b: b"", MNIST_FILES[0]),
        (MNIST_FILES[1], lambda b: gzip.compress(idx(np.zeros(11, np.uint8))), "11 labels"),
        (MNIST_FILES[3], lambda b: gzip.compress(idx(np.full(5, 10, np.uint8))), "label 10"),
    ],
)
def test_damaged_files_are_refused(tmp_path, own_cache, refused, name, change, fact):
    write_mnist(tmp_path)
    path = tmp_path / f"{name}.gz"
    path.write_bytes(change(path.read_bytes()))
    refused(fact, "mnist", path=tmp_path)


def test_missing_files_are_named(tmp_path, own_cache, refused):
    write_mnist(tmp_path)
    (tmp_path / f"{MNIST_FILES[2]}.gz").unlink()
    refused("t10k-images-idx3-ubyte.gz", "mnist", path=tmp_path)
    assert load_data("mnist", path=tmp_path, part="train").size == 12
    for path in (tmp_path / f"{MNIST_FILES[0]}.gz", tmp_path / "nowhere"):
        with raises("path"):
            load_data("mnist", path=path)


def test_a_file_of_the_published_size_must_have_the_published_checksum(tmp_path, own_cache, refused, monkeypatch):
    write_mnist(tmp_path)
    contents = [(tmp_path / f"{name}.gz").read_bytes() for name in MNIST_FILES]
    remotes = [
        remote._replace(size=len(content), digest=f"sha256:{hashlib.sha256(content).hexdigest()}")
        for remote, content in zip(mnist.MNIST, contents, strict=True)
    ]
    monkeypatch.setattr(mnist, "MNIST", remotes)
    assert load_data("mnist", path=tmp_path, part="test").size == 5
    damaged = bytearray(contents[3])
    damaged[9] ^= 1  # the operating system in the header of gzip, which readers ignore
    (tmp_path / f"{MNIST_FILES[3]}.gz").write_bytes(damaged)
    refused(remotes[3].digest[7:19], "mnist", path=tmp_path, part="test")


@pytest.mark.parametrize("argument, value", [("size", 7), ("part", "half")])
def test_invalid_options_are_refused(own_cache, argument, value):
    with raises(argument, value=value):
        load_data("mnist", **{argument: value})
