"""A row of a table gives its values to the image that it names, and to no other."""

import pytest
import torch
from PIL import Image

import unweave as uw
from unweave.data import Sampler, explain, load_data


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))


def folder(root, *names):
    """A folder of small images, and of texts if the suffix is .txt."""
    for number, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".txt":
            path.write_text("no image")
        else:
            Image.new("RGB", (16, 16), (number * 9, 0, 90)).save(path)
    return root


def table(root, *rows, header="file,label"):
    path = root.parent / "labels.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def labels(root, *rows, **options):
    """The label of each image that has one, and the data."""
    data = load_data(root, factors=table(root, *rows, **options), size=16, columns=["label"])
    found = [None if c < 0 else data.factor_values[0][c] for c in data.factors(torch.arange(data.size))[:, 0].tolist()]
    files = sorted(path for path in root.rglob("*.*") if path.suffix != ".txt" and path.read_bytes() != b"damaged")
    return dict(zip([path.relative_to(root).as_posix() for path in files], found, strict=True)), data


VAL = [f"val/000{k}.png" for k in range(4)]
BOTH = ["train/0001.png,cat", "train/0002.png,cat", "val/0001.png,dog", "val/0002.png,dog", "val/0003.png,cat"]


@pytest.mark.parametrize("rows", [BOTH, BOTH[::-1]])
def test_a_table_of_two_folders_of_which_one_is_there(tmp_path, rows):
    """Rows of train label no image of val, in whatever order they are (A4)."""
    found, data = labels(folder(tmp_path / "pics", *VAL), *rows)
    expected = {"val/0000.png": None, "val/0001.png": "dog", "val/0002.png": "dog", "val/0003.png": "cat"}
    assert found == expected
    assert any("train/0001.png" in line for line in data.source_info.row_notes)


def test_the_folder_that_is_read_decides_between_the_folders_of_the_rows(tmp_path):
    """The same table with the folder val itself, in which images have no folder (A4)."""
    found, data = labels(folder(tmp_path / "pics" / "val", "0001.png", "0002.png", "0003.png"), *BOTH)
    assert found == {"0001.png": "dog", "0002.png": "dog", "0003.png": "cat"}
    assert any("train/0001.png" in line for line in data.source_info.row_notes)


def test_a_half_copied_set_has_no_labels_of_other_images(tmp_path):
    """Where the right row is absent, an image has no label, and the rows of the other folder are named (A4)."""
    rows = ["train/0001.png,cat", "train/0002.png,cat", "val/0003.png,dog", "val/0000.png,cat"]
    found, data = labels(folder(tmp_path / "pics", *VAL), *rows)
    assert found["val/0001.png"] is None and found["val/0002.png"] is None and found["val/0003.png"] == "dog"
    assert any("2 rows" in line and "train/0001.png" in line for line in data.source_info.row_notes)


def test_rows_of_two_other_folders_are_refused(tmp_path):
    """If rows name two folders and the data are in neither, nobody knows which is meant (A4)."""
    root = folder(tmp_path / "images", "0001.png", "0002.png")
    with pytest.raises(uw.UserError, match="no row names any") as caught:
        labels(root, "train/0001.png,cat", "test/0002.png,dog", "val/0001.png,dog")
    assert "\n" not in str(caught.value)


def test_a_folder_that_was_moved_or_renamed(tmp_path):
    """Rows of one other folder above the data are used, with one line that names it (A4)."""
    root = folder(tmp_path / "new", "a/1.png", "b/1.png")
    found, data = labels(root, "/home/me/old/a/1.png,cat", "/home/me/old/b/1.png,dog")
    assert found == {"a/1.png": "cat", "b/1.png": "dog"}
    assert any("home/me/old" in line for line in data.source_info.row_warnings)
    found, data = labels(root, f"{root}/a/1.png,cat", "new/b/1.png,dog")
    assert found == {"a/1.png": "cat", "b/1.png": "dog"} and not data.source_info.row_warnings


