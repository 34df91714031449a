"""The page that compares many runs: right numbers, nothing claimed beyond them, whole whatever the runs lack."""

import html
import math
import re

import numpy as np
import pandas as pd
import pytest
from mentions import mentions
from raises import raises

import unweave as uw
from unweave.report import compare_page, summary
from unweave.report.charts.strips import draw
from unweave.report.charts.svg import axis_limits
from unweave.report.panels.strip_plots import PANEL, strip_rows
from unweave.report.sweep_summary import families, ranking_sentences
from unweave.report.views import SweepView

SCORES = ["mig", "modularity", "my.own"]


def run(value, *, beta=4.0, seed=0, method="beta_vae", data="sprites", diverged=math.nan, steps=100, **more):
    scores = value if isinstance(value, dict) else dict.fromkeys(SCORES, value)
    name = f"runs/{method}-{data}-{beta}-{seed}-{steps}"
    given = {"run": name, "method": method, "data": data, "seed": seed, "steps": steps, "diverged": diverged}
    return {**given, "beta": beta, **more, **scores}


def made(rows, settings=("beta",), scores=SCORES):
    frame = pd.DataFrame(rows)
    frame.attrs = {"settings": list(settings), "scores": list(scores)}
    return frame


def sweep(betas=(1, 2, 10), seeds=5, step=0.1, scatter=0.02):
    """MIG grows by `step` from beta to beta, and by `scatter` from seed to seed."""
    rows = [
        run({"mig": 0.1 + step * k + scatter * s, "modularity": 0.9 - 0.02 * s, "my.own": 0.5}, beta=beta, seed=s)
        for k, beta in enumerate(betas)
        for s in range(seeds)
    ]
    return made(rows)


def page_of(frame, tmp_path, title="A sweep"):
    return compare_page(frame, tmp_path / "compare.html", title=title).read_text()


def visible(page):
    body = re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", "", body)))


def sentences(frame):
    return re.sub(r"\s+", " ", " ".join(ranking_sentences(families(frame), SweepView(frame).leading_score)))


# --- numbers -------------------------------------------------------------------------------------------------------


def test_summary_has_statistics_over_seeds():
    frame = sweep()
    found = summary(frame)
    values = frame.loc[frame["beta"] == 2, "mig"]
    assert found["beta"].tolist() == [1, 2, 10]
    assert found["n"].tolist() == [5, 5, 5]
    row = found.iloc[1]
    expected = [5, values.mean(), np.std(values, ddof=1), values.median(), values.min(), values.max()]
    columns = [f"mig.{name}" for name in ("count", "mean", "sd", "median", "min", "max")]
    assert row[columns].tolist() == pytest.approx(expected)
    assert found.attrs["scores"] == SCORES


def test_runs_that_diverged_are_counted_and_left_out():
    found = summary(made([run(0.2, seed=0), run(0.9, seed=1, diverged=0.0), run(math.nan, seed=2)]))
    assert found.loc[0, ["n", "diverged", "mig.count", "mig.mean"]].tolist() == [3, 1, 1, 0.2]
    assert math.isnan(found.loc[0, "mig.sd"])


def test_settings_are_ordered_by_size_and_schedules_are_settings_too():
    rows = [run(0.1, beta=beta) for beta in (10.0, 2.0, [0.0, 4.0, 100.0, 0.0], 2.0)]
    assert [g.label[5:] for g in families(made(rows))[0].groups] == ["10", "2", "linear(0,4,100,0)"]
    numbers = [run(0.1, beta=beta) for beta in (10, 2, 0.5)]
    assert summary(made(numbers))["beta"].tolist() == [0.5, 2, 10]


def test_settings_that_follow_from_others_are_not_named():
    rows = [run(0.1, beta=b, twice=2 * b, lr=lr) for b in (1, 2) for lr in (1e-3, 1e-4)]
    (family,) = families(made(rows, ["beta", "twice", "lr"]))
    assert family.groups[0].values == {"beta": "1", "lr": "0.0001"}
    assert len(family.groups) == 4
    assert len(summary(made(rows, ["beta", "twice", "lr"])).columns) == 7 + 18


def test_each_method_has_separate_settings():
    rows = [run(0.1, beta=b, gamma=None) for b in (1, 2)] + [run(0.1, beta=None, gamma=10, method="factor_vae")]
    first, second = families(made(rows, ["beta", "gamma"]))
    assert [g.label.split()[0] for g in first.groups] == ["beta", "beta"]
    assert [g.label for g in second.groups] == [""]


