from unweave.data import DATASETS, catalogue
from unweave.data.published import FILES
from unweave.data.registry import SOURCES


def test_every_file_set_says_where_it_comes_from():
    told = catalogue()
    assert list(told) == list(DATASETS) and set(SOURCES) <= set(DATASETS)
    for name in FILES:
        entry = told[name]
        assert all(entry) and "\n" not in entry.about and entry.home.startswith("http"), name


def test_names_derive():
    assert all(loader.__name__ == name for name, loader in FILES.items())
