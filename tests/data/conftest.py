"""Fixtures of the tests of data sets: caches, data sets that are rendered once, and a check of errors."""

import os

import pytest
from raises import raises

from unweave.data import Rooms, Sprites, load_data


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("UNWEAVE_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def sprites(cache):
    return Sprites()


@pytest.fixture(scope="session")
def rooms(cache):
    return Rooms()


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """An empty cache, without access to the network."""
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    target = "unweave.data.storage.download.urlopen"
    monkeypatch.setattr(target, lambda *args, **options: pytest.fail("used the network"))
    return tmp_path / "cache"


def stored_files():
    files = os.path.join(os.environ["UNWEAVE_CACHE"], "files")
    return sorted(os.listdir(files)) if os.path.exists(files) else []


@pytest.fixture
def refused():
    """Check that loading raises an error about `path` that contains a fact, and leaves nothing in the cache."""

    def check(fact, name, **options):
        before = stored_files()
        with raises("path") as error:
            load_data(name, **options)
        assert fact in str(error.value) and name in str(error.value)
        assert stored_files() == before

    return check
