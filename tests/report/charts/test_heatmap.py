"""Heat maps of scores and of agreement."""

import io

import numpy as np
from PIL import Image
from raises import raises

from unweave.evaluation.evaluate import evaluate_arrays
from unweave.metrics import agreement
from unweave.report.charts.agreement import agreement_png, order_by_agreement
from unweave.report.charts.heatmap import heatmap_png, percent_text, score_rows, write_scores
from unweave.report.formatting import hundredths, short_title

FACTORS = np.stack(np.unravel_index(np.arange(60), (4, 3, 5)), axis=1)


def pixels(png):
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def test_cells_with_high_information_are_dark():
    result = evaluate_arrays(FACTORS, FACTORS, metrics=["mig"])
    picture = heatmap_png(result)
    assert picture == heatmap_png(result)
    dark = (pixels(picture).sum(axis=2) < 250).mean()
    none = (pixels(heatmap_png(result._replace(information=0 * result.information))).sum(axis=2) < 250).mean()
    assert dark > none + 0.03


def test_importance_is_a_second_table_and_many_latents_fit():
    result = evaluate_arrays(FACTORS, FACTORS, metrics=[])
    both = heatmap_png(result._replace(importance=np.eye(3)))
    assert pixels(both).shape[1] > 1.5 * pixels(heatmap_png(result)).shape[1]
    many = evaluate_arrays(np.random.default_rng(0).normal(size=(60, 64)), FACTORS, metrics=[])
    assert pixels(heatmap_png(many)).shape[0] < 3000
    with raises("result"):
        heatmap_png(result._replace(information=np.zeros((3, 0))))


def test_texts_of_cells_and_titles():
    assert [percent_text(v) for v in (0.0, 0.004, 0.126, 1.0)] == ["·", "·", "13", "100"]
    assert [hundredths(v) for v in (-0.001, 0.5, -0.5)] == ["0", "50", "−50"]
    assert short_title("mig") == "MIG" and short_title("infomec.modularity") == "InfoMEC: modularity"
    assert short_title("my_own") == "my own"


def test_score_rows_and_files(tmp_path):
    result = evaluate_arrays(FACTORS, FACTORS, metrics=["mig", "infomec"], resamples=5)
    rows = score_rows(result)
    assert [len(row) for row in rows] == [5] * 4 and rows[0][1] == "1.000" and "–" in rows[0][2]
    assert rows[1][0] == "InfoMEC: modularity" and rows[1][2] == ""
    write_scores(result, tmp_path / "new", tmp_path / "a.npz")
    assert {p.name for p in (tmp_path / "new").iterdir()} == {"scores.json", "heatmap.png"}
    (tmp_path / "file").write_text("")
    with raises("out", value=str(tmp_path / "file")):
        write_scores(result, tmp_path / "file", tmp_path / "a.npz")


def test_metrics_that_agree_are_neighbours():
    rng = np.random.default_rng(0)
    base, other = rng.normal(size=30), rng.normal(size=30)
    scores = {"mig": base, "modularity": other, "mcc": base + 0.1 * rng.normal(size=30), "irs": other + 0.1}
    found = order_by_agreement(agreement(scores))
    places = {name: found.names.index(name) for name in scores}
    assert abs(places["mig"] - places["mcc"]) == abs(places["modularity"] - places["irs"]) == 1
    assert sorted(found.names) == sorted(scores)
    assert found.correlation[places["mig"], places["mcc"]] > 0.9
    assert agreement_png(found).startswith(b"\x89PNG")
