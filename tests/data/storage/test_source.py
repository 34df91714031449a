import os

import pytest
import torch
from published_files import coil20_images, write_coil20
from raises import raises

from unweave.data import load_data
from unweave.data.storage.download import RemoteFile
from unweave.data.storage.source import find_files

ONE = [RemoteFile("a.zip", ("http://nowhere.invalid/a.zip",))]
TWO = [RemoteFile("a.mat.gz", ("",)), RemoteFile("b.mat.gz", ("",))]


def test_files_may_be_zipped_and_in_subfolders(tmp_path):
    (tmp_path / "Anno").mkdir()
    (tmp_path / "Anno" / "a.mat").write_text("")
    (tmp_path / "b.mat.gz").write_text("")
    assert [p.name for p in find_files("toys", TWO, tmp_path)] == ["a.mat", "b.mat.gz"]
    (tmp_path / "a").mkdir()
    assert find_files("toys", ONE, str(tmp_path)) == [tmp_path / "a"]
    assert find_files("toys", ONE, tmp_path / "b.mat.gz") == [tmp_path / "b.mat.gz"]  # a single file may have any name


def test_an_archive_may_be_a_folder(tmp_path):
    assert find_files("toys", ONE, tmp_path, tree=True) == [tmp_path]
    (tmp_path / "a.zip").write_text("")
    assert find_files("toys", ONE, tmp_path, tree=True) == [tmp_path / "a.zip"]


@pytest.mark.parametrize("path", [3, "", "nowhere"])
def test_invalid_paths_are_refused(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with raises("path", value=path):
        find_files("toys", TWO, path)


def test_a_changed_file_is_read_again(tmp_path, own_cache):
    images = write_coil20(tmp_path, coil20_images(1, 3))
    first = load_data("coil20", path=tmp_path, size=128)
    images[1, 0] = 255 - images[1, 0]
    write_coil20(tmp_path, images)
    os.utime(tmp_path / "coil-20-proc.zip", (1, 1))
    second = load_data("coil20", path=tmp_path, size=128)
    assert torch.equal(first.pixels[1:], second.pixels[1:]) and not torch.equal(first.pixels[0], second.pixels[0])


def test_options_contain_the_absolute_path(tmp_path, own_cache, monkeypatch):
    write_coil20(tmp_path, coil20_images(1, 3))
    monkeypatch.chdir(tmp_path)
    data = load_data("coil20(path='coil-20-proc.zip', size=32)")
    assert data.options == {"path": str(tmp_path / "coil-20-proc.zip"), "size": 32}
    monkeypatch.chdir("/")
    assert torch.equal(load_data(data.name, **data.options).pixels, data.pixels)


def test_downloads_can_be_deleted_after_conversion(tmp_path, own_cache):
    folder = own_cache / "downloads" / "coil20"
    folder.mkdir(parents=True)
    write_coil20(folder, coil20_images(1, 3))
    data = load_data("coil20")
    assert data.size == 3 and data.options == {"size": 64}
    (folder / "coil-20-proc.zip").unlink()
    assert torch.equal(load_data("coil20").pixels, data.pixels)
