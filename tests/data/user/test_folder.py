"""A folder of pictures of every kind is a data set, read once, told about, and recognised again."""

import json
import os
from itertools import pairwise

import numpy as np
import pytest
import torch
from own_pictures import drawn, mixed_folder, saved
from PIL import Image

from unweave.data import load_data
from unweave.data.storage.progress import observe_progress
from unweave.data.user import scan
from unweave.data.user.folder import folder
from unweave.errors import UserError


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
        saved(drawn(16, 16, colour=(number * 40, 90, 10)), root / f"{number}", options.get("kind", "RGB"))
    return root


def everything(data):
    return data.images(torch.arange(data.size))


def test_mixed_pictures_and_their_table(mixed):
    data = load_data(str(mixed[0]), factors=str(mixed[1]))
    assert data.shape == (3, 64, 64) and data.size == 48 and not data.grid
    assert data.source_info.scan.pictures == sorted(data.source_info.scan.pictures)
    assert set(data.source_info.scan.bad) == {"a/broken.png", "notes.txt"}
    assert data.factor_names == ("shape", "radius", "light", "stars")
    assert data.factor_types == ("discrete", "continuous", "continuous", "discrete")
    matched = data.source_info.joined.matched
    assert matched.unmatched_rows == ["gone.png"] and len(matched.files_without_row) == 2
    assert set(data.source_info.joined.left_out) == {"version", "remark"}
    images = everything(data)
    assert images.dtype == torch.float32 and images.min() >= 0 and images.max() <= 1
    classes, numbers = data.factors(torch.arange(48)), data.values(torch.arange(48))
    assert ((classes < 0) == numbers.isnan()).all()
    assert data.table.missing()[0] == 2 and (classes[:, 0] < 0).sum() == 2


def test_factors_are_those_of_their_pictures(mixed):
    """A square fills the corners of its box, so the picture itself tells what the table should say."""
    data = folder(mixed[0], factors=mixed[1], fit="crop", background="white")
    for number, name in enumerate(data.source_info.scan.pictures):
        shape, radius = data.factors(torch.tensor([number]))[0, 0], data.values(torch.tensor([number]))[0, 1]
        if shape >= 0 and name.endswith((".png", ".bmp")):
            image = data.images(torch.tensor([number]))[0].mean(0)
            reach = round(float(radius) * 64 * 0.88)
            corner, centre, edge = image[32 - reach, 32 - reach], image[32, 32], image[1, 1]
            assert ((corner - centre).abs() < (corner - edge).abs()) == (data.factor_values[0][shape] == "square"), name


def test_read_once_and_again_only_when_it_changed(mixed, cache, monkeypatch):
    first = folder(mixed[0])
    assert len(list(cache.glob("folder-*.npy"))) == 1
    stored = next(cache.glob("folder-*.npy"))
    assert np.array_equal(np.load(stored), first.rows(torch.arange(48)))
    with monkeypatch.context() as patch:
        patch.setattr(scan, "_decode", None)  # would be called to read anything
        again = folder(mixed[0])
        assert torch.equal(everything(first), everything(again)) and again.source_info.scan == first.source_info.scan
        with pytest.raises(TypeError):
            folder(mixed[0], size=32)
    name = mixed[0] / first.source_info.scan.pictures[0]
    Image.new("RGB", (9, 9)).save(name)
    changed = folder(mixed[0])
    assert not torch.equal(everything(first)[0], everything(changed)[0])
    assert torch.equal(everything(first)[1:], everything(changed)[1:])
    assert not [p for p in cache.iterdir() if p.name.startswith(".")]


@pytest.mark.parametrize("damage", ["cut the store", "cut the notes", "lose the notes", "other store"])
def test_a_damaged_cache_is_made_again(damage, mixed, cache):
    before = everything(folder(mixed[0])).clone()
    store, notes = next(cache.glob("*.npy")), next(cache.glob("*.json"))
    if damage == "cut the store":
        store.write_bytes(store.read_bytes()[:1000])
    elif damage == "cut the notes":
        notes.write_bytes(notes.read_bytes()[:100])
    elif damage == "lose the notes":
        notes.unlink()
    else:
        np.save(store, np.zeros((3, 3, 64, 64), np.uint8))
    assert torch.equal(everything(folder(mixed[0])), before)
    assert json.loads(notes.read_text())["digest"]


def test_a_cache_that_cannot_be_written_is_no_error(mixed, tmp_path, monkeypatch):
    kept = everything(folder(mixed[0])).clone()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "file" / "below"))
    assert torch.equal(everything(folder(mixed[0])), kept)