def test_the_row_with_the_path_of_an_image_comes_first(tmp_path):
    """A row with the path is used before one with the file name, which is named as unused (A4)."""
    root = folder(tmp_path / "pics", "a/1.png", "b/2.png")
    found, data = labels(root, "1.png,cat", "a/1.png,dog", "2,cat")
    assert found == {"a/1.png": "dog", "b/2.png": "cat"}
    assert any("1.png" in line and "another row" in line for line in data.source_info.row_notes)


def test_rows_that_contradict_each_other_are_an_error(tmp_path):
    """Two rows with different values for one image are an error with both rows, also if they are written alike (A4)."""
    root = folder(tmp_path / "pics", "a/1.png", "b/2.png")
    with pytest.raises(uw.UserError) as caught:
        labels(root, "a/1.png,cat", "b/2.png,dog", "a/1.png,dog")
    message = str(caught.value)
    assert all(word in message for word in ("rows 2 and 4", "'a/1.png'", "'cat'", "'dog'")) and "\n" not in message
    found, data = labels(root, "a/1.png,cat,me", "b/2.png,dog,me", "a/1.png,cat,you", header="file,label,who")
    assert found == {"a/1.png": "cat", "b/2.png": "dog"}  # columns that are not used may differ
    assert any("several rows" in line for line in data.source_info.row_notes)


def test_a_name_of_several_images_labels_none(tmp_path):
    """A file name that is in two folders, or with two extensions, is not used (A4)."""
    root = folder(tmp_path / "pics", "a/1.png", "b/1.png", "b/2.png", "b/2.jpg", "b/3.png")
    found, data = labels(root, "1.png,cat", "b/2,cat", "3.png,dog", "b/1.png,dog", "b/2.png,dog", "a/3.png,cat")
    assert found == {"a/1.png": None, "b/1.png": "dog", "b/2.jpg": None, "b/2.png": "dog", "b/3.png": "dog"}
    notes = " ".join(data.source_info.row_notes)
    assert all(name in notes for name in ("1.png", "b/2", "a/3.png"))


def test_a_row_of_a_broken_image_does_not_label_another(tmp_path):
    """Of a damaged and a good image of one name, a row with the name only is not used (A4)."""
    root = folder(tmp_path / "pics", "a/1.png", "b/2.png", "a/1.txt")
    (root / "c").mkdir()
    (root / "c" / "1.png").write_bytes(b"damaged")
    found, _ = labels(root, "1.png,cat", "2.png,dog", "c/1.png,dog")
    assert found == {"a/1.png": None, "b/2.png": "dog"}
    (root / "c" / "1.png").unlink()
    found, _ = labels(root, "1,cat", "2.png,dog")
    assert found == {"a/1.png": "cat", "b/2.png": "dog"}  # 1.txt beside it is not called 1


def test_folders_inside_the_data_must_agree(tmp_path):
    """The end of a path is enough if no folder contradicts it (A4)."""
    root = folder(tmp_path / "pics", "x/a/1.png", "x/b/1.png", "y/c/2.png")
    found, _ = labels(root, "a/1.png,cat", "B/1.PNG,dog", "d/2.png,cat")
    assert found == {"x/a/1.png": "cat", "x/b/1.png": "dog", "y/c/2.png": None}


def test_pairs_and_groups_of_another_folder_are_refused(tmp_path):
    """Pairs and groups follow the same rule: a row of another folder is an error (A4)."""
    root = folder(tmp_path / "val", "0001.png", "0002.png", "0003.png", "0004.png")
    path = tmp_path / "rows.csv"
    path.write_text("val/0001.png,val/0002.png\ntrain/0003.png,val/0004.png\n")
    data = load_data(root, size=16)
    with pytest.raises(uw.UserError, match="train/0003.png"):
        Sampler(data, ("x", "pair"), f"pairs(file={str(path)!r})")
    path.write_text("val/0001.png,a\ntrain/0002.png,a\nval/0003.png,a\n")
    with pytest.raises(uw.UserError, match="train/0002.png"):
        load_data(root, size=16, groups=path)
    path.write_text("0001.png,0002.png\nval/0003.png,0004\n")
    assert "2 of them" in explain(f"pairs(file={str(path)!r})", data)
