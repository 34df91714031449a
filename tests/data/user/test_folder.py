"""A folder of image files of every format is a data set, decoded once and identified by its content."""

import json
import os
from itertools import pairwise

import numpy as np
import pytest
import torch
from image_files import draw_image, mixed_folder, save_image
from mentions import mentions
from PIL import Image
from raises import raises

from unweave.data import load_data
from unweave.data.storage.digest import changed_parts
from unweave.data.storage.progress import observe_progress
from unweave.data.user import scan
from unweave.data.user.folder import folder


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def mixed(tmp_path, cache):
    table = mixed_folder(tmp_path / "pictures", 48)
    return tmp_path / "pictures", table


def plain_folder(root, count=4, **options):
    for number in range(count):
        save_image(draw_image(16, 16, colour=(number * 40, 90, 10)), root / f"{number}", options.get("kind", "RGB"))
    return root


def all_images(data):
    return data.images(torch.arange(data.size))


def test_mixed_images_and_their_table(mixed):
    data = load_data(str(mixed[0]), factors=str(mixed[1]))
    assert data.shape == (3, 64, 64) and data.size == 48 and not data.grid
    assert data.source_info.file_names == sorted(data.source_info.file_names)
    assert set(data.source_info.unreadable_files) == {"a/broken.png", "notes.txt"}
    assert data.factor_names == ("shape", "radius", "light", "stars")
    assert data.factor_types == ("discrete", "continuous", "continuous", "discrete")
    assert set(data.source_info.excluded_columns) == {"version", "remark"}
    assert any("gone.png" in warning for warning in data.source_info.row_warnings)
    images = all_images(data)
    assert images.dtype == torch.float32 and images.min() >= 0 and images.max() <= 1
    classes, numbers = data.factors(torch.arange(48)), data.values(torch.arange(48))
    assert ((classes < 0) == numbers.isnan()).all()
    assert (classes[:, 0] < 0).sum() == 2


def test_factors_are_assigned_to_their_images(mixed):
    """A square fills the corners of its box, so the shape can be read from the image."""
    data = folder(mixed[0], factors=mixed[1], fit="crop", background="white")
    for number, name in enumerate(data.source_info.file_names):
        shape, radius = data.factors(torch.tensor([number]))[0, 0], data.values(torch.tensor([number]))[0, 1]
        if shape >= 0 and name.endswith((".png", ".bmp")):
            image = data.images(torch.tensor([number]))[0].mean(0)
            reach = round(float(radius) * 64 * 0.88)
            corner, centre, edge = image[32 - reach, 32 - reach], image[32, 32], image[1, 1]
            assert ((corner - centre).abs() < (corner - edge).abs()) == (data.factor_values[0][shape] == "square"), name


def test_a_folder_is_read_again_only_if_it_changed(mixed, cache, monkeypatch):
    first = folder(mixed[0])
    assert len(list(cache.glob("folder-*.npy"))) == 1
    stored = next(cache.glob("folder-*.npy"))
    assert np.array_equal(np.load(stored), first.raw_images(torch.arange(48)))
    with monkeypatch.context() as patch:
        patch.setattr(scan, "decode_image", None)  # would be called to read an image
        again = folder(mixed[0])
        assert torch.equal(all_images(first), all_images(again)) and again.source_info == first.source_info
        with pytest.raises(TypeError):
            folder(mixed[0], size=32)
    name = mixed[0] / first.source_info.file_names[0]
    Image.new("RGB", (9, 9)).save(name)
    changed = folder(mixed[0])
    assert not torch.equal(all_images(first)[0], all_images(changed)[0])
    assert torch.equal(all_images(first)[1:], all_images(changed)[1:])
    assert not [p for p in cache.iterdir() if p.name.startswith(".")]