def test_a_full_disk_is_one_line_and_leaves_nothing(mixed, cache, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("unweave.data.storage.memmap.MemmapWriter.add", full)
    with pytest.raises(UserError, match="No space left on device.*UNWEAVE_CACHE"):
        folder(mixed[0])
    assert list(cache.iterdir()) == []


def test_grey_is_kept_as_one_channel(tmp_path, cache):
    for number in range(3):
        saved(drawn(16, 16, colour=(number * 40,) * 3), tmp_path / "p" / str(number), "RGB")
    data = folder(tmp_path / "p", size=16)
    assert data.shape == (1, 16, 16) and data.source_info.scan.gray
    forced = folder(tmp_path / "p", size=16, channels="rgb")
    assert forced.shape == (3, 16, 16)
    assert torch.equal(everything(forced), everything(data).expand(-1, 3, -1, -1))
    saved(drawn(16, 16), tmp_path / "p" / "colour", "RGB")
    assert folder(tmp_path / "p", size=16).shape[0] == 3
    assert folder(tmp_path / "p", size=16, channels="gray").shape[0] == 1


def test_sub_folders_are_a_factor(tmp_path, cache):
    root = tmp_path / "p"
    for place in ("all/cats", "all/dogs/small", "all"):
        plain_folder(root / place, 3)
    data = folder(root, size=16)
    assert data.factor_names == ("folder",) and data.factor_values == (("cats", "dogs"),)
    told = dict(zip(data.source_info.scan.pictures, data.factors(torch.arange(9))[:, 0].tolist()))
    assert told["all/cats/0.png"] == 0 and told["all/dogs/small/0.png"] == 1 and told["all/0.png"] == -1
    assert folder(plain_folder(tmp_path / "flat"), size=16).factor_names == ()
    assert folder(plain_folder(tmp_path / "one" / "below").parent, size=16).factor_names == ()


def test_litter_links_and_strange_files(tmp_path, cache):
    root = plain_folder(tmp_path / "p")
    plain_folder(root / "__MACOSX"), plain_folder(root / ".git")
    (root / "Thumbs.db").write_text("x"), (root / "._0.png").write_text("x")
    os.symlink(root, root / "loop")
    os.symlink(root / "nowhere.png", root / "dangling.png")
    os.link(root / "0.png", root / "picture without ending")
    data = folder(root, size=16)
    assert data.source_info.scan.pictures == ["0.png", "1.png", "2.png", "3.png", "picture without ending"]
    assert data.source_info.scan.bad == {"dangling.png": "No such file or directory"}


def test_progress_is_told(mixed):
    told = []
    with observe_progress(lambda *words: told.append(words)):
        folder(mixed[0])
    assert told[-1] == ("reading pictures", 50, 50)
    assert all(a[1] <= b[1] for a, b in pairwise(told))


def test_a_run_finds_its_data_again_or_is_told(mixed):
    data = folder(
        mixed[0], factors=mixed[1], size=32, fit="pad", columns=["shape", "stars"], kinds={"stars": "continuous"}
    )
    options = json.loads(json.dumps(data.options))  # as a run's config keeps them
    again = load_data(data.name, **options)
    assert torch.equal(everything(again), everything(data)) and again.factor_types == ("discrete", "continuous")
    assert again.options == data.options
    os.utime(mixed[0] / data.source_info.scan.pictures[0])  # touched, not changed
    load_data(data.name, **options)
    mixed[1].write_text(mixed[1].read_text().replace("disc", "disk"))
    with pytest.raises(UserError, match=r"factors in '.*pictures.csv' are not those"):
        load_data(data.name, **options)
    mixed[1].write_text(mixed[1].read_text().replace("disk", "disc"))
    (mixed[0] / data.source_info.scan.pictures[0]).unlink()
    with pytest.raises(UserError, match=r"pictures in .* \(48 then, 47 now\)"):
        load_data(data.name, **options)


def test_what_a_user_may_get_wrong(tmp_path, cache, mixed):
    empty, bad, one = tmp_path / "empty", tmp_path / "bad", tmp_path / "one"
    empty.mkdir(), bad.mkdir()
    (bad / "a.png").write_text("no"), (bad / "b.jpg").write_bytes(b""), (bad / "c.txt").write_text("words")
    plain_folder(one, 1)
    stranger = tmp_path / "t.csv"
    stranger.write_text("file,x\nphoto1.png,1\nphoto2.png,2\n")
    for options, said in [
        ({"path": empty}, "is an empty folder"),
        ({"path": bad}, r"none of the 3 files is a picture that can be read; 'b.jpg': the file is empty"),
        ({"path": one}, "one picture only, '0.png'; give at least two"),
        ({"path": tmp_path / "nothing"}, "is not there"),
        ({"path": stranger}, "is a file"),
        (
            {"path": mixed[0], "factors": stranger},
            "no row names any of the 48 pictures.*'photo1.png'.*'a/picture0000.png'",
        ),
        ({"path": mixed[0], "factors": mixed[1], "columns": ["shap"]}, "did you mean 'shape'"),
        ({"path": mixed[0], "size": 1000}, "size=1000"),
        ({"path": mixed[0], "size": "big"}, "size='big'"),
        ({"path": mixed[0], "fit": "squeeze"}, "'squeeze'"),
    ]:
        with pytest.raises(UserError, match=said) as error:
            folder(**options)
        assert "\n" not in str(error.value)


def test_a_path_is_told_from_a_name(tmp_path, cache, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plain_folder(tmp_path / "digits"), plain_folder(tmp_path / "my pictures (2)"), plain_folder(tmp_path / "holidays")
    assert load_data("digits").name == "digits" and load_data("./digits", size=16).name == "folder"
    assert load_data("my pictures (2)", size=16).size == 4
    assert load_data(f"folder(path={str(tmp_path / 'digits')!r}, size=16)").size == 4
    (tmp_path / ".digits-of-mine").mkdir()
    with pytest.raises(
        UserError, match="option 'path' does not exist"
    ):  # a name, although a folder here is like its path
        load_data("digits(path='.digits-of-mine')")
    for text, said in [
        ("no/such", "is not there"),
        ("~/no-such-folder", "is not there"),
        ("dgits", "did you mean 'digits'"),
        ("my picures (2)", "did you mean 'my pictures \\(2\\)'"),
        ("holidys", "neither a data set nor a folder here; did you mean 'holidays'"),
        ("folder(path='no')", "'no' is not there"),
        ("folder", "needs a path"),
    ]:
        with pytest.raises(UserError, match=said):
            load_data(text)
    with pytest.raises(UserError, match="option 'sice' does not exist; did you mean 'size'"):
        load_data("./digits", sice=3)
