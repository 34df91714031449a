"""Every method, metric and data set has its page, with the fixed headings; every page belongs to one."""

import re
from pathlib import Path

import pytest

from unweave.contract import hyper_params
from unweave.data import DATASETS
from unweave.methods import METHODS
from unweave.metrics import METRICS

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
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
    text = (REFERENCE / room / f"{name}.md").read_text()
    found = [line[3:].strip() for line in text.splitlines() if line.startswith("## ")]
    assert found == HEADINGS[room]
    sections = text.split("\n## ")[1:]
    assert all(len(section.split("\n", 1)[1].strip()) > 20 for section in sections), "an empty section"
    assert "<!--" not in text, "a section still to be written"
    if room == "methods":
        assert all(f"`{knob}`" in text for knob in hyper_params(METHODS[name])), "a hyper-parameter without a word"


def test_no_page_without_a_subject():
    for room, names in NAMES.items():
        assert {p.stem for p in (REFERENCE / room).glob("*.md")} == set(names)


PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/**/*.md")])


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in PAGES])
def test_links_resolve(page):
    """Every relative link or picture of a page exists, and a link to a heading has that heading."""
    path = ROOT / page
    for target in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", path.read_text())):
        if not target.startswith("http"):
            file, _, heading = target.partition("#")
            linked = path.parent / file if file else path
            assert linked.exists(), target
            assert not heading or heading in anchors(linked), target


def anchors(path):
    """The names that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", CODE.sub("", path.read_text()), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
