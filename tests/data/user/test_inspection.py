"""The description of a data set is correct and complete."""

import os

import numpy as np
import pytest
from image_files import draw_image, mixed_folder, save_image
from mentions import mentions
from PIL import Image

from unweave.data import load_data
from unweave.data.user.inspection import data_summary, describe
from unweave.report.contact_sheet import contact_sheet, factor_charts


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))


def words(sections):
    return "\n".join(" | ".join(row) for section in sections for row in [(section.heading,), *section.rows])


def test_a_mixed_folder(tmp_path):
    table = mixed_folder(tmp_path / "p", 48)
    data = load_data(tmp_path / "p", factors=table)
    said = words(describe(data))
    for part in (
        "images | 48 in 50 files",
        "format | 24 PNG, 8 JPEG",
        "4 grey of 16 bits",
        "48 different sizes, 2",
        "48 images of 64 x 64, colour (590 kB)",
        "are not square: the middle is kept",
        "8 have transparent parts: shown on white",
        "4 have 16 bits: reduced to 8, 65535 is white",
        "4 have several frames: the first is used",
        "4 are rotated: turned upright",
        f"4 factors, from {table}",
        "shape | discrete | 2 values: disc, square | 2 missing",
        "radius | continuous | 46 values from 0.1",
        "stars | discrete | 5 values: 1, 2, 3, 4, 5",
        "column 'image' names the images",
        "1 row names no image: gone.png",
        "2 images have no row: ",
        "column 'version' is not a factor: always 'same'",
        "2 files skipped",
        "a/broken.png | damaged",
        "notes.txt | not an image",
    ):
        assert part in said, part


def test_dark_16_bit_images_are_reported(tmp_path):
    for number in range(3):
        level = np.full((32, 32), 3000 + number, np.uint16)
        path = tmp_path / "p" / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(level).save(path)
    assert mentions(words(describe(load_data(tmp_path / "p"))), "3002", "white=4095")
    bright = load_data(tmp_path / "p", white=4095)
    assert "white=" not in words(describe(bright)) and bright.pixels.max() > 180


def test_grey_images_and_unused_tables_are_reported(tmp_path):
    for number in range(3):
        save_image(draw_image(64, 64, colour=(number, number, number)), tmp_path / "p" / f"{number}", "RGB")
    (tmp_path / "p" / "labels.csv").write_text("file,x\n0.png,1\n")
    data = load_data(tmp_path / "p")
    said = words(describe(data))
    assert "no image has colour" in said and "size | all 64 x 64" in said and "No known factors" in said
    assert f"--factors {tmp_path / 'p' / 'labels.csv'}" in said
    assert any("labels.csv" in line for line in data_summary(data))
    used = load_data(tmp_path / "p", factors=tmp_path / "p" / "labels.csv")
    assert "labels.csv" not in used.source_info.unreadable_files


def test_the_summary_lists_some_skipped_files(tmp_path):
    mixed_folder(tmp_path / "p", 12)
    for number in range(9):
        (tmp_path / "p" / f"bad{number}.png").write_text("no")
    lines = data_summary(load_data(tmp_path / "p"))
    assert mentions(lines[0], "12 images", "64 x 64", "folder")
    assert "11 files" in lines[1] and len(lines) == 2 + 5 + 1
    assert mentions(lines[-1], "6 more", f"unweave data inspect {tmp_path / 'p'}")
    assert data_summary(load_data("digits")) == []
    part = data_summary(load_data(f"split(data={str(tmp_path / 'p')!r}, part='train')"))
    assert part[1] == lines[1] and "11 images" in part[0]


def test_arrays_and_built_in_data_sets(tmp_path):
    np.savez(tmp_path / "a.npz", images=np.eye(8, dtype=np.uint8)[None].repeat(3, 0), y=[0, 1, 0])
    said = words(describe(load_data(tmp_path / "a.npz")))
    assert "uint8 [3, 8, 8]" in said and "1 is white" in said and "y | discrete | 2 values: 0, 1" in said
    said = words(describe(load_data("digits")))
    assert "1,797 images of 8 x 8, grey" in said and "digit | discrete | 10 values: 0, 1, 2, 3, 4, 5, ..." in said


def test_file_names_that_are_not_text(tmp_path):
    for name in (b"\xff.png", b"b.png", b"\xfe.txt"):
        path = os.fsencode(tmp_path / "p") + b"/" + name
        (tmp_path / "p").mkdir(exist_ok=True)
        with open(path, "wb") as file:
            if name.endswith(b"png"):
                draw_image(16, 16).save(file, "PNG")
    data = load_data(tmp_path / "p")
    assert (words(describe(data)) + "".join(data_summary(data))).encode()
    assert contact_sheet(data, "p", data.source_info.file_names)


def test_contact_sheets(tmp_path):
    table = mixed_folder(tmp_path / "p", 14)
    data = load_data(tmp_path / "p", factors=table, size=16)
    sheet = contact_sheet(data, "a title " * 50, data.source_info.file_names)
    for png in (
        sheet,
        factor_charts(data),
        contact_sheet(load_data("digits"), "digits"),
        factor_charts(load_data("digits")),
    ):
        assert png.startswith(b"\x89PNG")
