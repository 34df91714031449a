"""A cache file that is damaged or of another shape is replaced."""

import numpy as np

from unweave.data.storage.cache import cached_array


def test_an_array_is_computed_once_and_again_if_damaged(tmp_path, monkeypatch):
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path))
    made = []

    def make():
        made.append(1)
        return np.arange(6).reshape(2, 3)

    for _ in range(2):
        assert cached_array("a", (2, 3), make).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert len(made) == 1
    (tmp_path / "a.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:50])
    assert cached_array("a", (2, 3), make).shape == (2, 3)
    np.savez(tmp_path / "a.npz", array=np.zeros((5, 5)))
    assert cached_array("a", (2, 3), make).shape == (2, 3)
    assert len(made) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


def test_the_cache_need_not_be_writable(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "file" / "below"))
    assert cached_array("a", (1,), lambda: np.zeros(1)).shape == (1,)
