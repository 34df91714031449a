"""Comparison of scores with published numbers, from one table or several."""

import math

import numpy as np
import pandas as pd
import pytest
from raises import raises
from tiny_study import TINY

from unweave.studies.study import Published
from unweave.studies.table import compare_with_published, long_table, read_scores, shown_scores, table_rows, verdict

MIG = {("vae", None): (0.1, 0.2), ("beta_vae", 1): (0.05, 0.15), ("beta_vae", 4): (0.2, 0.4)}


def made(scale="full", keep=lambda method, beta, seed: True):
    rows = []
    for (method, beta), values in MIG.items():
        for seed, value in enumerate(values):
            if keep(method, beta, seed):
                setting = {} if beta is None else {"beta": beta}
                place = TINY.row({"method": method, **setting})
                row = {"study": "tiny", "scale": scale, "family": place.family, "row": place.name}
                row |= {"run": f"{method}-{beta}-{seed}", "method": method, "data": "rooms(size=8)", "seed": seed}
                row |= {"steps": 3, "diverged": np.nan, "mig": value, "modularity": 0.8 + seed / 10}
                rows.append(row | {"fleet_seconds": 2.0, "models": 2, "seconds_per_model": 1.0, "device": "cpu"})
    return pd.DataFrame(rows)


def test_a_family_is_listed_before_its_settings():
    found = table_rows(TINY, made().sample(frac=1, random_state=0))
    assert [(line.name, line.pooled, len(line.runs)) for line in found] == [
        ("vae on rooms", False, 2),
        ("beta_vae on rooms", True, 4),
        ("beta_vae on rooms, beta=1", False, 2),
        ("beta_vae on rooms, beta=4", False, 2),
    ]


def test_published_numbers_are_compared_with_the_same_statistic():
    compared = compare_with_published(TINY, table_rows(TINY, made()), "full")
    found = {(item.published.row, item.published.score, item.published.statistic): item for item in compared}
    spread = found["beta_vae on rooms", "mig", "range"]
    assert (spread.n, spread.low, spread.high, spread.verdict) == (4, 0.05, 0.4, "inside (2 of 4 runs)")
    assert spread.ours == pytest.approx(0.175)  # median of .05 .15 .2 .4
    one = found["beta_vae on rooms, beta=4", "mig", "median"]
    assert one.ours == pytest.approx(0.3) and one.verdict == "+0.050"
    ratio = found["beta_vae on rooms", "mig", "mean"]
    assert ratio.ours == pytest.approx(0.2 / 0.15) and ratio.verdict == "-0.667"
    best = found["vae on rooms", "modularity", "best"]
    assert best.ours == pytest.approx(0.9) and best.verdict == "+0.000"


@pytest.mark.parametrize(
    ("scores", "others", "why"),
    [
        ((0.01, 0.03), (-0.01, -0.03), "not a ratio: 0.02 over -0.02"),
        ((0.01, 0.03), (-0.01, 0.01), "not a ratio: 0.02 over 0"),
        ((-0.01, -0.03), (0.1, 0.2), "not a ratio: -0.02 over 0.15"),
        ((0.01, 0.03), (math.nan, math.nan), "not a ratio: no score of vae on rooms"),
    ],
)
def test_undefined_ratios_have_a_reason_and_no_verdict(scores, others, why):
    frame = made(keep=lambda method, beta, seed: beta != 1)
    frame["mig"] = [*others, *scores]
    (item,) = (
        item for item in compare_with_published(TINY, table_rows(TINY, frame), "full") if item.published.ratio_to
    )
    assert math.isnan(item.ours) and item.verdict == "" and item.note == why
    assert why in long_table(TINY, frame)["note"].tolist()
    frame["mig"] = [0.1, 0.2, 0.0, 0.0]
    (item,) = (
        item for item in compare_with_published(TINY, table_rows(TINY, frame), "full") if item.published.ratio_to
    )
    assert (item.ours, item.verdict, item.note) == (0.0, "-2.000", "")