def test_steps_are_a_setting_if_they_differ():
    found = summary(made([run(0.1, steps=100), run(0.2, steps=200)], settings=[]))
    assert found["steps"].tolist() == [100, 200]


# --- sentences -----------------------------------------------------------------------------------------------------


def test_sentences_name_the_best_setting_and_the_variation():
    text = sentences(sweep())
    assert mentions(text, "median MIG", "beta 10", "0.34", "beta 2", "0.24", "beta 10", "beta 2", "100 %")
    assert mentions(text, "0.032", "seeds", "0.1", "setting matters more", "seed")
    assert mentions(sentences(sweep(step=0.01)), "seed matters more", "setting")
    assert "matters more" not in sentences(sweep(step=0.0375))


def test_sentences_about_few_runs_are_cautious():
    assert mentions(sentences(sweep(seeds=2)), "too few runs")
    single = sentences(sweep(seeds=1))
    assert mentions(single, "cannot distinguish", "setting", "seed")
    assert "deviation" not in single and "median" not in single and "is better" not in single
    assert mentions(sentences(made([run(0.25)])), "MIG", "0.25")
    assert mentions(sentences(made([run(0.2), run(0.4)])), "2 runs", "median MIG", "0.30", "0.20", "0.40")


def test_sentences_about_equal_settings_and_missing_scores():
    equal = sentences(made([run(0.3, beta=1), run(0.3001, beta=2), run(0.1, beta=3)]))
    assert mentions(equal, "beta 2", "beta 1", "equal", "0.30")
    without = sentences(made([run(math.nan)]))
    assert without == sentences(made([run(0.5, diverged=3.0)])) and not re.search(r"\d", without)


def test_lower_is_better_if_the_metric_declares_it():
    name = "gaussian_total_correlation"
    rows = [run({name: value, "active_dimensions": 3.0}, beta=value) for value in (1.0, 2.0)]
    frame = made(rows, scores=["active_dimensions", name])
    assert SweepView(frame).leading_score == name
    assert mentions(sentences(frame), "beta 1", "1.00", "beta 2", "2.00")


def test_each_data_set_has_its_ranking(tmp_path):
    frame = made([run(0.1 * k, beta=k, data=data, seed=s) for k in (1, 2) for data in "ab" for s in range(3)])
    text = visible(page_of(frame, tmp_path))
    assert mentions(text, "On a", "MIG", "beta 2", "beta 1", "On b", "MIG", "beta 2", "beta 1")
    assert "beta-VAE on a" in text


# --- drawings ------------------------------------------------------------------------------------------------------


def test_every_run_is_a_dot_and_a_seed_keeps_its_offset():
    frame = sweep()
    frame.loc[4, ["mig", "diverged"]] = [math.nan, 70.0]
    rows = strip_rows(SweepView(frame), "mig")
    assert [len(row.points) for row in rows] == [4, 5, 5] and [row.best for row in rows] == [
        False,
        False,
        True,
    ]
    assert rows[0].diverged == ["seed 4 diverged at step 70"]
    assert rows[0].offsets == rows[1].offsets[:4]
    assert np.ptp(np.diff(rows[1].offsets)) < 1e-9
    svg = draw("mig", rows)["svg"]
    assert svg.count("<circle") == 14 and svg.count('class="median"') == 3 and svg.count("<title>seed 4 diverged") == 1


def test_one_run_has_no_median_and_missing_scores_are_not_drawn():
    assert 'class="median"' not in draw("mig", strip_rows(SweepView(made([run(0.3)])), "mig"))["svg"]
    assert not PANEL.render(SweepView(made([run(math.nan)])))


@pytest.mark.parametrize("values", [[0.01, 0.4], [0.8, 0.9], [0.5, 0.5], [0.0, 0.0], [-2.0, -1.0], [30.0, 31.0]])
def test_axis_limits_contain_all_values(values):
    low, high = axis_limits(values)
    assert low <= min(values) <= max(values) < high
    assert axis_limits([0.01, 0.4])[0] == 0.0 < axis_limits([0.8, 0.9])[0]


# --- the page ------------------------------------------------------------------------------------------------------


