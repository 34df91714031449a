import errno

import numpy as np
import pytest
import torch
from raises import raises

from unweave.data.storage import stored_images
from unweave.data.storage.array_store import Factors, StoredArrays, grid_values, load_or_build, write_rows
from unweave.data.storage.stored_images import StoredImages
from unweave.errors import UserError

FACTORS = Factors(("a", "b"), ((0.0, 0.5), ("x", "y", "z")))


def maker(calls, rows=6):
    def make(folder):
        calls.append(folder)
        np.save(folder / "pixels.npy", np.arange(rows * 4, dtype=np.uint8).reshape(rows, 2, 2))
        return FACTORS

    return make


def test_arrays_are_built_once_and_again_if_damaged(own_cache):
    calls = []
    for _ in range(2):
        made = load_or_build("toys", maker(calls))
        assert made.factors == FACTORS and made.arrays["pixels"].shape == (6, 2, 2)
    assert len(calls) == 1 and [p.name for p in (own_cache / "files").iterdir()] == ["toys"]
    for name in ("pixels.npy", "factors.json"):
        path = own_cache / "files" / "toys" / name
        path.write_bytes(path.read_bytes()[:-3])
        assert load_or_build("toys", maker(calls)).arrays["pixels"][5, 1, 1] == 23
    assert len(calls) == 3


def test_incomplete_arrays_are_deleted(own_cache):
    def make(folder):
        np.save(folder / "pixels.npy", np.zeros(3))
        raise UserError("no")

    with pytest.raises(UserError, match="no"):
        load_or_build("toys", make)
    assert not list((own_cache / "files").iterdir())


def test_the_cache_need_not_be_writable(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "file" / "below"))
    assert load_or_build("toys", maker([])).arrays["pixels"][5, 1, 1] == 23


def test_a_full_disk_is_a_user_error(own_cache):
    def make(folder):
        raise OSError(errno.ENOSPC, "No space left on device")

    with raises("UNWEAVE_CACHE") as error:
        load_or_build("toys", make)
    assert "No space left on device" in str(error.value)


def test_rows_are_written_in_chunks(tmp_path):
    parts = [np.arange(12, dtype=np.uint8).reshape(2, 2, 3), np.zeros((1, 2, 3), np.uint8)]
    write_rows(tmp_path / "a.npy", 3, iter(parts), "toys")
    assert np.array_equal(np.load(tmp_path / "a.npy"), np.concatenate(parts))
    with pytest.raises(ValueError, match="2 .*3"):
        write_rows(tmp_path / "a.npy", 3, iter(parts[:1]), "toys")
    with pytest.raises(ValueError):
        write_rows(tmp_path / "a.npy", 0, iter([]), "toys")


def test_grids():
    table = np.array([[0, 1], [0, 3], [0, 7], [5, 1], [5, 3], [5, 7]])
    assert grid_values(table) == ((0, 5), (1, 3, 7))
    with pytest.raises(ValueError):
        grid_values(table[[3, 1, 5, 0, 2, 4]])
    for broken in (table[:-1], np.concatenate([table, table[:1]])):
        with pytest.raises(ValueError):
            grid_values(broken)


def test_images_larger_than_the_device_stay_on_the_host(monkeypatch):
    arrays = {"pixels": np.zeros((6, 2, 2), np.uint8)}
    assert "pixels" in dict(StoredImages("toys", StoredArrays(arrays, FACTORS), {}).named_buffers())
    monkeypatch.setattr(stored_images, "memory_limit", lambda: 10)
    data = StoredImages("toys", StoredArrays(arrays, FACTORS), {})
    assert not data.resident and not dict(data.named_buffers())
    assert data.images(torch.tensor([1, 2])).shape == (2, 1, 2, 2)
