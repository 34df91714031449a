"""Group-MIG of a run, with content and style from the model and its supervision."""

import numpy as np
import pytest
from raises import raises

import unweave as uw
from unweave.evaluation.evaluate import content_and_style, evaluate
from unweave.metrics import group_mig_score

SMALL = {"net": "small", "latents": 5, "steps": 2, "batch": 4, "device": "cpu"}
DATA = "rooms(size=8)"


def trained(tmp_path, method, supervision, **settings):
    return uw.train(method, DATA, supervision=supervision, out=tmp_path / "run", **SMALL, **settings)


@pytest.mark.parametrize(
    ("method", "supervision"),
    [("gvae", "groups(by=['scale', 'shape'], size=2)"), ("group_tcvae", "match(content=['shape', 'scale'])")],
)
def test_a_run_knows_its_groups(tmp_path, method, supervision):
    run = trained(tmp_path, method, supervision, content=2)
    codes, factors = content_and_style(run, run.data)
    assert codes == ["content"] * 2 + ["style"] * 3
    assert factors == ["style", "style", "style", "content", "content", "style"]
    result = evaluate(run.folder.path, metrics=["group_mig"], num_samples=500)
    given = evaluate(run, metrics=["group_mig"], num_samples=500, groups=(codes, factors))
    assert result.scores == given.scores
    swapped = evaluate(run, metrics=["group_mig"], num_samples=500, groups=(codes, ["content"] * 6))
    assert swapped.scores != given.scores  # what is given is taken
    table = uw.evaluate(run, metrics=[], num_samples=500)
    share = np.divide(table.information, table.entropies)
    right = share[:2, 3:5].max(0).tolist() + share[2:, [0, 1, 2, 5]].max(0).tolist()
    wrong = share[2:, 3:5].max(0).tolist() + share[:2, [0, 1, 2, 5]].max(0).tolist()
    assert result.scores["group_mig"] == pytest.approx(np.mean(right) - np.mean(wrong))


def test_all_metrics_include_it_if_it_is_defined(tmp_path):
    run = trained(tmp_path, "ml_vae", "groups(by=['shape'], size=2)")
    scores = uw.score_runs([run], metrics=["mig", "group_mig"], num_samples=200)
    assert -1 <= scores["group_mig"][0] <= 1
    other = uw.load_data("sprites(size=8)")  # has a factor `shape` too
    assert content_and_style(run, other)[1] == ["content", "style", "style", "style", "style"]
    assert content_and_style(run, uw.load_data("digits")) is None


def test_a_run_without_parts_or_without_content_has_none(tmp_path):
    run = trained(tmp_path, "ada_gvae", "pairs(k=1)")
    assert content_and_style(run, run.data) is None
    with raises("metrics", value="group_mig"):
        evaluate(run, metrics=["group_mig"], num_samples=100)
    assert group_mig_score([[0], [1]], [[0], [1]], ["a"], ["a"]) == 1.0
