import io
import shutil
import zipfile

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from unweave.data import load_data

SETS = {"background": ("Greek", "Latin"), "evaluation": ("Oriya",)}


def drawing(random):
    return Image.fromarray(random.random((105, 105)) > 0.1)  # ink False, paper True: a 1-bit picture


def write(folder, part):
    """Path `<set>/<alphabet>/characterNN/CCCC_DD.png`, 1-bit, ink 0."""
    random, made, number = np.random.default_rng(0), {}, 400
    with zipfile.ZipFile(folder / f"images_{part}.zip", "w") as archive:
        archive.writestr(f"images_{part}/", b"")
        for alphabet in SETS[part]:
            for character in (1, 2, 10):
                number += 1
                for drawer in (1, 2, 20):
                    picture, buffer = drawing(random), io.BytesIO()
                    picture.save(buffer, "PNG")
                    name = f"images_{part}/{alphabet}/character{character:02}/{number:04}_{drawer:02}.png"
                    archive.writestr(name, buffer.getvalue())
                    made[alphabet, character, drawer] = picture
    return made


def test_read_as_written(tmp_path, own_cache, well_formed):
    made = write(tmp_path, "background") | write(tmp_path, "evaluation")
    data = well_formed(load_data("omniglot", path=tmp_path, size=105))
    assert data.size == 27 and data.shape == (1, 105, 105) and not data.grid
    assert data.factor_names == ("alphabet", "character", "drawer") and data.factor_sizes == (3, 9, 3)
    assert data.factor_values[0] == ("Greek", "Latin", "Oriya") and data.factor_values[2] == (1, 2, 20)
    assert data.factor_values[1][3:5] == ("Latin 1", "Latin 2")
    ink = np.stack([np.asarray(made[row]) for row in sorted(made)]) == 0
    assert np.array_equal(data.images(torch.arange(27))[:, 0], ink)
    found = data.factors(torch.arange(27))
    assert found[9:12].tolist() == [[1, 3, 0], [1, 3, 1], [1, 3, 2]]


def test_parts_sizes_and_folders(tmp_path, own_cache):
    made = write(tmp_path, "background") | write(tmp_path, "evaluation")
    small = load_data("omniglot", path=tmp_path, part="evaluation")
    assert small.size == 9 and small.shape == (1, 64, 64)
    expected = ImageOps.invert(made["Oriya", 1, 2].convert("L")).resize((64, 64), Image.Resampling.LANCZOS)
    assert np.array_equal((small.images(torch.tensor([1]))[0, 0] * 255).round().byte(), expected)
    for part in SETS:
        with zipfile.ZipFile(tmp_path / f"images_{part}.zip") as archive:
            archive.extractall(tmp_path / "out")
    assert load_data("omniglot", path=tmp_path / "out").size == 27
    assert load_data("omniglot", path=tmp_path / "out", part="background").size == 18
    assert load_data("omniglot", path=tmp_path / "out" / "images_evaluation", part="evaluation").size == 9
    assert load_data("omniglot", path=tmp_path / "images_evaluation.zip").size == 9


def test_damaged_files_are_refused(tmp_path, own_cache, refused):
    write(tmp_path, "background")
    path = tmp_path / "images_background.zip"
    refused("no pictures named like .* in part='evaluation'", "omniglot", path=path, part="evaluation")
    whole = path.read_bytes()
    spoilt = bytearray(whole)
    spoilt[len(whole) // 3] ^= 255
    path.write_bytes(spoilt)
    refused("damaged", "omniglot", path=path)
    path.write_bytes(whole[:-10])
    refused("damaged", "omniglot", path=path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("images_background/Greek/character01/0394_01.png", b"not a picture")
    refused("0394_01.png cannot be read", "omniglot", path=path)


@pytest.mark.parametrize("number, size, characters", [(1, 2720, 136), (2, 3120, 156)])
def test_the_real_small_sets(own_cache, well_formed, reference, number, size, characters):
    data = well_formed(load_data("omniglot", path=reference(f"omniglot/images_background_small{number}.zip")))
    assert data.size == size and data.factor_sizes == (5, characters, 20)
    assert 0.05 < data.pixels.float().mean() / 255 < 0.1  # thin bright strokes on black


def test_a_damaged_copy_of_the_published_file_is_refused(tmp_path, own_cache, refused, reference, monkeypatch):
    from unweave.data.published.omniglot import REMOTES

    shutil.copyfile(reference("omniglot/images_background_small1.zip"), tmp_path / "images_background.zip")
    monkeypatch.setitem(REMOTES, "background", REMOTES["background"]._replace(size=1319022))
    refused("its SHA-256 is f38eb80f8012", "omniglot", path=tmp_path, part="background")
