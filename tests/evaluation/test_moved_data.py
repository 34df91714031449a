"""Runs whose training data were moved or deleted."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image, ImageOps
from raises import raises
from tiny_mnist import write_mnist

import unweave as uw
from unweave.cli.app import app, run_command
from unweave.errors import UserError, UserNotice
from unweave.evaluation.classification import label_mappings
from unweave.model import load

SHADES = ("dark", "light")


def call(*words):
    return run_command(lambda: app([str(word) for word in words], standalone_mode=False))


def said(capsys):
    return " ".join(capsys.readouterr().err.split())


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A run on a folder of wide images, whose preprocessing (pad, black) affects the input of the model."""
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    for number in range(12):
        plain = Image.new("RGB", (22, 10), (20 * number, 200, 30))
        ImageOps.expand(plain, 1).save(tmp_path / "photos" / f"{number:02d}.png")
    rows = ["file,shade", *(f"{number:02d}.png,{SHADES[number // 6]}" for number in (0, 1, 2, 9, 10, 11))]
    (tmp_path / "labels.csv").write_text("\n".join(rows))
    data = "folder(path='photos', factors='labels.csv', size=8, fit='pad', background='black')"
    uw.train("m2", data, supervision="labels(n=4)", steps=2, batch=4, latents=2, device="cpu", out="run")
    return tmp_path


def test_model_json_replaces_the_data(home):
    note = json.loads((home / "run" / "model.json").read_text())
    assert note["data"]["shape"] == [3, 8, 8] and note["data"]["labels"] == [2] and note["data"]["labelled"] == 4
    assert note["pictures"] == {"size": 8, "fit": "pad", "channels": "rgb", "background": "black", "white": 65535}
    assert note["labels"][0]["factor"] == "shade" and note["labels"][0]["values"] == list(SHADES)
    whole, alone = load(home / "run"), load(home / "run", with_data=False)
    assert label_mappings(whole) == label_mappings(alone)
    for name, weight in whole.method.state_dict().items():
        assert torch.equal(weight, alone.method.state_dict()[name])


def test_new_pictures_without_the_training_data(home):
    before = uw.predict("run", "photos")
    shutil.move("photos", "elsewhere")
    (home / "labels.csv").unlink()
    after = uw.predict("run", "elsewhere")
    assert list(after) == ["file", "shade", "shade_confidence", "shade_labelled"] and len(after) == 12
    assert after["shade_labelled"].sum() == 4
    pd.testing.assert_frame_equal(before.drop(columns="file"), after.drop(columns="file"))
    assert call("predict", "run", "elsewhere/00.png", "-o", "one.csv") == 0
    assert pd.read_csv("one.csv")["file"].tolist() == ["elsewhere/00.png"]
    assert call("encode", "run", "elsewhere", "-o", "codes.npz") == 0 and np.load("codes.npz")["codes"].shape[0] == 12
    with pytest.raises(UserError):
        load("run", with_data=False).data.images(torch.arange(2))
    with raises("data"):
        uw.predict(load("run", with_data=False))


def test_other_data_with_known_classes_without_the_training_data(home):
    shutil.copytree("photos", "others")
    (home / "others" / "00.png").unlink()
    other = uw.load_data("others", factors="labels.csv", size=8, fit="pad", background="black")
    shutil.move("photos", "elsewhere")
    frame = uw.predict("run", other)
    assert frame["shade_true"].notna().sum() == 5 and 3 <= frame["shade_labelled"].sum() <= 4
    with pytest.warns(UserNotice, match="labelled in training"):
        assert 0 <= uw.class_error("run", other)["shade"] <= 1


def test_an_error_names_missing_data_and_the_option_for_their_new_place(home, capsys):
    frame = uw.predict("run")
    shutil.move("photos", "elsewhere")
    for command in ("predict", "report", "evaluate"):
        assert call(command, "run") == 2
        line = said(capsys)
        assert f"'{home / 'photos'}'" in line and "--data" in line
    assert not (home / "predicted.csv").exists() and not (home / "report.html").exists()
    assert call("predict", "run", "--data", "elsewhere") == 0
    again = pd.read_csv("predicted.csv")
    assert again["shade_labelled"].sum() == 4 and again["shade"].tolist() == frame["shade"].tolist()
    shutil.move("labels.csv", "table.csv")
    assert call("evaluate", "run", "--data", "elsewhere") == 2
    line = said(capsys)
    assert f"'{home / 'labels.csv'}'" in line and "--factors" in line
    assert call("evaluate", "run", "--data", "elsewhere", "--factors", "table.csv") == 0
    capsys.readouterr()
    assert call("predict", "run", "--data", "elsewhere", "--factors", "table.csv", "-o", "table.csv") == 2
    assert "table.csv" in said(capsys)


def test_an_interrupted_run_is_resumed_with_moved_data(home, capsys):
    class Stop(Exception):
        pass

    def stop(record):
        raise Stop

    same = dict(supervision="labels(n=4)", batch=4, latents=2, device="cpu")
    data = "folder(path='photos', factors='labels.csv', size=8, fit='pad', background='black')"
    with pytest.raises(Stop):
        uw.train("m2", data, steps=4, log_every=2, checkpoint_every=2, observe=stop, out="cut", **same)
    whole = uw.train("m2", data, steps=4, log_every=2, checkpoint_every=2, out="whole", **same)
    shutil.move("photos", "elsewhere")
    assert call("train", "--resume", "cut") == 2
    assert "--data" in said(capsys)
    assert call("train", "--resume", "cut", "--data", "elsewhere") == 0
    for name, weight in load("cut", with_data=False).method.state_dict().items():
        assert torch.equal(weight, whole.method.state_dict()[name])
    assert call("compare", "cut", "whole", "--data", "elsewhere", "-o", "beside") == 0
    assert len(pd.read_csv("beside/scores.csv")) == 2


