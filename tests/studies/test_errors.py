"""The error of the studies with few labels, in per cent on test images."""

import pandas as pd
import pytest
import torch
from raises import raises
from tiny_mnist import write_mnist
from typer.testing import CliRunner

import unweave as uw
from unweave.cli.app import app
from unweave.data import load_data
from unweave.studies import STUDIES, kingma2014, makhzani2015
from unweave.studies.study import held_out_data
from unweave.studies.work import select_runs

SMALL = {"steps": 3, "batch": 16, "latents": 2, "device": "cpu"}


@pytest.fixture
def mnist(tmp_path, monkeypatch):
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    return write_mnist(tmp_path / "mnist", train=60, test=20)


def test_held_out_data_are_the_other_observations(mnist):
    test = held_out_data(load_data("mnist", part="train", size=28, path=mnist))
    assert test.size == 20 and test.options == {"path": str(mnist), "part": "test", "size": 28}
    train = load_data("split(data='digits', part='train', fraction=0.75)")
    rest = held_out_data(train)
    assert sorted([*train.index_N.tolist(), *rest.index_N.tolist()]) == list(range(1797))


def test_errors_are_counted_on_test_images(mnist, tmp_path):
    data = load_data("mnist", part="train", size=28, path=mnist)
    run = uw.train("m2", data, supervision="labels(n=20, balanced=True)", out=tmp_path / "run", **SMALL)
    test = held_out_data(run.data)
    found = run.representation.classify(test.images(torch.arange(20)))[0].argmax(1)
    wrong = sum(int(found[n]) != n % 10 for n in range(20))
    assert 0 < wrong < 20
    assert kingma2014.error(run) == makhzani2015.error(run) == {"error": pytest.approx(5 * wrong)}


@pytest.mark.parametrize("method", ["aae_cluster", "aae_reduce"])
def test_clusters_get_their_labels_from_training_images(method, mnist, tmp_path):
    data = load_data("mnist", part="train", size=28, path=mnist)
    run = uw.train(method, data, clusters=4, net="makhzani", out=tmp_path / "run", **SMALL)

    def chances(images):
        if method == "aae_reduce":
            return run.method.probabilities(images)
        return run.representation.encode(images)[:, -4:]

    last, test = chances(data.images(torch.arange(50, 60))), held_out_data(data)  # the last sixth
    names = [int(last[:, y].argmax()) % 10 for y in range(4)]
    found = chances(test.images(torch.arange(20))).argmax(1)
    wrong = sum(names[int(found[n])] != n % 10 for n in range(20))
    error = makhzani2015.error(run)
    assert error["error"] == pytest.approx(5 * wrong)
    inside = [[n % 10 for n in range(10) if int(last[n].argmax()) == y] for y in range(4)]
    names = [
        min(range(10), key=lambda c: (-found.count(c), c)) if found else name for found, name in zip(inside, names)
    ]
    wrong = sum(names[int(found[n])] != n % 10 for n in range(20))
    assert error["error_most"] == pytest.approx(5 * wrong)
    assert error["smallest"] == pytest.approx(5 * int(found.bincount(minlength=4).min()), abs=1e-4)


@pytest.mark.parametrize("only", ["method=m2", "method=aae_cluster"])
def test_from_files_to_a_table_with_published_numbers(only, tmp_path, monkeypatch):
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    for data in ("mnist", "fashion_mnist"):
        write_mnist(tmp_path / data, train=1000, test=20)
    name, more = ("kingma2014", "supervision=labels(n=100, balanced=True)")
    if only == "method=aae_cluster":
        name, more = ("makhzani2015", "clusters=16")
    words = ["study", "run", name, "--scale", "full", "--only", only, "--only", more, "--seeds", "0", "--steps", "2"]
    words += ["--path", str(tmp_path), "--device", "cpu", "--quiet", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    frame = pd.read_csv(tmp_path / "out" / "scores.csv")
    assert len(frame) == 2 and frame["error"].between(0, 100).all()
    assert list(frame["data"]) == [f"{name}(part='train', size=28)" for name in ("mnist", "fashion_mnist")]
    table = pd.read_csv(tmp_path / "out" / "table.csv")
    assert table["published_low"].dropna().tolist() == [11.97 if name == "kingma2014" else 9.55]
    assert " on mnist, 1" in table["row"][0]
    assert " on fashion_mnist, 1" in table["row"][1]


def test_data_without_files_has_no_path(tmp_path):
    with raises("path", value="here"):
        select_runs(STUDIES["kingma2014"], "quick", path="here")


def test_path_is_a_folder_for_one_data_set_or_one_folder_each(tmp_path):
    study = STUDIES["kingma2014"]
    with raises("path", value=str(tmp_path / "nowhere")):
        select_runs(study, "full", path=tmp_path / "nowhere")
    with raises("path", value=str(tmp_path)):
        select_runs(study, "full", path=tmp_path)
    one = select_runs(study, "full", only={"data": ["mnist"]}, path=tmp_path)
    assert {run["data"] for run in one} == {f"mnist(part='train', size=28, path='{tmp_path}')"}
    for name in ("mnist", "fashion_mnist"):
        (tmp_path / name).mkdir()
    both = select_runs(study, "full", path=tmp_path)
    assert {run["data"] for run in both} == {
        f"{name}(part='train', size=28, path='{tmp_path / name}')" for name in ("mnist", "fashion_mnist")
    }


def test_path_does_not_change_data_without_files(tmp_path):
    runs = select_runs(STUDIES["zhao2019"], "full", path=tmp_path)
    assert {run["data"] for run in runs} == {"sprites", f"mnist(part='train', path='{tmp_path}')"}
