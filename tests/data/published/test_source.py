import os

import pytest
import torch
from test_coil20 import things, write

from unweave.data import load_data
from unweave.data.storage.download import RemoteFile
from unweave.data.storage.source import find
from unweave.errors import UserError

ONE = [RemoteFile("a.zip", ("http://nowhere.invalid/a.zip",))]
TWO = [RemoteFile("a.mat.gz", ("",)), RemoteFile("b.mat.gz", ("",))]


def test_files_packed_or_not_and_in_the_usual_places(tmp_path):
    (tmp_path / "Anno").mkdir()
    (tmp_path / "Anno" / "a.mat").write_text("")
    (tmp_path / "b.mat.gz").write_text("")
    assert [p.name for p in find("toys", TWO, tmp_path)] == ["a.mat", "b.mat.gz"]
    (tmp_path / "a").mkdir()
    assert find("toys", ONE, str(tmp_path)) == [tmp_path / "a"]
    assert find("toys", ONE, tmp_path / "b.mat.gz") == [tmp_path / "b.mat.gz"]  # any name will do for a single file


def test_a_tree_may_be_the_folder_itself(tmp_path):
    assert find("toys", ONE, tmp_path, tree=True) == [tmp_path]
    (tmp_path / "a.zip").write_text("")
    assert find("toys", ONE, tmp_path, tree=True) == [tmp_path / "a.zip"]


@pytest.mark.parametrize("path, said", [(3, "path=3 is not accepted"), ("", "holds no"), ("nowhere", "does not exist")])
def test_refused(tmp_path, monkeypatch, path, said):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=f"data 'toys': .*{said}"):
        find("toys", TWO, path)


def test_a_changed_file_is_read_again(tmp_path, own_cache):
    made = things(1, 3)
    write(tmp_path / "c.zip", made)
    first = load_data("coil20", path=tmp_path / "c.zip", size=128)
    made[1, 0] = 255 - made[1, 0]
    write(tmp_path / "c.zip", made)
    os.utime(tmp_path / "c.zip", (1, 1))
    second = load_data("coil20", path=tmp_path / "c.zip", size=128)
    assert torch.equal(first.pixels[1:], second.pixels[1:]) and not torch.equal(first.pixels[0], second.pixels[0])


def test_a_relative_path_is_remembered_in_full(tmp_path, own_cache, monkeypatch):
    write(tmp_path / "c.zip", things(1, 3))
    monkeypatch.chdir(tmp_path)
    data = load_data("coil20(path='c.zip', size=32)")
    assert data.options == {"path": str(tmp_path / "c.zip"), "size": 32}
    monkeypatch.chdir("/")
    assert torch.equal(load_data(data.name, **data.options).pixels, data.pixels)


def test_downloads_in_the_cache_are_found_and_may_go_once_converted(tmp_path, own_cache):
    """Nothing is asked of the network here: `own_cache` forbids it."""
    folder = own_cache / "downloads" / "coil20"
    folder.mkdir(parents=True)
    write(folder / "coil-20-proc.zip", things(1, 3))
    data = load_data("coil20")
    assert data.size == 3 and data.options == {"size": 64}
    (folder / "coil-20-proc.zip").unlink()
    assert torch.equal(load_data("coil20").pixels, data.pixels)
