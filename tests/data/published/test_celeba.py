import io
import zipfile

import numpy as np
import pytest
import torch
from PIL import Image

from unweave.data import load_data

NAMES = ("5_o_Clock_Shadow", "Bald", "Smiling", "Young")
COUNT = 7


def pictures():
    """Smooth pictures of 178 x 218, which JPEG keeps well."""
    random = np.random.default_rng(0)
    small = [Image.fromarray(random.integers(0, 256, (4, 4, 3), dtype=np.uint8)) for _ in range(COUNT)]
    return {f"{i + 1:06}.jpg": picture.resize((178, 218), Image.Resampling.BICUBIC) for i, picture in enumerate(small)}


def signs():
    return np.random.default_rng(1).choice([-1, 1], (COUNT, len(NAMES)))


def write(folder, zipped=False):
    """As published: the number of pictures, the names, then a row each, columns aligned by spaces."""
    made = pictures()
    rows = [f"{file} " + " ".join(f"{sign:2}" for sign in row) for file, row in zip(made, signs(), strict=True)]
    (folder / "list_attr_celeba.txt").write_text(f"{COUNT}\n{' '.join(NAMES)} \n" + "\n".join(rows) + "\n")
    parts = [0, 0, 0, 1, 1, 2, 0]
    (folder / "list_eval_partition.txt").write_text("".join(f"{f} {p}\n" for f, p in zip(made, parts, strict=True)))
    content = {}
    for file, picture in made.items():
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=95)
        content[file] = buffer.getvalue()
    put(folder, content, zipped)
    return content


def put(folder, content, zipped):
    if zipped:
        with zipfile.ZipFile(folder / "img_align_celeba.zip", "w") as archive:
            for file, packed in content.items():
                archive.writestr(f"img_align_celeba/{file}", packed)
        return
    (folder / "img_align_celeba").mkdir(exist_ok=True)
    for file, packed in content.items():
        (folder / "img_align_celeba" / file).write_bytes(packed)


@pytest.mark.parametrize("zipped", [True, False])
def test_read_as_written(tmp_path, own_cache, well_formed, zipped):
    content = write(tmp_path, zipped)
    data = well_formed(load_data("celeba", path=tmp_path))
    assert data.size == COUNT and data.shape == (3, 64, 64) and not data.grid
    assert data.factor_names == NAMES and data.factor_sizes == (2, 2, 2, 2)
    assert np.array_equal(data.factors(torch.arange(COUNT)) * 2 - 1, signs())
    face = Image.open(io.BytesIO(content["000004.jpg"])).crop((15, 35, 163, 183))
    expected = np.asarray(face.resize((64, 64), Image.Resampling.LANCZOS))
    assert np.array_equal((data.images(torch.tensor([3]))[0] * 255).round().byte().permute(1, 2, 0), expected)


def test_parts_size_and_crop(tmp_path, own_cache):
    write(tmp_path)
    chosen = {"train": [0, 1, 2, 6], "valid": [3, 4], "test": [5]}
    for part, rows in chosen.items():
        data = load_data("celeba", path=tmp_path, part=part, size=32, crop=178)
        assert data.size == len(rows) and data.shape == (3, 32, 32)
        assert np.array_equal(data.factors(torch.arange(len(rows))) * 2 - 1, signs()[rows])


def changed(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_damaged_and_mislabelled_files_are_refused(tmp_path, own_cache, refused):
    write(tmp_path)
    attributes, images = tmp_path / "list_attr_celeba.txt", tmp_path / "img_align_celeba"
    changed(attributes, "7\n", "8\n")
    refused("announces 8 pictures and lists 7", "celeba", path=tmp_path)
    changed(attributes, "8\n", "7\n")
    changed(attributes, " Young", "")
    refused("000001.jpg something else than 3 times", "celeba", path=tmp_path)
    write(tmp_path)
    changed(attributes, "000002.jpg ", "000002.jpg  0 ")
    refused("000002.jpg something else", "celeba", path=tmp_path)
    write(tmp_path)
    (images / "000005.jpg").write_bytes((images / "000005.jpg").read_bytes()[:300])
    refused("picture 000005.jpg cannot be read", "celeba", path=tmp_path)
    (images / "000005.jpg").unlink()
    refused("has no 000005.jpg", "celeba", path=tmp_path)
    Image.new("RGB", (100, 100)).save(images / "000005.jpg")
    refused("100 x 100 pixels, fewer than crop=148", "celeba", path=tmp_path)
    attributes.write_text("")
    refused("damaged", "celeba", path=tmp_path)
    attributes.unlink()
    refused("holds no list_attr_celeba.txt", "celeba", path=tmp_path)


def test_the_partition_is_needed_for_a_part_only(tmp_path, own_cache, refused):
    write(tmp_path)
    (tmp_path / "list_eval_partition.txt").unlink()
    assert load_data("celeba", path=tmp_path).size == COUNT
    refused("holds no list_eval_partition.txt", "celeba", path=tmp_path, part="test")
