"""Every file format of user data: its example is read back, damaged files are refused, and help lists it."""

import numpy as np
import pytest
import torch
from raises import raises
from typer.testing import CliRunner

from unweave.cli.data import app
from unweave.data import load_data
from unweave.data.user.formats import ACCEPTED, FORMATS, find_format

IMAGES = np.random.default_rng(0).integers(2, 256, (6, 8, 8, 3), dtype=np.uint8)
LABELS = np.array([3, 1, 1, 2, 3, 2])
CASES = [pytest.param(format, suffix, id=suffix) for format in FORMATS for suffix in format.suffixes]


def example(format, suffix, folder):
    path = folder / f"example{suffix}"
    format.write_example(path, {"images": IMAGES, "labels": LABELS})
    return path


@pytest.mark.parametrize("format, suffix", CASES)
@pytest.mark.parametrize("memmap", [False, True])
def test_the_example_is_read_back(format, suffix, memmap, tmp_path):
    path = example(format, suffix, tmp_path)
    arrays = format.load(path, memmap)
    assert find_format(path) is format and find_format(path.with_name("A" + suffix.upper())) is format
    assert "images" in arrays and set(arrays) <= {"images", "labels"}
    assert np.array_equal(arrays["images"], IMAGES) and np.array_equal(arrays.get("labels", LABELS), LABELS)


@pytest.mark.parametrize("format, suffix", CASES)
def test_a_path_opens_a_data_set_and_its_options_reopen_it(format, suffix, tmp_path):
    data = load_data(str(example(format, suffix, tmp_path)))
    index = torch.arange(6)
    assert np.array_equal(data.images(index), IMAGES.transpose(0, 3, 1, 2) / np.float32(255))
    if data.factor_names:
        assert data.factor_names == ("labels",) and data.factors(index)[:, 0].tolist() == (LABELS - 1).tolist()
    again = load_data(data.name, **data.options)
    assert torch.equal(again.images(index), data.images(index)) and again.options == data.options


@pytest.mark.parametrize("format, suffix", CASES)
@pytest.mark.parametrize("damage", ["empty", "truncated", "another format", "only the first bytes"])
def test_a_damaged_file_is_refused(format, suffix, damage, tmp_path):
    path = example(format, suffix, tmp_path)
    content = path.read_bytes()
    damaged = {"empty": b"", "truncated": content[: len(content) // 2], "another format": b"hello" * 100}
    path.write_bytes(damaged.get(damage, format.signature))
    with raises("data", value=str(path)):
        load_data(path)
    path.unlink()
    with raises("data", value=str(path)):
        load_data(path)


def test_help_lists_every_format():
    shown = " ".join(CliRunner().invoke(app, ["list"]).output.split())
    for format in FORMATS:
        assert format.help and "\n" not in format.help and format.help in shown
        assert all(suffix in shown and suffix in ACCEPTED for suffix in format.suffixes)


def test_suffixes_are_unique_and_lower_case():
    suffixes = [suffix for format in FORMATS for suffix in format.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in suffixes)
