"""Shared by the tests of the data sets: the reference pictures, and sets made once with a cache of their own."""

from pathlib import Path

import pytest

from unweave.data import Rooms, Sprites

REFERENCES = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture(scope="session")
def reference():
    """The path of a reference file, or a skip where it is not at hand."""

    def find(name: str) -> Path:
        path = REFERENCES / name
        if not path.exists():
            pytest.skip(f"reference pictures {name} are not beside the repository")
        return path

    return find


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