def test_page_is_self_contained_and_deterministic(tmp_path):
    page = page_of(sweep(), tmp_path)
    assert not re.search(r"""https?://|@import|url\(|<link|(?:src|href)\s*=\s*["']?(?!data:)""", page)
    assert page == page_of(sweep(), tmp_path)
    text = visible(page)
    for words in ("15 runs", "1 method", "3 settings", "5 seeds", "0 diverged", "Agreement of the scores", "All runs"):
        assert words in text
    assert "0.34 ± 0.03" in text
    assert "nan" not in text.lower()
    assert [p.name for p in tmp_path.iterdir()] == ["compare.html"]


def test_best_mean_of_each_score_is_marked(tmp_path):
    page = page_of(sweep(), tmp_path)
    assert re.findall(r"class=won>([^<]+)<", page) == ["0.34"]  # the others are level in every setting


def test_agreement_needs_runs_and_scores_that_differ(tmp_path):
    text = visible(page_of(sweep(), tmp_path))
    table = text.split("Agreement of the scores")[1].split("The best run")[0]
    assert "MIG" in table and "Modularity" in table
    assert "own" not in table  # it is the same for all runs
    assert "Agreement of the scores" not in visible(page_of(sweep(betas=(1, 2), seeds=2), tmp_path))


def test_one_run_without_settings_or_scores(tmp_path):
    text = visible(page_of(made([run(math.nan, diverged=5.0)], settings=[]), tmp_path))
    assert "× diverged at step 5" in text
    assert "±" not in text
    assert "median" not in text
    text = visible(page_of(made([run({})], settings=[], scores=[]), tmp_path))
    assert "1 run 1 method 1 setting 1 seed 0 diverged" in text
    assert "marked" not in text


def test_runs_that_diverged_are_marked(tmp_path):
    frame = sweep()
    frame.loc[0, ["mig", "modularity", "my.own", "diverged"]] = [math.nan] * 3 + [1234.0]
    page = page_of(frame, tmp_path)
    assert "× diverged at step 1,234" in visible(page)
    assert page.count("class=failed") == 1
    assert "5 1 diverged" in visible(page)


def test_hostile_names_are_escaped(tmp_path):
    bad = "<img src=x onerror=alert(1)>"
    rows = [run(0.1, method=bad, beta=bad, data=bad, seed=s) | {"run": f"runs/{bad}{s}"} for s in range(2)]
    rows += [run(0.2, method=bad, beta=1, data=bad)]
    page = page_of(made(rows), tmp_path, title=bad)
    assert "<img src=x" not in page
    assert html.escape(bad) in page


def test_invalid_frames_are_user_errors(tmp_path):
    frame = sweep()
    out = tmp_path / "r.html"
    with raises("frame", value=0):
        compare_page(made(frame.iloc[:0]), out, title="")
    with raises("frame", value="seed"):
        compare_page(made(frame.drop(columns="seed")), out, title="")
    with raises("frame", value="settings"):
        compare_page(pd.DataFrame(frame.to_dict("list")), out, title="")
    with raises("frame", value="mig"):
        compare_page(made(frame.assign(mig="high")), out, title="")
    with raises("out", value=str(tmp_path)):
        compare_page(frame, tmp_path, title="")
    (tmp_path / "file").write_text("")
    with raises("out", value=str(tmp_path / "file" / "r.html")):
        compare_page(frame, tmp_path / "file" / "r.html", title="")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


# --- real runs -----------------------------------------------------------------------------------------------------


def test_best_run_is_shown_with_its_command(tmp_path, monkeypatch):
    monkeypatch.setattr("unweave.evaluation.evaluate.ACTIVE_THRESHOLD", 0.0)
    options = {"net": "small", "latents": 3, "steps": 3, "batch": 4, "device": "cpu"}
    trained = uw.train("beta_vae", "digits(size=8)", out=tmp_path / "good", beta=0.1, lr=1e-2, **options)
    rows = [run(0.4, seed=0) | {"run": str(tmp_path / "good")}, run(0.2, seed=1), run(0.3, seed=2, method="vae")]
    page = page_of(made(rows, settings=[]), tmp_path)
    assert page.count("moved through its range") == 3
    text = visible(page)
    assert " ".join(trained.config.command()) in text
    assert mentions(text, "MIG", "0.400", "2 runs", "median", "0.300", "2 runs")
    assert not (tmp_path / "good" / "scores.json").exists()
    (tmp_path / "good" / "weights.safetensors").write_bytes(b"")
    text = visible(page_of(made(rows[:1], settings=[]), tmp_path))
    assert " ".join(trained.config.command()) in text
