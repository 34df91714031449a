"""CelebA (Liu et al. 2015): aligned faces and a text file of 40 attributes.

Shape letters: N observations, K factors, H height, W width, C channels.
"""

from pathlib import Path, PurePosixPath

import numpy as np

from unweave.data.dataset import Dataset
from unweave.data.storage.archive import FileTree, read_image, resized
from unweave.data.storage.array_store import Factors, in_chunks, write_rows
from unweave.data.storage.download import RemoteFile
from unweave.data.storage.source import DataPath, open_files
from unweave.errors import check_choice, check_integer

_DRIVE = "https://drive.usercontent.google.com/download?export=download&confirm=t&id="
IMAGES = RemoteFile(
    "img_align_celeba.zip",
    (
        f"{_DRIVE}0B7EVK8r0v71pZjFTYXZWM3FlRnM",
        "https://s3.amazonaws.com/pytorch-tutorial-assets/img_align_celeba.zip",
    ),
    1443490838,
    "sha256:46fb89443c578308acf364d7d379fe1b9efb793042c0af734b6112e4fd3a8c74",
)
ATTRIBUTES = RemoteFile(
    "list_attr_celeba.txt",
    (f"{_DRIVE}0B7EVK8r0v71pblRyaVFSWGxPY0U",),
    26721026,
    "sha256:f0e5da289d5ccf75ffe8811132694922b60f2af59256ed362afa03fefba324d0",
)
PARTITION = RemoteFile(
    "list_eval_partition.txt",
    (f"{_DRIVE}0B7EVK8r0v71pY0NSMzRuSXJEVkk",),
    2836386,
    "sha256:fc955bcb3ef8fbdf7d5640d9a8693a8431b5f2ee291a5c1449a1549e7e073fe7",
)
PARTS = {"train": 0, "valid": 1, "test": 2}


def celeba(*, path: DataPath = None, part: str = "all", size: int = 64, crop: int = 148) -> Dataset:
    """CelebA: 202599 photographs of faces in colour with 40 binary attributes, cropped and resized to 64 x 64.

    `part` is all, train, valid or test; `crop` is the side of the square cropped from the middle of the 178 x 218
    images, `size` the side of the result. `path` is the folder with img_align_celeba (folder or .zip),
    list_attr_celeba.txt and, for a part, list_eval_partition.txt.
    """
    check_choice("part", part, ("all", *PARTS))
    check_integer("size", size, 8, 178)
    check_integer("crop", crop, 8, 178)
    remotes = [IMAGES, ATTRIBUTES, *([] if part == "all" else [PARTITION])]
    options: dict[str, object] = {"part": part, "size": size, "crop": crop}
    return open_files("celeba", remotes, path, options, _read)


def read_attributes(text: str) -> tuple[tuple[str, ...], dict[str, list[int]]]:
    """Parse the names of the attributes, and their values 0 or 1 of each image; line 1 is the number of images."""
    lines = text.splitlines()
    names = tuple(lines[1].split())
    rows = {words[0]: words[1:] for words in map(str.split, lines[2:]) if words}
    if len(rows) != int(lines[0]):
        raise ValueError(f"the attribute list has {len(rows)} images instead of the {lines[0].strip()} in line 1")
    for file, row in rows.items():
        if len(row) != len(names) or not set(row) <= {"-1", "1"}:
            raise ValueError(f"the attributes of {file} are not {len(names)} times -1 or 1")
    return names, {file: [int(word == "1") for word in row] for file, row in rows.items()}


def _read(files: list[Path], folder: Path, part: str, size: int, crop: int) -> Factors:
    names, attributes = read_attributes(files[1].read_text())
    chosen = list(attributes)
    if part != "all":
        parts = dict(line.split() for line in files[2].read_text().splitlines() if line.strip())
        chosen = [file for file in chosen if int(parts[file]) == PARTS[part]]
    with FileTree(files[0]) as tree:
        paths = {PurePosixPath(name).name: name for name in tree.names}
        if missing := [file for file in chosen if file not in paths]:
            raise ValueError(f"{tree.path.name} has no {missing[0]}, which is in the attribute list")
        faces = in_chunks(_face(tree.read(paths[file]), file, size, crop) for file in chosen)
        write_rows(folder / "pixels.npy", len(chosen), faces, "celeba")
    np.save(folder / "classes.npy", np.array([attributes[file] for file in chosen], dtype=np.uint8))
    return Factors(names, ((0.0, 1.0),) * len(names))


def _face(content: bytes, file: str, size: int, crop: int) -> np.ndarray:
    image = read_image(content, "RGB", file)
    left, top = (image.width - crop) // 2, (image.height - crop) // 2
    if left < 0 or top < 0:
        raise ValueError(f"{file} has {image.width} x {image.height} pixels, fewer than crop={crop}")
    return resized(image.crop((left, top, left + crop, top + crop)), size)
