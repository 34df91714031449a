"""MNIST (LeCun, Cortes and Burges 1998) and Fashion-MNIST (Xiao, Rasul and Vollgraf 2017), both in idx files.

Shape letters: N observations, H height, W width.
"""

import struct
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from unweave.data.dataset import Dataset
from unweave.data.storage.archive import resized
from unweave.data.storage.array_store import Factors, write_rows
from unweave.data.storage.download import RemoteFile, remote_files
from unweave.data.storage.source import DataPath, array_to_end, open_files, read_unzipped
from unweave.errors import check_choice, check_integer

PARTS = {"all": slice(None), "train": slice(2), "test": slice(2, None)}  # of the files
CLOTHES = (
    "T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
)  # fmt: skip
_MNIST = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "http://yann.lecun.com/exdb/mnist/")
_FASHION = (
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
)
MNIST = remote_files(
    _MNIST,
    ("train-images-idx3-ubyte.gz", 9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
    ("train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
    ("t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
    ("t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
)
FASHION = remote_files(
    _FASHION,
    ("train-images-idx3-ubyte.gz", 26421880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
    ("train-labels-idx1-ubyte.gz", 29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
    ("t10k-images-idx3-ubyte.gz", 4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
    ("t10k-labels-idx1-ubyte.gz", 5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
)


def mnist(*, path: DataPath = None, part: str = "all", size: int = 32) -> Dataset:
    """MNIST: handwritten digits, 70000 grey images of 28 x 28 with a black margin to 32 x 32.

    `part` is all, train (60000) or test (10000). `size` 28 is the published size, 32 adds a margin of two black pixels,
    others are interpolated. `path` is the folder with the four -ubyte or -ubyte.gz files.
    """
    digits = tuple(map(float, range(10)))
    return _load("mnist", MNIST, Factors(("digit",), (digits,)), path, part, size)


def fashion_mnist(*, path: DataPath = None, part: str = "all", size: int = 32) -> Dataset:
    """Fashion-MNIST: pieces of clothing, 70000 grey images of 28 x 28 with a black margin to 32 x 32.

    `part`, `size` and `path` are as for `mnist`; the files have the same names, so the folders must differ.
    """
    return _load("fashion_mnist", FASHION, Factors(("class",), (CLOTHES,)), path, part, size)


def _load(name: str, remotes: list[RemoteFile], factors: Factors, path: DataPath, part: str, size: int) -> Dataset:
    check_choice("part", part, PARTS)
    check_integer("size", size, 8, 128)
    return open_files(name, remotes[PARTS[part]], path, {"part": part, "size": size}, partial(_read, name, factors))


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """Read an array of bytes: magic number 0, 0, 8, dimensions; big-endian sizes; data."""
    content = read_unzipped(path)
    if content[:4] != bytes([0, 0, 8, dimensions]):
        raise ValueError(f"{path.name} does not begin like an idx file of bytes with {dimensions} dimensions")
    sizes = struct.unpack_from(f">{dimensions}I", content, 4)
    return array_to_end(content, 4 + 4 * dimensions, sizes, np.dtype("u1"), path)


def _read(name: str, factors: Factors, files: list[Path], folder: Path, part: str, size: int) -> Factors:
    images = [read_idx(path, 3) for path in files[::2]]
    labels = [read_idx(path, 1) for path in files[1::2]]
    for image_file, label_file, some, some_labels in zip(files[::2], files[1::2], images, labels, strict=True):
        if len(some) != len(some_labels):
            raise ValueError(f"{image_file.name} has {len(some)} images, {label_file.name} {len(some_labels)} labels")
        if some_labels.max(initial=0) > 9:
            raise ValueError(f"{label_file.name} contains label {some_labels.max()}; labels are 0 to 9")
    starts = [(part, start) for part in images for start in range(0, len(part), 1000)]
    chunks = (_sized(part[start : start + 1000], size) for part, start in starts)
    write_rows(folder / "pixels.npy", sum(map(len, images)), chunks, name)
    np.save(folder / "classes.npy", np.concatenate(labels)[:, None])
    return factors


def _sized(images: np.ndarray, size: int) -> np.ndarray:
    """Return the images with a margin or resized."""
    if images.shape[1:] == (size, size):
        return images
    if images.shape[1:] == (28, 28) and size == 32:
        return np.pad(images, ((0, 0), (2, 2), (2, 2)))
    return np.stack([resized(Image.fromarray(image), size) for image in images])
