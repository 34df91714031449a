"""Messages about labels of a user's own images that a method cannot learn from."""

import pytest
from mentions import mentions
from PIL import Image, ImageOps

import unweave as uw
from unweave.cli.app import app, run_command
from unweave.errors import UserNotice


@pytest.fixture
def said(tmp_path, monkeypatch, capsys):
    """The one line a command ends with on a folder of twelve small pictures and a table of these columns."""
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for number in range(12):
        ImageOps.expand(Image.new("L", (6, 6), 20 * number), 1).save(tmp_path / "in" / f"{number:02d}.png")

    def call(head, row, method="m2", supervision="labels", code=2, **more):
        rows = [f"{number:02d}.png,{row(number)}" for number in range(12)]
        (tmp_path / "labels.csv").write_text("\n".join([f"file,{head}", *rows]))
        words = f"train {method} --data in --factors labels.csv --size 8 --steps 1 --batch 4 --device cpu --out run"
        words = [*words.split(), "--supervision", supervision, *(w for n, v in more.items() for w in (f"--{n}", v))]
        assert run_command(lambda: app(words, standalone_mode=False)) == code
        assert (tmp_path / "run").exists() == (code == 0)
        return capsys.readouterr().err

    return call


@pytest.mark.parametrize("method", ["m2", "m1", "m1_m2", "aae_semi"])
def test_two_columns_are_named_and_one_is_proposed(said, method):
    line = said("animal,colour", lambda n: f"{['cat', 'dog'][n % 2]},{['red', 'blue'][n // 6]}", method)
    assert "supervision" in line and "factors=['animal']" in line and "animal, colour" in line


@pytest.mark.parametrize(
    "cell, fault",
    [("cat", "always 'cat'"), ("", "no values")],
)
def test_a_column_that_is_not_a_factor_is_named_with_the_reason(said, cell, fault):
    line = said("kind", lambda n: cell)
    assert "'kind'" in line and fault in line and "--factors" not in line
    line = said("kind,size", lambda n: f"{cell},{n % 3}", supervision="labels(factors=['kind'])")
    assert mentions(line, "supervision=\"labels(factors=['kind'])\"", fault, "size")


def test_unused_labels_are_reported_before_the_size_of_the_network(said):
    line = said("kind", lambda n: n % 2, "beta_vae")
    assert mentions(line, "BetaVAE", "supervision", "none", "semi_supervised=xent")


def test_names_that_differ_in_capitals_are_reported_and_trained_on(said):
    err = said("kind", lambda n: ["one", "One", "two"][n % 3], code=0)
    (line,) = [line for line in err.splitlines() if "'One'" in line]
    assert mentions(line, "'kind'", "'One'", "'one'", "2 classes")


def test_in_python_the_same_is_a_warning(said, tmp_path):
    """The warning is at the line of the caller, not inside the package."""
    (line,) = [line for line in said("weight", lambda n: n / 7, code=0).splitlines() if "'weight'" in line]
    data = uw.load_data("in", factors="labels.csv", size=8)
    with pytest.warns(UserNotice) as found:
        uw.train("m2", data, supervision="labels", steps=1, batch=4, device="cpu", out="python_run")
    assert [str(warning.message) for warning in found] == [line] and "continuous" in line
    assert found[0].filename == __file__


def test_unused_rows_are_reported_in_python_too(said, tmp_path):
    said("kind", lambda n: n % 2, code=0)
    table = (tmp_path / "labels.csv").read_text()
    (tmp_path / "labels.csv").write_text(table + "\n00.png,0\nnobody.png,0")
    data = uw.load_data("in", factors="labels.csv", size=8)
    with pytest.warns(UserNotice) as found:
        uw.train("m2", data, supervision="labels", steps=1, batch=4, device="cpu", out="python_run")
    lines = [str(warning.message) for warning in found]
    assert len(lines) == 2 and "nobody.png" in lines[0] and "00.png" in lines[1]
