from unweave.data import DATASETS, catalogue
from unweave.data.published import FILES
from unweave.data.registry import SOURCES


def test_published_data_sets_have_a_source():
    entries = catalogue()
    assert list(entries) == list(DATASETS) and set(SOURCES) <= set(DATASETS)
    for name in FILES:
        entry = entries[name]
        assert all(entry) and "\n" not in entry.about and entry.homepage.startswith("http"), name


def test_functions_have_the_names_of_their_data_sets():
    assert all(loader.__name__ == name for name, loader in FILES.items())