def test_a_family_with_one_setting_is_one_row_with_both_names():
    frame = made(keep=lambda method, beta, seed: beta == 4)
    found = table_rows(TINY, frame)
    assert [line.name for line in found] == ["beta_vae on rooms, beta=4"]
    assert {item.published.row for item in compare_with_published(TINY, found, "full")} == {
        "beta_vae on rooms",
        "beta_vae on rooms, beta=4",
    }  # and no ratio, for the other method was not run


@pytest.mark.parametrize(
    ("value", "ours", "word"),
    [
        ((0.1, 0.3), 0.2, "inside"),
        ((0.1, 0.3), 0.31, "above"),
        ((0.1, 0.3), 0.0, "below"),
        ((1.1, math.inf), 5.0, "inside"),
        (0.5, 0.4, "-0.100"),
        (0.5, math.nan, ""),
    ],
)
def test_verdicts(value, ours, word):
    published = Published("a", "mig", value, "median", "read", "here")
    assert verdict(published, ours, "full") == word
    assert verdict(published, ours, "quick") == verdict(published, ours, "full, 3 steps") == ""


def test_diverged_runs_have_no_scores():
    frame = made()
    frame.loc[frame["mig"] == 0.4, "diverged"] = 2.0
    last = table_rows(TINY, frame)[-1]
    assert last.values("mig").tolist() == [0.2] and len(last.runs) == 2
    assert last.values("sap").size == 0


def test_the_long_table_has_one_line_per_row_score_and_published_number():
    table = long_table(TINY, made())
    assert len(table) == 4 * 2 + 1  # the family's MIG has two published numbers
    assert set(table["provenance"].dropna()) == {"read", "recalled", "second-hand"}
    row = table[(table["row"] == "beta_vae on rooms, beta=1") & (table["score"] == "mig")].iloc[0]
    assert (row["n"], row["median"], row["min"], row["max"]) == (2, pytest.approx(0.1), 0.05, 0.15)
    assert shown_scores(TINY, made().drop(columns="modularity")) == ["mig"]


def test_parts_from_several_machines_make_one_table(tmp_path):
    (tmp_path / "one").mkdir()
    made(keep=lambda method, beta, seed: seed == 0).to_csv(tmp_path / "one" / "scores.csv", index=False)
    other = made(keep=lambda method, beta, seed: seed == 1 or method == "vae").assign(fleet_seconds=9.0)
    other.to_csv(tmp_path / "other.csv", index=False)
    frame = read_scores(TINY, [tmp_path / "one", tmp_path / "other.csv"])
    assert sorted(frame["run"]) == sorted(made()["run"])  # vae with seed 0, which is in both, counts once
    pd.testing.assert_frame_equal(
        long_table(TINY, frame).reset_index(drop=True), long_table(TINY, made()).reset_index(drop=True)
    )


def test_incompatible_scores_raise(tmp_path):
    def saved(name, frame):
        frame.to_csv(tmp_path / name, index=False)
        return tmp_path / name

    whole = saved("whole.csv", made())
    cases = [
        ([tmp_path], "scores"),
        ([tmp_path / "none.csv"], "scores"),
        ([whole, saved("quick.csv", made("quick"))], "scores"),
        ([whole, saved("other.csv", made().assign(mig=0.0))], "scores"),
        ([saved("columns.csv", made().drop(columns="family"))], "scores"),
        ([saved("study.csv", made().assign(study="huge"))], "study"),
        ([saved("empty.csv", made().head(0))], "scores"),
    ]
    for paths, argument in cases:
        with raises(argument):
            read_scores(TINY, paths)
    (tmp_path / "rubbish.csv").write_bytes(b"\xff\xfe\x00")
    with raises("scores", value=str(tmp_path / "rubbish.csv")):
        read_scores(TINY, [tmp_path / "rubbish.csv"])
