"""Options of the wrong type are one clear line, in texts for `--data` and in Python."""

import numpy as np
import pytest
from PIL import Image

import unweave as uw
from unweave.data import Sampler, load_data


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder of images, a table and a file of arrays in the current folder."""
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pics").mkdir()
    for number in range(4):
        Image.new("RGB", (16, 16), (number * 9, 0, 0)).save(tmp_path / "pics" / f"{number}.png")
    rows = "".join(f"{number}.png,{'ab'[number % 2]}\n" for number in range(4))
    (tmp_path / "t.csv").write_text("file,shape\n" + rows)
    pixels = np.arange(4, dtype=np.uint8)[:, None, None] * np.ones((16, 16), np.uint8)
    np.savez(tmp_path / "a.npz", images=pixels * 9, labels=np.arange(4) % 2)
    return tmp_path


def assert_one_line(call, *words):
    with pytest.raises(uw.UserError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message and all(word in message for word in words), message


FOLDER = ["factors=5", "columns=5", "factor_types='x'", "factor_types={'shape': 5}", "factor_types={5: 'discrete'}"]
FOLDER += [
    "groups=5",
    "fit=5",
    "resident='x'",
    "resident=1",
    "columns=[[]]",
    "columns=[5]",
    "columns='shape'",
    "size='x'",
]
FOLDER += ["factors='a\\x00.csv'", "groups='a\\x00.csv'", "fingerprint=5", "channels=[]", "background=5"]
ARRAYS = ["layout=5", "factors=5", "factors=[1]", "columns=5", "factor_types=5", "resident='x'", "factors='a\\x00'"]
OTHERS = ["folder(path=5)", "mnist(part=True)", "mnist(part=[1])", "mnist(path=5)", "mnist(path='a\\x00')"]
OTHERS += ["arrays(path=[1])", "arrays(path='a\\x00.npz')", "sprites(size='x')", "split(data='digits', part=5)"]
OTHERS += ["subset(data='digits', indices='x')", "subset(data='digits', where=5)", "noisy(data='digits', sigma='x')"]
OTHERS += [f"folder(path='{'x' * 5000}')", f"arrays(path='{'x' * 5000}.npz')"]


@pytest.mark.parametrize("option", FOLDER)
@pytest.mark.parametrize("table", ["", ", factors='t.csv'"])
def test_options_of_a_folder(here, option, table):
    """Every option of `folder` of a wrong type is refused by its name (B-H6)."""
    name = option.partition("=")[0]
    given = f"path='pics', {option}" + table * (name != "factors") + ", size=16" * (name != "size")
    assert_one_line(lambda: load_data(f"folder({given})"), name)


@pytest.mark.parametrize("option", ARRAYS)
def test_options_of_a_file_of_arrays(here, option):
    """Every option of `arrays` of a wrong type is refused by its name (B-H6)."""
    assert_one_line(lambda: load_data(f"arrays(path='a.npz', {option})"), option.partition("=")[0])


@pytest.mark.parametrize("text", OTHERS, ids=lambda text: text[:40])
def test_options_of_other_data_sets(here, text):
    """Options of published data sets, views and paths that cannot exist (B-H6)."""
    assert_one_line(lambda: load_data(text))


@pytest.mark.parametrize(
    "text", ["pairs(file='a\\x00')", "pairs(file=5)", f"pairs(file='{'x' * 5000}')"], ids=lambda text: text[:20]
)
def test_files_of_pairs(here, text):
    """The file of pairs in a text of supervision (B-H6)."""
    data = load_data("pics", size=16)
    assert_one_line(lambda: Sampler(data, ("x", "pair"), text), "file")


def test_options_as_keywords(here):
    """Options that are given as keywords with a path or an array (B-H6)."""
    assert_one_line(lambda: load_data("pics", columns=5), "columns")
    assert_one_line(lambda: load_data("a.npz", resident="x"), "resident")
    assert_one_line(lambda: load_data(np.zeros((4, 16, 16), np.uint8), resident="x"), "resident")
    assert_one_line(lambda: load_data([(np.zeros((16, 16), np.uint8), 1)] * 4, names=5), "names")
    assert load_data("a.npz", size=np.int64(16), resident=True).size == 4
