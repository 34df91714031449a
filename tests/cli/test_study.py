"""Studies from the command line: listed, trained, gone on with, and set beside the published numbers."""

import pandas as pd
import pytest
from raises import raises
from tiny_study import TINY
from typer.testing import CliRunner

from unweave import studies
from unweave.cli.app import app
from unweave.studies import work


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setitem(studies.STUDIES, "tiny", TINY)


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)


def test_every_study_is_listed_with_its_question():
    told = " ".join(run("study", "list").output.split())
    assert all(name in told for name in studies.STUDIES)
    assert "90 runs" in told and "Does it run?" in told


def test_a_study_ends_in_runs_scores_and_tables(tmp_path):
    done = run("study", "run", "tiny", "--scale", "full", "--out", tmp_path / "s", "--device", "cpu", "--quiet")
    assert done.exit_code == 0, done.output
    frame = pd.read_csv(tmp_path / "s" / "scores.csv")
    assert len(frame) == 6 and frame["mig"].notna().all() and set(frame["scale"]) == {"full"}
    assert len(list((tmp_path / "s").glob("*/weights.safetensors"))) == 6
    text = (tmp_path / "s" / "table.md").read_text()
    assert "| beta_vae on rooms, beta=4 |" in text and "recalled" in text and "×2 (mean of vae on rooms)" in text
    page = (tmp_path / "s" / "table.html").read_text()
    assert page.count("<svg") == 2 and "src=" not in page and "href=" not in page
    assert 'class="published range"' in page and "beta_vae-rooms-beta4-seed1: " in page
    table = pd.read_csv(tmp_path / "s" / "table.csv")
    assert set(table["verdict"].dropna()) and table["n"].max() == 4
    frame["mig"] = frame["mig"].where(frame["method"] != "vae", -0.02).where(frame["method"] == "vae", 0.01)
    frame.to_csv(tmp_path / "below.csv", index=False)
    assert run("study", "table", "tiny", tmp_path / "below.csv", "--out", tmp_path / "t").exit_code == 0
    cells = "not a ratio: 0.01 over -0.02 | ×2 (mean of vae on rooms) | – | second-hand"
    assert cells in (tmp_path / "t" / "table.md").read_text()


def test_parts_add_up(tmp_path):
    whole, part = tmp_path / "whole", tmp_path / "part"
    for words in (["--only", "method=vae"], ["--only", "beta=1,4"]):
        assert run("study", "run", "tiny", "--out", whole, "--device", "cpu", "--quiet", *words).exit_code == 0
    assert len(pd.read_csv(whole / "scores.csv")) == 3
    words = ["--out", part, "--device", "cpu", "--quiet", "--seeds", "4", "--only", "method=vae"]
    assert run("study", "run", "tiny", *words).exit_code == 0
    done = run("study", "table", "tiny", whole, part / "scores.csv", "--out", tmp_path / "t")
    assert done.exit_code == 0, done.output
    table = pd.read_csv(tmp_path / "t" / "table.csv")
    assert table.loc[table["row"] == "vae on rooms", "n"].tolist() == [2, 2]
    assert table["verdict"].isna().all()  # quick runs are not the paper's


def test_scores_of_a_fleet_outlive_the_next_one(tmp_path, monkeypatch):
    """Scored as soon as it is trained: what an interrupted fleet takes with it is only its own."""
    fit, asked = work.fit, []

    def only_once(runs, **options):
        asked.append(len(runs))
        if len(asked) == 2:
            raise RuntimeError("the machine is gone")
        return fit(runs, **options)

    words = ["study", "run", "tiny", "--scale", "full", "--out", tmp_path, "--device", "cpu", "--quiet"]
    monkeypatch.setattr(work, "fit", only_once)
    with pytest.raises(RuntimeError):
        run(*words)
    first = pd.read_csv(tmp_path / "scores.csv")
    assert first["run"].tolist() == ["vae-rooms-seed0", "vae-rooms-seed1"]
    assert run(*words).exit_code == 0
    whole = pd.read_csv(tmp_path / "scores.csv")
    assert whole["run"].tolist() == [work.folder_name(TINY, one) for one in TINY.runs("full")]
    assert whole["mig"][:2].tolist() == first["mig"].tolist()


def test_a_study_of_the_list_runs(tmp_path):
    words = ["--steps", "3", "--only", "method=gvae", "--seeds", "0", "--device", "cpu", "--quiet"]
    done = run("study", "run", "tran2021", "--out", tmp_path / "s", *words)
    assert done.exit_code == 0, done.output
    frame = pd.read_csv(tmp_path / "s" / "scores.csv")
    assert frame["group_mig"].between(-1, 1).all() and frame["scale"].tolist() == ["quick, 3 steps"]
    with raises("scale", value="quick", accepted="quick, 3 steps"):
        run("study", "run", "tran2021", "--out", tmp_path / "s", "--device", "cpu", "--quiet")


@pytest.mark.parametrize(
    ("words", "argument", "value"),
    [
        (["run", "tinny"], "study", "tinny"),
        (["run", "tiny", "--scale", "huge"], "scale", "huge"),
        (["run", "tiny", "--only", "vae"], "only", "vae"),
        (["run", "tiny", "--only", "method=aae"], "only", "method=aae"),
        (["run", "tiny", "--only", "colour=red"], "only", "colour"),
        (["run", "tiny", "--seeds", "one"], "seeds", "one"),
        (["run", "tiny", "--minutes", "0"], "minutes", 0.0),
        (["run", "tiny", "--steps", "0"], "steps", 0),
        (["run", "tiny", "--strategy", "magic"], "strategy", "magic"),
        (["run", "tiny", "--precision", "bf16", "--device", "cpu"], "precision", "bf16"),
        (["table", "tiny", "nowhere"], "scores", "nowhere"),
        (["table", "tinny", "nowhere"], "study", "tinny"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(words, argument, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with raises(argument, value=value):
        run("study", *words)
    assert list(tmp_path.iterdir()) == []
