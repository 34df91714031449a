import hashlib
import zipfile

import numpy as np
import torch
from PIL import Image, ImageOps
from published_files import OMNIGLOT_PARTS, write_omniglot, write_omniglot_part, zip_files

from unweave.data import load_data
from unweave.data.published.omniglot import REMOTES


def test_files_are_read(tmp_path, own_cache):
    drawings = write_omniglot(tmp_path)
    data, every = load_data("omniglot", path=tmp_path, size=105), torch.arange(27)
    assert data.size == 27 and data.shape == (1, 105, 105) and not data.grid
    assert data.factor_names == ("alphabet", "character", "drawer") and data.factor_sizes == (3, 9, 3)
    assert data.factor_values[0] == ("Greek", "Latin", "Oriya") and data.factor_values[2] == (1, 2, 20)
    assert data.factor_values[1][3:5] == ("Latin 1", "Latin 2")
    ink = np.stack([np.asarray(drawings[row]) for row in sorted(drawings)]) == 0
    assert np.array_equal(data.images(every)[:, 0], ink)
    assert data.factors(every)[9:12].tolist() == [[1, 3, 0], [1, 3, 1], [1, 3, 2]]


def test_parts_sizes_and_folders(tmp_path, own_cache):
    drawings = write_omniglot(tmp_path)
    small = load_data("omniglot", path=tmp_path, part="evaluation")
    assert small.size == 9 and small.shape == (1, 64, 64)
    expected = ImageOps.invert(drawings["Oriya", 1, 2].convert("L")).resize((64, 64), Image.Resampling.LANCZOS)
    assert np.array_equal((small.images(torch.tensor([1]))[0, 0] * 255).round().byte(), expected)
    for part in OMNIGLOT_PARTS:
        with zipfile.ZipFile(tmp_path / f"images_{part}.zip") as archive:
            archive.extractall(tmp_path / "out")
    assert load_data("omniglot", path=tmp_path / "out").size == 27
    assert load_data("omniglot", path=tmp_path / "out", part="background").size == 18
    assert load_data("omniglot", path=tmp_path / "out" / "images_evaluation", part="evaluation").size == 9
    assert load_data("omniglot", path=tmp_path / "images_evaluation.zip").size == 9


def test_damaged_files_are_refused(tmp_path, own_cache, refused):
    write_omniglot_part(tmp_path, "background")
    path = tmp_path / "images_background.zip"
    refused("part='evaluation'", "omniglot", path=path, part="evaluation")
    content = path.read_bytes()
    flipped = bytearray(content)
    flipped[len(content) // 3] ^= 255
    for damaged in (flipped, content[:-10]):
        path.write_bytes(damaged)
        refused("damaged", "omniglot", path=path)
    zip_files(path, {"images_background/Greek/character01/0394_01.png": b"not an image"})
    refused("0394_01.png", "omniglot", path=path)


def test_a_file_of_the_published_size_must_have_the_published_checksum(tmp_path, own_cache, refused, monkeypatch):
    write_omniglot_part(tmp_path, "background")
    content = (tmp_path / "images_background.zip").read_bytes()
    monkeypatch.setitem(REMOTES, "background", [REMOTES["background"][0]._replace(size=len(content))])
    refused(hashlib.sha256(content).hexdigest()[:12], "omniglot", path=tmp_path, part="background")
