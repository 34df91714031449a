"""Every panel of the list: it renders for small runs, is valid HTML, and is left out without one of its needs."""

import math
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from halves import SEES, look, paint, trained, view
from torch import nn

import unweave as uw
from unweave.contract import Part, Representation
from unweave.report import panels
from unweave.report.charts.strips import StripRow
from unweave.report.panels import PANELS
from unweave.report.views import NEEDS, ComparisonView, StudyView, SweepView, view_run

PAGES = ("run", "comparison", "sweep", "study")
FOLDER = Path(panels.__file__).parent
VOID = {"img", "meta", "br", "line", "circle", "path", "rect", "polygon"}


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory):
    """One trained run that all panels share."""
    options = {"net": "small", "latents": 2, "steps": 3, "batch": 4, "log_every": 1, "device": "cpu"}
    return view_run(uw.train("beta_vae", "digits(size=8)", out=tmp_path_factory.mktemp("runs") / "run", **options))


def classifier():
    """A stub of a method that knows the class of the left half."""

    def one_hot(images):
        return nn.functional.one_hot((look(images)[:, 0] * 3).round().long(), 4).float()

    parts = (Part("class", 4, classes=True),)
    what = Representation(one_hot, 4, lambda z: paint(z[:, :2]), parts=parts, classify=lambda x: (one_hot(x),))
    return view(trained(what, "labels(n=4, factors=['left'])"))


def frame(run, scores=("mig", "modularity")):
    rows = [
        {"run": str(run.trained.folder.path), "method": "beta_vae", "data": "digits", "seed": seed, "steps": 3}
        | {"beta": beta, "diverged": math.nan, "mig": 0.1 * beta + 0.01 * seed, "modularity": 0.9 - 0.01 * seed}
        for beta in (1, 4)
        for seed in range(3)
    ]
    table = pd.DataFrame(rows)
    table.attrs = {"settings": ["beta"], "scores": list(scores)}
    return table


def study():
    strips = [StripRow("a family", True, 0, [(0.1, "seed 0"), (0.3, "seed 1")], 0.2, [(0.2, 0.4, "read")])]
    texts = {"title": "tiny", "paper": "Nobody 2026", "question": "Does it run?", "facts": [], "notes": []}
    tables = {"legend": [("read", "in the source")], "headers": ["row", "MIG"], "rows": [(True, ["a family", "0.2"])]}
    comparison = {"comparison_headers": ["row", "source"], "comparison": [["a family", "1"]], "sources": ["a table"]}
    return StudyView(texts | tables | comparison, {"mig": strips})


def views(page, run):
    """Return views of a page on which, together, every panel must be shown."""
    other = replace(run, trained=run.trained._replace(config=run.trained.config.replace(seed=1)), number=1)
    return {
        "run": lambda: [run, view(trained(SEES)), classifier()],
        "comparison": lambda: [ComparisonView([run, other])],
        "sweep": lambda: [SweepView(frame(run))],
        "study": lambda: [study()],
    }[page]()


def with_representation(run, **changes):
    """Return a run whose representation has other fields."""
    what = run.trained.representation._replace(**changes)
    return replace(run, trained=trained(what, run.trained.config.supervision, data=run.trained.data))


def without_factors(run):
    latents = run.trained.representation.latents
    empty = {"factor_names": (), "information": np.zeros((latents, 0)), "entropies": np.zeros(0)}
    return replace(run, result=run.result._replace(**empty, known=None, chance=None, luck=None))


def without_scores(sweep):
    return SweepView(sweep.frame.assign(mig=math.nan, modularity=math.nan))


REMOVE = {
    ("run", "factors"): without_factors,
    ("run", "decoder"): lambda run: with_representation(run, decode=None),
    ("run", "parts"): lambda run: with_representation(run, parts=()),
    ("run", "classes"): lambda run: with_representation(run, parts=(), classify=None, cluster=None),
    ("run", "two latents"): lambda run: with_representation(run, latents=3),
    ("run", "log"): lambda run: replace(run, curves={}),
    ("comparison", "differences"): lambda page: ComparisonView([page.runs[0]] * 2),
    ("comparison", "log"): lambda page: ComparisonView([replace(run, curves={}) for run in page.runs]),
    ("sweep", "scores"): without_scores,
    ("sweep", "ranking"): without_scores,
    ("study", "published numbers"): lambda page: page._replace(tables=page.tables | {"comparison": []}),
    ("study", "scores"): lambda page: page._replace(plots={}),
}


class Parser(HTMLParser):
    """Collect the text and check that every element is closed."""

    def __init__(self, html):
        super().__init__()
        self.open, self.text = [], ""
        self.feed(html)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attributes:
            assert name not in ("src", "href") or value.startswith(("data:image/png;base64,", "#")), value

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open and self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data):
        if "script" not in self.open:
            self.text += data


def by_id(panel):
    return panel.id


@pytest.mark.parametrize("panel", PANELS, ids=by_id)
def test_panel_renders(panel, tiny_run):
    shown = [html for page in views(panel.page, tiny_run) if (html := panel.render(page, level=3))]
    assert shown, "the panel is shown on no page of this test"
    for html in shown:
        text = Parser(html).text
        assert f'data-panel="{panel.id}"' in html and "<h3>" in html
        assert "nan" not in text.split() and "None" not in text.split()


@pytest.mark.parametrize(
    ("panel", "need"), [pytest.param(p, need, id=f"{p.id}-{need}") for p in PANELS for need in p.needs]
)
def test_panel_is_left_out_without(panel, need, tiny_run):
    for page in views(panel.page, tiny_run):
        assert not panel.render(REMOVE[panel.page, need](page))


def test_every_need_can_be_removed():
    assert set(REMOVE) == {(page, need) for page, needs in NEEDS.items() for need in needs}


def test_listed_panels_are_the_files_of_the_folder():
    assert sorted(panel.id for panel in PANELS) == sorted(path.stem for path in FOLDER.glob("*.html"))
    assert [panel.id for panel in PANELS] == panels.MODULES


def test_listed_panels_have_a_page_and_a_unique_title():
    assert {panel.page for panel in PANELS} == set(PAGES)
    assert len({(panel.page, panel.title) for panel in PANELS}) == len(PANELS)
    assert all(panel.title and panel.title[0].isupper() for panel in PANELS)
