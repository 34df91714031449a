"""Scores stored in a run folder are used again only as they were written."""

import json

import pytest

import unweave as uw


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    options = {"net": "small", "latents": 2, "batch": 4, "steps": 1, "engine": "loop"}
    return uw.train("vae", "digits(size=8)", out=tmp_path_factory.mktemp("runs") / "run", **options)


def edit(run, change):
    path = run.folder.path / "scores.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("edited", [{"mig": 0.75}, {"mig": 0.75, "other": 1.0}, {}])
def test_edited_scores_are_computed_again(trained, edited):
    first = uw.evaluate(trained, metrics=["mig"]).scores["mig"]
    edit(trained, lambda content: content.update(scores=edited))
    (again,) = uw.score_runs([trained], metrics=["mig"], stored=True)["mig"]
    assert again == first


def test_edited_scores_are_not_merged_with_others(trained):
    uw.evaluate(trained, metrics=["mig"])
    edit(trained, lambda content: content["scores"].update(mig=0.75))
    uw.evaluate(trained, metrics=["modularity"])
    assert "mig" not in json.loads((trained.folder.path / "scores.json").read_text())["scores"]


def test_scores_of_older_versions_are_used(trained):
    """They have no digest."""
    uw.evaluate(trained, metrics=["mig"])
    edit(trained, lambda content: (content.pop("digest"), content["scores"].update(mig=0.75)))
    assert uw.score_runs([trained], metrics=["mig"], stored=True)["mig"].tolist() == [0.75]