def test_files_of_published_data_sets_may_move(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    write_mnist(tmp_path / "here", train=40)
    uw.train("vae", "mnist(path='here', size=8)", steps=1, batch=4, net="small", latents=2, device="cpu", out="run")
    shutil.move("here", "there")
    assert call("evaluate", "run", "--metrics", "active_dimensions") == 2
    assert "--data" in said(capsys)
    assert call("evaluate", "run", "--metrics", "active_dimensions", "--data", "there") == 0
    assert call("evaluate", "run", "--factors", "labels.csv") == 2
    line = said(capsys)
    assert "factors" in line and "mnist" in line


def test_invalid_options(home, capsys):
    assert call("predict", "run", "photos", "--data", "photos") == 2
    assert "photos" in said(capsys)
    uw.train("vae", "digits", steps=1, batch=4, net="small", out="digits_run", device="cpu")
    assert call("report", "digits_run", "--data", "photos") == 2
    line = said(capsys)
    assert "photos" in line and "digits" in line


def test_data_at_another_place_that_differ_are_named(home, capsys):
    (home / "photos" / "00.png").unlink()
    assert call("evaluate", "run") == 2
    line = said(capsys)
    assert "12" in line and "11" in line and "--data" in line
    assert not (home / "run" / "scores.json").exists()
    assert call("evaluate", "run", "--data", "photos") == 0
    line = said(capsys)
    assert "12" in line and "11" in line
    assert json.loads((home / "run" / "scores.json").read_text())["data_digest"].startswith("11-")


def test_a_run_without_model_json_reads_its_data(home):
    (home / "run" / "model.json").unlink()
    assert len(uw.predict("run", "photos")) == 12
    shutil.move("photos", "elsewhere")
    with pytest.raises(UserError):
        uw.predict("run", "elsewhere")


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"data": {}}', '{"data": {"shape": 3}, "pictures": null, "labels": []}']
)
def test_a_damaged_model_json(home, content):
    (home / "run" / "model.json").write_text(content)
    with pytest.raises(UserError, match="model.json"):
        uw.predict("run", "photos")
    assert len(uw.predict("run")) == 12  # not needed if the data are read


def test_a_subset_of_a_folder_has_its_preprocessing(home):
    part = uw.load_data('subset(data=\'folder(path="photos", size=8, fit="pad", background="black")\', first=8)')
    uw.train("vae", part, steps=1, batch=4, net="small", latents=2, device="cpu", out="part")
    assert json.loads((home / "part" / "model.json").read_text())["pictures"]["fit"] == "pad"


def test_fleets_write_model_json(home):
    data = uw.load_data("photos", factors="labels.csv", size=8)
    same = {
        "method": "m2",
        "data": data,
        "supervision": "labels",
        "steps": 1,
        "batch": 4,
        "latents": 2,
        "device": "cpu",
    }
    for trained in uw.fit([{**same, "seed": seed} for seed in (0, 1)], out=home / "fleet"):
        assert json.loads((trained.folder.path / "model.json").read_text())["labels"][0]["values"] == list(SHADES)


def test_unfinished_runs(home, capsys):
    class Stop(Exception):
        pass

    def stop(record):
        if record.step == 4:
            raise Stop

    data = "folder(path='photos', factors='labels.csv', size=8, fit='pad', background='black')"
    same = dict(supervision="labels(n=4)", batch=4, latents=2, device="cpu", log_every=1)
    for method, every in (("m2", 3), ("m1", 2)):
        with pytest.raises(Stop):
            uw.train(method, data, steps=6, checkpoint_every=every, observe=stop, out=method, **same)
    assert call("predict", "m2") == 0
    assert "step 3 of 6" in said(capsys)
    assert call("report", "m2") == 0
    assert "step 3" in (home / "report.html").read_text()
    assert call("predict", "m1") == 2
    assert "unweave train --resume m1" in said(capsys)


def test_a_factor_named_file(home):
    table = (home / "labels.csv").read_text().replace("file,shade", "image,file")
    (home / "labels.csv").write_text(table)
    data = "folder(path='photos', factors='labels.csv', size=8)"
    uw.train("m2", data, supervision="labels(n=4)", steps=1, batch=4, latents=2, device="cpu", out="files")
    frame = uw.predict("files")
    assert frame["picture"].tolist()[:2] == ["00.png", "01.png"] and set(frame["file"]) <= set(SHADES)


def test_a_table_without_column_names(home):
    (home / "bare.csv").write_text((home / "labels.csv").read_text().partition("\n")[2])
    with raises("factors", value=str(home / "bare.csv")):
        uw.load_data("photos", factors="bare.csv", size=8)


def test_a_report_of_a_folder_of_runs(home):
    shutil.copytree("run", "many/one")
    shutil.copytree("run", "many/two")
    assert call("report", "many", "run", "-o", "all.html") == 0
    page = (home / "all.html").read_text()
    assert all(page.count(f"({name})") for name in ("one", "two", "run"))
