"""The page of a study: a dot per run, and the published numbers."""

import re

import pytest
from raises import raises

from unweave.report.charts.strips import StripRow, draw
from unweave.report.pages.study import study_page

STRIPS = [
    StripRow(
        "family & all",
        True,
        0,
        [(0.1, "seed 0"), (0.3, "seed 1")],
        0.2,
        [(0.2, 0.4, "range, read: <a figure>")],
    ),
    StripRow("one setting", False, 0, [(0.3, "seed 1")], 0.3, [(0.25, 0.25, "median, recalled: a table")]),
    StripRow("none yet", False, 1, [], float("nan"), []),
]
TABLES = dict(
    title="tiny",
    paper="Nobody 2026",
    question="Does it run?",
    facts=["scale full"],
    notes=["A note."],
    legend=[("read", "in the source")],
    headers=["row", "runs", "MIG"],
    rows=[(True, ["family", "2", "0.2"]), (False, ["one", "1", "0.3"])],
    comparison_headers=["row", "source"],
    comparison=[["family", "1"]],
    sources=["<a figure>"],
)


def test_positions_of_runs_and_published_numbers():
    drawn = str(draw("mig", STRIPS)["svg"])
    places = [float(x) for x in re.findall(r'class="dot run0" cx="([\d.]+)%"', drawn)]
    assert len(places) == 3 and places[1] == places[2] > places[0]
    start, end = (float(x) for x in re.search(r'range" x1="([\d.]+)%" x2="([\d.]+)%"', drawn).groups())
    assert (places[1] - start) == pytest.approx((end - start) / 2, abs=0.02)  # 0.3 is half way from 0.2 to 0.4
    assert drawn.count('class="median"') == 1 and drawn.count('class="published"') == 1
    assert "family &amp; all" in drawn and "&lt;a figure&gt;" in drawn


def test_page_is_self_contained(tmp_path):
    page = study_page(TABLES, {"mig": STRIPS}, tmp_path / "table.html").read_text()
    assert "Does it run?" in page and "Mutual information gap" in page and "&lt;a figure&gt;" in page
    assert not re.search(r"(src|href)=|@import|url\(", page)


def test_a_page_without_published_numbers_or_scores(tmp_path):
    page = study_page(TABLES | {"comparison": []}, {}, tmp_path / "table.html").read_text()
    assert "Comparison with published" not in page and "<svg" not in page


def test_page_that_cannot_be_written_is_a_user_error(tmp_path):
    (tmp_path / "file").write_text("")
    with raises("out"):
        study_page(TABLES, {}, tmp_path / "file" / "table.html")


def density(values, pooled=True):
    """Return the outline of the density of these runs in units of 0 to 100; [] if it is not drawn."""
    strip = StripRow("family", pooled, 0, [(value, "run") for value in values], 0.0, [])
    found = re.search(r'class="density run0" points="([^"]+)"', str(draw("mig", [strip])["svg"]))
    return [tuple(map(float, point.split(","))) for point in found.group(1).split()] if found else []


def test_density_of_the_runs_of_a_family():
    values = [0.1, 0.11, 0.12, 0.12, 0.13, 0.14, 0.3, 0.5]
    points = density(values)
    across, heights = [x for x, _ in points], [y for _, y in points]
    widest = across[heights.index(min(heights))]
    assert min(heights) == 0.0 and max(heights) == 100.0  # the full height at its maximum
    assert widest < min(across) + 0.2 * (max(across) - min(across))  # where most runs are
    assert density(values, pooled=False) == [] and density(values[:4]) == [] and density([0.2] * 9) == []
