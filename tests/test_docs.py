"""Pages: fixed headings, links that resolve, commands and Python that fit the package, plain prose."""

import re
from pathlib import Path

import pytest
from doc_code import check_command, check_data_calls, check_python, commands, python_blocks

from unweave.methods import METHODS
from unweave.metrics import METRICS

ROOT = Path(__file__).parents[1]
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"`(?:[^`\n]|\n(?!\n))*`|^ {4}.*$", re.MULTILINE)
PAGES = sorted(str(p.relative_to(ROOT)) for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
ALL_PAGES = sorted([*PAGES, *(str(p.relative_to(ROOT)) for p in ROOT.glob("benchmarks/**/*.md"))])
RUNNABLE = [page for page in PAGES if page != "CONTRIBUTING.md"]  # tests/extension runs its code
LONGEST_LINE = 140
# words of the former dialect and what to write instead
BANNED = {
    r"told": "given, stated",
    r"critics?": "discriminator",
    r"(?<!there )(is|are) no": "is not a",
    r"(gone|goes|go) on with": "continued, resumed",
    r"hyper-parameters?": "hyperparameter",
    r"knobs?": "hyperparameter",
    r"by heart": "memorised",
}


def read(page):
    return (ROOT / page).read_text()


def test_the_readme_links_every_method_and_metric():
    pages = [*(f"methods/{name}.md" for name in METHODS), *(f"metrics/{name}.md" for name in METRICS)]
    assert [page for page in pages if f"docs/reference/{page}" not in read("README.md")] == []
    assert f"any of {len(METHODS)} methods, compute {len(METRICS)} metrics" in read("README.md")


@pytest.mark.parametrize("page", ALL_PAGES)
def test_links_resolve(page):
    """Relative links and images exist, and a link to a heading has that heading."""
    path = ROOT / page
    for target in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", read(page))):
        if not target.startswith("http"):
            file, _, heading = target.partition("#")
            linked = path.parent / file if file else path
            assert linked.exists(), target
            assert not heading or heading in anchors(linked), target


@pytest.mark.parametrize("page", RUNNABLE)
def test_paths_exist(page):
    """Paths of the repository in code exist, such as `tests/test_docs.py` or `python benchmarks/speed/step.py`."""
    paths = re.findall(r"(?<![\w/.-])((?:tests|benchmarks|examples|unweave)/[\w/.-]+[\w/])", read(page))
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", RUNNABLE)
def test_named_tests_exist(page):
    """Tests named in a page exist, such as `data/test_views.py::test_a_view_of_a_view`; paths are below tests/."""
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", read(page))
    files = {path: (ROOT / "tests" / path).read_text() for path, _ in named if (ROOT / "tests" / path).exists()}
    assert [f"{path}::{name}" for path, name in named if f"def {name}(" not in files.get(path, "")] == []


def test_every_guarantee_names_a_test():
    rows = [line for line in read("docs/guide/guarantees.md").splitlines() if line.startswith("| ")]
    statements = [row for row in rows if not row.startswith(("| statement", "| ---"))]
    assert len(statements) > 20
    assert [row[:60] for row in statements if not re.search(r"`[\w/]+\.py::\w+`", row)] == []


def anchors(path):
    """Return the anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", CODE.sub("", path.read_text()), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", RUNNABLE)
def test_commands_exist(page):
    for line in commands(read(page)):
        check_command(line)
    check_data_calls(read(page))


@pytest.mark.parametrize("page", RUNNABLE)
def test_python_resolves(page):
    for block in python_blocks(read(page)):
        check_python(block)


@pytest.mark.parametrize("page", ALL_PAGES)
def test_prose_is_plain(page):
    text = CODE.sub("", read(page))
    prose = [line for line in text.splitlines() if not line.lstrip().startswith("|")]
    assert [line[:60] for line in prose if len(line) > LONGEST_LINE] == []
    words = INLINE_CODE.sub("", text)
    found = {re.sub(r"\s+", " ", m.group()): better for word, better in BANNED.items() for m in banned(word, words)}
    assert not found, "write instead: " + "; ".join(f"{word} -> {better}" for word, better in found.items())


def banned(word, text):
    return re.finditer(rf"(?i)\b(?:{word})\b".replace(" no", r"\s+no"), text)


def test_banned_words_are_found():
    assert list(banned("is no", "such a code is\nno vector")) and not list(banned("is no", "this is not"))


@pytest.mark.parametrize(
    "line",
    [
        "unweave trian vae", "unweave train vea", "unweave train vae --step 3", "unweave train vae --set beta=2",
        "unweave train vae --data 'sprite(size=32)'", "unweave study runs x",
    ],
)  # fmt: skip
def test_wrong_commands_are_found(line):
    with pytest.raises(Exception):  # noqa: B017
        check_command(line)


def test_wrong_options_of_data_are_found():
    check_data_calls("`correlated(data='sprites(size=32)', factors=['posX', 'posY'])`")
    with pytest.raises(AssertionError, match="colour"):
        check_data_calls("`split(data='rooms(colour=1)', part='train')`")


@pytest.mark.parametrize(
    "block",
    [
        "import unweave.trian", "import unweave as uw\nuw.trian()", "from unweave.model import loda",
        "import unweave as uw\nuw.load('x', dta=1)",
    ],
)  # fmt: skip
def test_wrong_python_is_found(block):
    with pytest.raises((ImportError, AttributeError, AssertionError)):
        check_python(block)
