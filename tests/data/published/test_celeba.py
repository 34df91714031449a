import io

import numpy as np
import pytest
import torch
from PIL import Image
from published_files import CELEBA_NAMES, CELEBA_SIGNS, write_celeba

from unweave.data import load_data


@pytest.mark.parametrize("zipped", [True, False])
def test_files_are_read(tmp_path, own_cache, zipped):
    files = write_celeba(tmp_path, zipped)
    data = load_data("celeba", path=tmp_path)
    assert data.size == 7 and data.shape == (3, 64, 64) and not data.grid
    assert data.factor_names == CELEBA_NAMES and data.factor_sizes == (2, 2, 2, 2)
    assert np.array_equal(data.factors(torch.arange(7)) * 2 - 1, CELEBA_SIGNS)
    face = Image.open(io.BytesIO(files["000004.jpg"])).crop((15, 35, 163, 183))
    expected = np.asarray(face.resize((64, 64), Image.Resampling.LANCZOS))
    assert np.array_equal((data.images(torch.tensor([3]))[0] * 255).round().byte().permute(1, 2, 0), expected)


def test_parts_size_and_crop(tmp_path, own_cache):
    write_celeba(tmp_path)
    for part, rows in {"train": [0, 1, 2, 6], "valid": [3, 4], "test": [5]}.items():
        data = load_data("celeba", path=tmp_path, part=part, size=32, crop=178)
        assert data.size == len(rows) and data.shape == (3, 32, 32)
        assert np.array_equal(data.factors(torch.arange(len(rows))) * 2 - 1, CELEBA_SIGNS[rows])


@pytest.mark.parametrize(
    "old, new, fact",
    [
        ("7\n", "8\n", "7 images instead of the 8"),
        (" Young", "", "000001.jpg"),
        ("000002.jpg ", "000002.jpg  0 ", "000002.jpg"),
    ],
)
def test_invalid_attributes_are_refused(tmp_path, own_cache, refused, old, new, fact):
    write_celeba(tmp_path)
    path = tmp_path / "list_attr_celeba.txt"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    refused(fact, "celeba", path=tmp_path)


def test_invalid_files_are_refused(tmp_path, own_cache, refused):
    write_celeba(tmp_path)
    attributes, image = tmp_path / "list_attr_celeba.txt", tmp_path / "img_align_celeba" / "000005.jpg"
    image.write_bytes(image.read_bytes()[:300])
    refused("000005.jpg", "celeba", path=tmp_path)
    image.unlink()
    refused("000005.jpg", "celeba", path=tmp_path)
    Image.new("RGB", (100, 100)).save(image)
    refused("100 x 100 pixels, fewer than crop=148", "celeba", path=tmp_path)
    attributes.write_text("")
    refused("damaged", "celeba", path=tmp_path)
    attributes.unlink()
    refused("list_attr_celeba.txt", "celeba", path=tmp_path)


def test_the_partition_is_only_needed_for_a_part(tmp_path, own_cache, refused):
    write_celeba(tmp_path)
    (tmp_path / "list_eval_partition.txt").unlink()
    assert load_data("celeba", path=tmp_path).size == 7
    refused("list_eval_partition.txt", "celeba", path=tmp_path, part="test")
