import numpy as np
import pandas as pd
import pytest
import torch
from mentions import mentions
from PIL import Image, ImageOps
from raises import raises
from typer.testing import CliRunner

import unweave as uw
from unweave.cli.app import app, run_command
from unweave.data.user.arrays import Arrays
from unweave.data.user.factor_table import factor_table
from unweave.errors import UserNotice
from unweave.evaluation.classification import accuracy_lines, class_error, label_mappings, predict

COLOURS = ("red", "green", "blue")


def plain_colours(count=60, *, known=None):
    """Pictures of one colour each with a black corner, different in brightness; only some have their name."""
    draw = np.random.default_rng(0)
    classes = np.arange(count) % 3
    images = np.zeros((count, 3, 8, 8), np.float32)
    images[np.arange(count), classes] = draw.uniform(0.6, 1.0, (count, 1, 1))
    images[..., 0, 0] = 0.0
    names = [COLOURS[c] if known is None or row in known else None for row, c in enumerate(classes)]
    table = factor_table({"colour": pd.Series(names, dtype=object)})[0]
    return Arrays(images, table)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A classifier of three colours, trained with six labels."""
    out = tmp_path_factory.mktemp("predict") / "run"
    options = dict(steps=80, batch=16, lr=3e-3, latents=2, decay=0.0, device="cpu", out=out)
    return uw.train("m2", plain_colours(), supervision="labels(n=6, balanced=True)", **options)


def test_columns_of_the_run_s_own_data(run):
    frame = predict(run)
    assert list(frame) == ["row", "colour", "colour_confidence", "colour_true", "colour_labelled"]
    assert frame["row"].tolist() == list(range(60)) and set(frame["colour"]) == set(COLOURS)
    assert frame["colour_true"].tolist() == [COLOURS[row % 3] for row in range(60)]
    assert (frame["colour"] == frame["colour_true"]).all()
    (chance,) = run.representation.classify(run.data.images(torch.arange(60)))
    np.testing.assert_allclose(frame["colour_confidence"], chance.detach().numpy().max(1), rtol=1e-5)
    used = run.supervision.labelled_set(run.data, seed=0).table[0]
    assert frame.index[frame["colour_labelled"]].tolist() == sorted(used.tolist())
    assert class_error(run) == {"colour": 0.0}
    new, labelled = accuracy_lines(frame)
    assert mentions(new, "colour", "100.00 %", "54", "not labelled")
    assert mentions(labelled, "colour", "100.00 %", "6", "labelled") and "not labelled" not in labelled


def test_wrong_predictions_are_counted(run):
    frame = predict(run)
    unlabelled = frame.index[~frame["colour_labelled"]]
    frame.loc[unlabelled[:27], "colour"] = "pink"
    assert mentions(accuracy_lines(frame)[0], "colour", "50.00 %", "54")


def test_other_data_with_values_in_another_order_and_gaps(run):
    """Classes are compared by name: here only some green and blue are known.

    The images are the first half of those of the training, so some of them were labelled.
    """
    known = [row for row in range(30) if row % 3]
    frame = predict(run, plain_colours(30, known=known))
    assert list(frame) == ["row", "colour", "colour_confidence", "colour_true", "colour_labelled"]
    assert frame["colour_true"].notna().tolist() == [row in known for row in range(30)]
    assert frame["colour_labelled"].tolist() == predict(run)["colour_labelled"][:30].tolist()
    with pytest.warns(UserNotice, match="labelled in training"):
        assert class_error(run, plain_colours(30, known=known)) == {"colour": 0.0}
    with raises("data"):
        class_error(run, Arrays(np.zeros((3, 3, 8, 8), np.float32)))


def test_image_files_and_folders(run, tmp_path):
    (tmp_path / "in").mkdir()
    for name, colour in (("a", (200, 0, 0)), ("b", (0, 0, 180))):
        Image.new("RGB", (12, 12), colour).save(tmp_path / "in" / f"{name}.png")
    for what in (tmp_path / "in", [tmp_path / "in" / "a.png", str(tmp_path / "in" / "b.png")]):
        frame = predict(run, what)
        assert list(frame) == ["file", "colour", "colour_confidence", "colour_labelled"]
        assert not frame["colour_labelled"].any()
        assert [name[-5:] for name in frame["file"]] == ["a.png", "b.png"]
        assert frame["colour"].tolist() == ["red", "blue"]
    assert accuracy_lines(frame) == []


def test_renamed_and_coarser_classes_keep_their_names(tmp_path):
    """rooms has ten hues; in five bins, permuted at random, each class stands for two hues."""
    data = uw.load_data("rooms(size=8)")
    text = "labels(n=50, factors=['floor_hue'], bins=5, permute=True, noise=0.5)"
    trained = uw.train("m2", data, supervision=text, steps=1, batch=4, net="small", out=tmp_path / "run", device="cpu")
    (mapping,) = label_mappings(trained)
    values = data.factor_values[data.factor_names.index("floor_hue")]
    assert mapping.size == 5 and list(mapping.classes) == list(values)
    numbers = list(mapping.classes.values())
    assert numbers[::2] == numbers[1::2] and sorted(numbers[::2]) == [0, 1, 2, 3, 4]
    assert numbers != sorted(numbers)
    first = mapping.classes[values[0]]
    assert mapping.names()[first] == f"{values[0]:g} or {values[1]:.6g}"


def test_invalid_runs_and_data(run, tmp_path):
    vae = uw.train("vae", run.data, steps=1, batch=4, net="small", out=tmp_path / "vae", device="cpu")
    with raises("method", value="vae"):
        predict(vae)
    with raises("data", value=(1, 8, 8)):
        predict(run, "digits")
    with raises("images", value="nowhere.png"):
        predict(run, "nowhere.png")


def test_command(tmp_path):
    """On a built-in data set, which the run folder is enough to load."""
    options = dict(steps=2, batch=4, latents=2, device="cpu", out=tmp_path / "run")
    uw.train("m2", "digits", supervision="labels(n=100)", **options)
    words = ["predict", str(tmp_path / "run"), "-o", str(tmp_path / "deep" / "labels.csv")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert mentions(result.output, "1697", "not labelled", "100", "labelled")
    table = pd.read_csv(tmp_path / "deep" / "labels.csv", dtype=str)
    assert list(table) == ["row", "digit", "digit_confidence", "digit_true", "digit_labelled"]
    assert set(table["digit"]) <= set("0123456789") and len(table) == 1797
    again = CliRunner().invoke(app, [*words[:2], "digits", *words[2:]])  # the same data by name
    assert again.exit_code == 0 and mentions(again.output, "1697", "100")


def test_the_label_table_of_a_run_is_not_overwritten(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "in").mkdir()
    for number in range(8):
        ImageOps.expand(Image.new("L", (6, 6), 30 * number), 1).save(tmp_path / "in" / f"{number}.png")
    rows = ["file,shade", "0.png,dark", "1.png,dark", "7.png,light"]
    (tmp_path / "labels.csv").write_text("\n".join(rows))
    data = uw.load_data(str(tmp_path / "in"), factors=tmp_path / "labels.csv", size=8)
    uw.train("m2", data, supervision="labels", steps=1, batch=4, latents=2, device="cpu", out=tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    assert run_command(lambda: app(["predict", "run", "-o", "labels.csv"], standalone_mode=False)) == 2
    assert "got 'labels.csv'" in " ".join(capsys.readouterr().err.split())
    assert (tmp_path / "labels.csv").read_text().splitlines() == rows
    assert run_command(lambda: app(["predict", "run"], standalone_mode=False)) == 0
    table = pd.read_csv("predicted.csv", dtype=str)
    assert table["file"].tolist() == [f"{number}.png" for number in range(8)]
    assert table["shade_true"].dropna().tolist() == ["dark", "dark", "light"]
    assert table["shade_labelled"].tolist() == ["True", "True", *["False"] * 5, "True"]


def test_command_on_a_run_without_classes(tmp_path, capsys):
    uw.train("vae", "digits", steps=1, batch=4, net="small", out=tmp_path / "run", device="cpu")
    words = ["predict", str(tmp_path / "run"), "-o", str(tmp_path / "labels.csv")]
    assert run_command(lambda: app(words, standalone_mode=False)) == 2
    assert not (tmp_path / "labels.csv").exists() and "Traceback" not in capsys.readouterr().err


@pytest.fixture
def continuous(tmp_path, monkeypatch):
    """A folder whose table has a number with fractions for some of the pictures."""
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    numbers = np.random.default_rng(0).random(70)
    for number in range(80):
        ImageOps.expand(Image.new("L", (6, 6), 3 * number), 1).save(tmp_path / "in" / f"{number:02d}.png")
    rows = [f"{number:02d}.png,{value!r}" for number, value in enumerate(numbers.tolist())]
    (tmp_path / "labels.csv").write_text("\n".join(["file,kind", *rows]))
    return numbers


@pytest.mark.parametrize("bins, classes", [("", 20), ("bins=4", 4)])
def test_a_continuous_column_is_predicted_as_ranges(continuous, capsys, bins, classes):
    words = "train m2 --data in --factors labels.csv --size 8 --steps 2 --batch 4 --set latents=2 --device cpu --quiet"
    words = [*words.split(), "--supervision", f"labels(n=60, {bins})", "--out", "run"]
    assert run_command(lambda: app(words, standalone_mode=False)) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "continuous" in line]
    assert len(said) == 1 and f" {classes} " in said[0] and "'kind'" in said[0] and "bins" in said[0]
    assert run_command(lambda: app(["predict", "run"], standalone_mode=False)) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert " 60 " in out and " 10 " in out
    table = pd.read_csv("predicted.csv", dtype=str)
    table["kind_true"] = table["kind_true"].map(float)
    assert list(table) == ["file", "kind", "kind_confidence", "kind_true", "kind_right", "kind_labelled"]
    assert (
        table["kind_true"].tolist()[:70] == continuous.tolist()
        and table["kind_true"].isna().tolist()[70:] == [True] * 10
    )
    ends = table["kind"].str.split(" to ", expand=True).astype(float)
    inside = (ends[0] <= table["kind_true"]) & (table["kind_true"] <= ends[1])
    assert ((table["kind_right"] == "True") == inside).all()
    assert (predict("run", "in")["kind"] == table["kind"]).all()  # by the run's own note of its classes


def test_other_data_of_a_continuous_factor_are_compared_by_number(continuous):
    data = uw.load_data("in", factors="labels.csv", size=8)
    with pytest.warns(UserNotice, match="'kind'.* 20 "):
        uw.train("m2", data, supervision="labels", steps=1, batch=4, latents=2, device="cpu", out="run")
    pixels = np.zeros((3, 1, 8, 8), np.float32)
    frame = predict("run", Arrays(pixels, factor_table({"kind": pd.Series([0.5, 2.0, None])})[0]))
    assert frame["kind_right"].notna().tolist() == [True, False, False]  # 2 is in no class
    assert frame["kind_true"].tolist()[:1] == [0.5] and frame["kind_true"].isna().tolist() == [False, False, True]