@pytest.mark.parametrize("damage", ["truncated array", "truncated scan", "no scan", "another array"])
def test_a_damaged_cache_is_replaced(damage, mixed, cache):
    before = all_images(folder(mixed[0])).clone()
    store, notes = next(cache.glob("*.npy")), next(cache.glob("*.json"))
    if damage == "truncated array":
        store.write_bytes(store.read_bytes()[:1000])
    elif damage == "truncated scan":
        notes.write_bytes(notes.read_bytes()[:100])
    elif damage == "no scan":
        notes.unlink()
    else:
        np.save(store, np.zeros((3, 3, 64, 64), np.uint8))
    assert torch.equal(all_images(folder(mixed[0])), before)
    assert json.loads(notes.read_text())["scan"]["files"]


def test_the_cache_need_not_be_writable(mixed, tmp_path, monkeypatch):
    kept = all_images(folder(mixed[0])).clone()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "file" / "below"))
    assert torch.equal(all_images(folder(mixed[0])), kept)


def test_a_full_disk_leaves_nothing_in_the_cache(mixed, cache, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("unweave.data.storage.memmap.MemmapWriter.add", full)
    with raises("UNWEAVE_CACHE") as error:
        folder(mixed[0])
    assert "No space left on device" in str(error.value)
    assert [path.name for path in cache.iterdir()] == ["locks"]


def test_grey_is_kept_as_one_channel(tmp_path, cache):
    for number in range(3):
        save_image(draw_image(16, 16, colour=(number * 40,) * 3), tmp_path / "p" / str(number), "RGB")
    data = folder(tmp_path / "p", size=16)
    assert data.shape == (1, 16, 16)
    forced = folder(tmp_path / "p", size=16, channels="rgb")
    assert forced.shape == (3, 16, 16)
    assert torch.equal(all_images(forced), all_images(data).expand(-1, 3, -1, -1))
    save_image(draw_image(16, 16), tmp_path / "p" / "colour", "RGB")
    assert folder(tmp_path / "p", size=16).shape[0] == 3
    assert folder(tmp_path / "p", size=16, channels="gray").shape[0] == 1


def test_sub_folders_are_a_factor(tmp_path, cache):
    root = tmp_path / "p"
    for place in ("all/cats", "all/dogs/small", "all"):
        plain_folder(root / place, 3)
    data = folder(root, size=16)
    assert data.factor_names == ("folder",) and data.factor_values == (("cats", "dogs"),)
    classes = dict(zip(data.source_info.file_names, data.factors(torch.arange(9))[:, 0].tolist()))
    assert classes["all/cats/0.png"] == 0 and classes["all/dogs/small/0.png"] == 1 and classes["all/0.png"] == -1
    assert folder(plain_folder(tmp_path / "flat"), size=16).factor_names == ()
    assert folder(plain_folder(tmp_path / "one" / "below").parent, size=16).factor_names == ()


def test_system_files_and_links(tmp_path, cache):
    root = plain_folder(tmp_path / "p")
    plain_folder(root / "__MACOSX"), plain_folder(root / ".git")
    (root / "Thumbs.db").write_text("x"), (root / "._0.png").write_text("x")
    os.symlink(root, root / "loop")
    os.symlink(root / "nowhere.png", root / "dangling.png")
    os.link(root / "0.png", root / "picture without ending")
    data = folder(root, size=16)
    assert data.source_info.file_names == ["0.png", "1.png", "2.png", "3.png", "picture without ending"]
    assert data.source_info.unreadable_files == {"dangling.png": "No such file or directory"}


def test_progress_is_reported(mixed):
    calls = []
    with observe_progress(lambda *call: calls.append(call)):
        folder(mixed[0])
    assert calls[-1] == ("reading images", 50, 50)
    assert all(a[1] <= b[1] for a, b in pairwise(calls))


def test_the_options_reopen_the_same_content(mixed):
    data = folder(
        mixed[0], factors=mixed[1], size=32, fit="pad", columns=["shape", "stars"], factor_types={"stars": "continuous"}
    )
    options = json.loads(json.dumps(data.options))  # as in a run's config
    again = load_data(data.name, **options)
    assert torch.equal(all_images(again), all_images(data)) and again.factor_types == ("discrete", "continuous")
    assert again.options == data.options
    os.utime(mixed[0] / data.source_info.file_names[0])  # a new time, the same content
    assert load_data(data.name, **options).digest == data.digest
    mixed[1].write_text(mixed[1].read_text().replace("disc", "disk"))
    assert changed_parts(data.digest, load_data(data.name, **options).digest) == ("factors",)
    mixed[1].write_text(mixed[1].read_text().replace("disk", "disc"))
    (mixed[0] / data.source_info.file_names[0]).unlink()
    assert "images" in changed_parts(data.digest, load_data(data.name, **options).digest)


def test_the_fingerprint_of_an_older_run_is_checked(tmp_path, cache):
    (tmp_path / "p").mkdir()
    for number in range(4):
        Image.new("RGB", (16, 16), (40 * number,) * 3).save(tmp_path / "p" / f"{number}.bmp")
    stored = "4-47afac6077ca-f87e251d"  # of commit d4802f3
    assert folder(tmp_path / "p", fingerprint=stored).options["fingerprint"] == stored
    (tmp_path / "p" / "0.bmp").unlink()
    with raises("data", value=str(tmp_path / "p")) as error:
        folder(tmp_path / "p", fingerprint=stored)
    assert mentions(str(error.value), "4", "3")


def test_folders_without_two_images_are_refused(tmp_path, cache):
    empty, damaged, single = tmp_path / "empty", tmp_path / "damaged", plain_folder(tmp_path / "single", 1)
    empty.mkdir(), damaged.mkdir()
    (damaged / "a.png").write_text("no"), (damaged / "b.jpg").write_bytes(b""), (damaged / "c.txt").write_text("words")
    for path, part in [(empty, "no files"), (damaged, "'b.jpg': the file is empty"), (single, "only '0.png'")]:
        with raises("data", value=str(path)) as error:
            folder(path)
        assert part in str(error.value)


def test_invalid_options_are_refused(tmp_path, mixed):
    other_table = tmp_path / "t.csv"
    other_table.write_text("file,x\nphoto1.png,1\nphoto2.png,2\n")
    for options, argument, value in [
        ({"path": tmp_path / "nothing"}, "data", str(tmp_path / "nothing")),
        ({"path": other_table}, "data", str(other_table)),
        ({"factors": other_table}, "factors", str(other_table)),
        ({"factors": mixed[1], "columns": ["shap"]}, "column", "shap"),
        ({"size": 1000}, "size", 1000),
        ({"size": "big"}, "size", "big"),
        ({"fit": "squeeze"}, "fit", "squeeze"),
    ]:
        with raises(argument, value=value):
            folder(**{"path": mixed[0], **options})


def test_names_have_precedence_over_paths(tmp_path, cache, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plain_folder(tmp_path / "digits"), plain_folder(tmp_path / "my pictures (2)"), plain_folder(tmp_path / "holidays")
    assert load_data("digits").name == "digits" and load_data("./digits", size=16).name == "folder"
    assert load_data("my pictures (2)", size=16).size == 4
    assert load_data(f"folder(path={str(tmp_path / 'digits')!r}, size=16)").size == 4
    (tmp_path / ".digits-of-mine").mkdir()
    for text, argument, value in [
        ("digits(path='.digits-of-mine')", "option", "path"),
        ("no/such", "data", "no/such"),
        ("~/no-such-folder", "data", "~/no-such-folder"),
        ("dgits", "data", "dgits"),
        ("folder(path='no')", "data", "no"),
        ("folder", "path", None),
    ]:
        with raises(argument, value=value if value else ...):
            load_data(text)
    for text, name in [("my picures (2)", "my pictures (2)"), ("holidys", "holidays")]:
        with raises("data", value=text, accepted=["digits", name]):
            load_data(text)
    with raises("option", value="sice", accepted=["size"]):
        load_data("./digits", sice=3)
