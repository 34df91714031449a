"""SmallNORB (LeCun, Huang and Bottou 2004) from its own six files of binary matrices.

Shape letters: N observations, K factors, H height, W width.
"""

import struct
from pathlib import Path

import numpy as np
from PIL import Image

from unweave.data.dataset import Dataset
from unweave.data.storage.archive import resized
from unweave.data.storage.array_store import Factors, grid_values, in_chunks, write_rows
from unweave.data.storage.download import remote_files
from unweave.data.storage.source import DataPath, array_to_end, open_files, read_unzipped
from unweave.errors import check_choice, check_integer

NAMES = ("category", "instance", "elevation", "azimuth", "lighting")
CATEGORIES = ("animal", "human", "airplane", "truck", "car")
_HOME = "https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/"
_TYPES = {0x1E3D4C55: "u1", 0x1E3D4C54: "<i4", 0x1E3D4C51: "<f4", 0x1E3D4C53: "<f8", 0x1E3D4C56: "<i2"}
_FILES = (
    ("46789", "training-dat", 131896188, "5ffd6272a07d32695ee1082a26a41a93a37aab8c28da047f8c34ed348d214873"),
    ("46789", "training-cat", 348, "2784e542c1922060691090952b6cd6278879a216c90f81476f0f00256d42cdaa"),
    ("46789", "training-info", 71052, "de7eb932ebe7a4ee16217fead60660d0eb3d23632c2f4d1c51f88c501c17bf32"),
    ("01235", "testing-dat", 130799817, "cf7104eed3e51174d2f65b66d1e5878b9da233b886f161b0d88f4510ba2c7474"),
    ("01235", "testing-cat", 347, "ecaf6d5bb8c3bc5eab9cf0258f6d2198dd474e016e374836fc097f2e5ff509ff"),
    ("01235", "testing-info", 10428, "16adf314226327ee006d1a44db8cfef52773c06c829951d5653a9f6f310248a2"),
)
_NAME = "smallnorb-5x{}x9x18x6x2x96x96-{}.mat.gz"
_REMOTES = remote_files((_HOME,), *((_NAME.format(toys, kind), size, sha256) for toys, kind, size, sha256 in _FILES))
REMOTES = {"all": _REMOTES, "train": _REMOTES[:3], "test": _REMOTES[3:]}


def smallnorb(*, path: DataPath = None, part: str = "all", size: int = 64, camera: int = 0) -> Dataset:
    """SmallNORB: grey photographs of 50 toys, under different angles and lights, 48600 images of 64 x 64.

    `part` is all, train or test (five toys of each category). `size` is the side in pixels (96 in the published
    images). `camera` is 0 or 1, one of the two cameras. `path` is the folder with the six .mat or .mat.gz files.
    """
    check_choice("part", part, REMOTES)
    check_integer("size", size, 8, 96)
    check_integer("camera", camera, 0, 1)
    return open_files("smallnorb", REMOTES[part], path, {"part": part, "size": size, "camera": camera}, _read)


def read_matrix(path: Path) -> np.ndarray:
    """Read a matrix in the format of NORB: magic number, number of dimensions, at least three sizes, data."""
    content = read_unzipped(path)
    magic, count = struct.unpack_from("<ii", content)
    if magic not in _TYPES or not 1 <= count <= 8:
        raise ValueError(f"{path.name} does not begin like a NORB matrix")
    sizes = struct.unpack_from(f"<{max(3, count)}i", content, 8)
    return array_to_end(content, 8 + 4 * len(sizes), sizes[:count], np.dtype(_TYPES[magic]), path)


def _read(files: list[Path], folder: Path, part: str, size: int, camera: int) -> Factors:
    parts = [_part(files[start : start + 3], size, camera) for start in range(0, len(files), 3)]
    table_NK = np.concatenate([table for table, _ in parts])
    pixels = np.concatenate([pixels for _, pixels in parts])
    order = np.lexsort(table_NK.T[::-1])
    grid_values(table_NK[order])  # raises unless each combination of factors occurs once
    write_rows(folder / "pixels.npy", len(order), (pixels[rows] for rows in np.array_split(order, 50)), "smallnorb")
    return Factors(NAMES, _values(table_NK))


def _part(files: list[Path], size: int, camera: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the factors and the images of one camera of the training or the test part."""
    dat, cat, info = files
    category_N, info_NK, images = read_matrix(cat), read_matrix(info), read_matrix(dat)
    count = len(category_N)
    if images.shape[:2] != (count, 2) or images.ndim != 4 or images.dtype != np.uint8 or info_NK.shape != (count, 4):
        raise ValueError(f"{dat.name} {images.shape}, {cat.name} and {info.name} {info_NK.shape} do not match")
    small = in_chunks(resized(Image.fromarray(image), size) for image in images[:, camera])
    return np.column_stack([category_N, info_NK]).astype(np.int64), np.concatenate(list(small))


def _values(table_NK: np.ndarray) -> tuple[tuple[float | str, ...], ...]:
    """Return category names, elevation and azimuth in degrees (stored as 0..8 and as even numbers 0..34)."""
    category, instance, elevation, azimuth, light = (np.unique(column) for column in table_NK.T)
    if category.min() < 0 or category.max() >= len(CATEGORIES):
        raise ValueError(f"its categories {category.tolist()} are not 0..{len(CATEGORIES) - 1}")
    return (
        tuple(CATEGORIES[c] for c in category),
        tuple(map(float, instance)),
        tuple(30.0 + 5.0 * e for e in elevation),
        tuple(10.0 * a for a in azimuth),
        tuple(map(float, light)),
    )
