"""Every method, metric and data set has its page, with the fixed headings; every page belongs to one."""

from pathlib import Path

import pytest

from unweave.contract import hyper_params
from unweave.data import DATASETS
from unweave.methods import METHODS
from unweave.metrics import METRICS

DOCS = Path(__file__).parents[1] / "docs"
HEADINGS = {
    "methods": [
        "Idea", "Equation", "Usage", "Logged quantities", "Differences from the paper and from the official code",
        "Results",
    ],
    "metrics": [
        "Idea", "Equation", "Usage", "Edge cases", "Differences from the paper and from other implementations",
        "Checked against",
    ],
    "data": ["What it is", "Factors", "Usage", "How it is made", "Licence and source", "Known traps"],
}  # fmt: skip
NAMES = {"methods": METHODS, "metrics": METRICS, "data": DATASETS}


@pytest.mark.parametrize(("room", "name"), [(room, name) for room, names in NAMES.items() for name in names])
def test_page(room, name):
    text = (DOCS / room / f"{name}.md").read_text()
    found = [line[3:].strip() for line in text.splitlines() if line.startswith("## ")]
    assert found == HEADINGS[room]
    sections = text.split("\n## ")[1:]
    assert all(len(section.split("\n", 1)[1].strip()) > 20 for section in sections), "an empty section"
    assert "<!--" not in text, "a section still to be written"
    if room == "methods":
        assert all(f"`{knob}`" in text for knob in hyper_params(METHODS[name])), "a hyper-parameter without a word"


def test_no_page_without_a_subject():
    for room, names in NAMES.items():
        assert {p.stem for p in (DOCS / room).glob("*.md")} == set(names)


def test_pictures_exist():
    for page in DOCS.rglob("*.md"):
        for part in page.read_text().split("](")[1:]:
            target = part.split(")")[0]
            if not target.startswith(("http", "#")):
                assert (page.parent / target.split("#")[0]).exists(), f"{page}: {target}"
