import zipfile

import numpy as np
import torch
from PIL import Image
from published_files import YALE_ROWS, pgm, random_bytes, write_extended_yale_b

from unweave.data import load_data


def test_files_are_read(tmp_path, own_cache):
    faces = write_extended_yale_b(tmp_path)
    data = load_data("extended_yale_b", path=tmp_path)
    assert data.size == 6 and data.shape == (1, 64, 64) and not data.grid
    assert data.factor_names == ("subject", "azimuth", "elevation")
    assert data.factor_values == ((1, 2, 39), (-130, 0, 70), (-35, 0, 20, 90))
    for index, row in enumerate(sorted(YALE_ROWS)):
        values = [v[c] for v, c in zip(data.factor_values, data.factors(torch.tensor([index]))[0], strict=True)]
        assert tuple(values) == row
        small = Image.fromarray(faces[row]).resize((64, 64), Image.Resampling.LANCZOS)
        assert np.array_equal((data.images(torch.tensor([index]))[0, 0] * 255).round().byte(), small)


def test_folders_are_read(tmp_path, own_cache):
    write_extended_yale_b(tmp_path)
    with zipfile.ZipFile(tmp_path / "CroppedYale.zip") as archive:
        archive.extractall(tmp_path / "out")
    zipped = load_data("extended_yale_b", path=tmp_path / "CroppedYale.zip")
    for folder in ("out", "out/CroppedYale"):
        assert torch.equal(load_data("extended_yale_b", path=tmp_path / folder).pixels, zipped.pixels)


def test_damaged_files_are_refused(tmp_path, own_cache, refused):
    folder = tmp_path / "CroppedYale" / "yaleB01"
    folder.mkdir(parents=True)
    refused("yaleB01_P00A+000E+00.pgm", "extended_yale_b", path=tmp_path / "CroppedYale")
    image = pgm(random_bytes(192, 168))
    for content in (image[:-100], b"P5\n168 ", b"hello", b""):
        (folder / "yaleB01_P00A+000E+00.pgm").write_bytes(content)
        refused("yaleB01_P00A+000E+00.pgm", "extended_yale_b", path=tmp_path / "CroppedYale")
    write_extended_yale_b(tmp_path)
    archive = tmp_path / "CroppedYale.zip"
    archive.write_bytes(archive.read_bytes()[:-100])
    refused("damaged", "extended_yale_b", path=archive)
