"""The panel of the parts of a code: swaps and interpolations computed by hand, and sentences about collapse."""

import re

import numpy as np
import pytest
import torch
from halves import PARTS, SEES, HalvesData, look, paint, scored, trained, view
from mentions import mentions

import unweave as uw
from unweave.contract import Part, Representation
from unweave.data import parse_supervision
from unweave.report import report
from unweave.report.images import image_grid, sample_images
from unweave.report.information import coordinate_names
from unweave.report.panels.parts import (
    PANEL,
    PartInformation,
    context,
    expected_parts,
    inactive_parts,
    part_findings,
    part_information,
)
from unweave.report.swaps import interpolations, split_code, swap_grid

GROUPS = "groups(by=['left'], size=2)"


# --- swaps ---------------------------------------------------------------------------------------------------------


def test_swap_has_the_first_part_of_its_row_and_the_rest_of_its_column():
    run = trained()
    images = torch.from_numpy(sample_images(run, 5, 0))
    rows, columns = look(images[:2]), look(images[2:])
    body = [[paint(torch.stack([r[0], c[1]])[None])[0].numpy() for c in columns] for r in rows]
    wanted = [[None, *images[2:].numpy()], *([image.numpy(), *line] for image, line in zip(images[:2], body))]
    found = swap_grid(run, split_code(PARTS), down=2, across=3)
    assert np.array_equal(found, image_grid(wanted, column_gaps=[0], row_gaps=[0]))
    assert found[0, 0, -1] == 0  # the corner is transparent
    assert found.shape[:2] == (3 * 32 + 2 + 5, 4 * 32 + 3 + 5)


def test_code_is_split_into_classes_and_the_rest_or_the_first_part_and_the_others():
    assert split_code(()) is None
    assert split_code((Part("content", 3),)) is None
    assert split_code((Part("class", 3, classes=True),)) is None
    two = split_code((Part("style", 2), Part("class", 3, classes=True)))
    assert (two.first, two.second, two.is_first_Z.tolist()) == ("class", "style", [False, False, True, True, True])
    three = split_code((Part("content", 1), Part("style", 1), Part("noise", 1)))
    assert (three.first, three.second, three.is_first_Z.tolist()) == (
        "content",
        "style and noise",
        [True, False, False],
    )


def leaky(images):
    """Encode a content that depends a little on the right half."""
    codes = look(images)
    return torch.stack([codes[..., 0] + 0.1 * codes[..., 1], codes[..., 1]], -1)


def joined(images):
    codes = leaky(images)
    return torch.cat([codes[..., :1].mean(-2, keepdim=True).expand_as(codes[..., :1]), codes[..., 1:]], -1)


def test_interpolation_is_between_group_contents_with_the_first_style(monkeypatch):
    asked, made = [], []
    what = Representation(leaky, 2, lambda z: made.append(z) or paint(z.clamp(0, 1)), parts=PARTS,
                          encode_group=lambda x: asked.append(x) or joined(x))  # fmt: skip
    found = interpolations(trained(what), split_code(PARTS), count=2, steps=5)
    assert len(found) == 2
    (groups,) = asked
    assert groups.shape == (4, 2, 1, 32, 32)
    contents = look(groups)[..., 0]
    assert (contents[:, 0] == contents[:, 1]).all()  # groups as the supervision draws them
    assert len(set(contents[:, 0].tolist())) == 4  # all different
    codes = joined(groups)[:, 0]
    for start, z in zip((0, 2), made, strict=True):
        torch.testing.assert_close(z[:, 0], torch.linspace(codes[start, 0], codes[start + 1, 0], 5))
        torch.testing.assert_close(z[:, 1], codes[start, 1].expand(5))
    shade = "(black|dark|light|white)"
    assert all(re.fullmatch(f"left {shade} → {shade}", changes[0]) for changes, _ in found)
    assert found[0][1].shape[1] == 7 * 32 + 6 + 2 * 5  # a member at either end


def test_interpolation_without_groups_is_between_images():
    for supervision in ("none", "match(content=['left'])"):
        found = interpolations(trained(supervision=supervision), split_code(PARTS), count=3)
        assert len(found) == 3
        assert context(view(trained(supervision=supervision)))["between"] == "image"
    assert not interpolations(trained(data=OneGroup()), split_code(PARTS))


class OneGroup(HalvesData):
    def factors(self, index_B):
        return torch.stack([torch.zeros_like(index_B), index_B % 4], 1)

    grid, factor_sizes = False, (1, 4)


# --- knowledge and its sentences -----------------------------------------------------------------------------------


def test_part_information_is_that_of_the_best_latent():
    result = scored([[0.1, 0.2], [0.6, 0.0], [0.3, 1.2]], [1.0, 1.0, 1.0])
    what = SEES._replace(latents=3, parts=(Part("content", 2), Part("style", 1)))
    known = part_information(trained(what), result)
    assert known.share_PK == pytest.approx(np.array([[0.6, 0.2], [0.3, 1.2]]) / np.log(4))
    assert known.expected_part_K == (0, 1)
    chance = result._replace(
        chance=np.full((3, 2), 0.1), luck=np.array([0.1, 0.15])
    )  # what counting finds in any case is taken off
    share = part_information(trained(what), chance).share_PK
    assert share == pytest.approx(np.array([[0.5, 0.0], [0.2, 1.1]]) / (np.log(4) - 0.1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("none", (-1, -1)),
        ("groups(by=['right'], size=2)", (1, 0)),
        ("match(content=['left'], style=['right'])", (0, 1)),
        ("labels(n=2)", (-1, -1)),
    ],
)
def test_supervision_determines_the_part_of_factors(text, expected):
    data = HalvesData()
    assert expected_parts(parse_supervision(text, data), data) == expected


def known(share, expected=(0, 0, 1), names=("shape", "hue", "angle")):
    return PartInformation(PARTS, names, np.array(share), expected)


def said(share, dead=None, expected=(0, 0, 1)):
    return " ".join(part_findings(known(share, expected), dead or {})).replace("\N{NARROW NO-BREAK SPACE}", " ")


def test_parts_that_encode_the_expected_factors():
    found = said([[0.9, 0.8, 0.0], [0.01, 0.0, 0.7]])
    assert mentions(found, "content", "shape", "90 %", "hue", "80 %", "style", "angle", "70 %")
    assert "collapsed" not in found and "Leakage" not in found


def test_collapsed_parts_come_first():
    both = said([[0.9, 0.8, 0.6], [0.01, 0.0, 0.02]])
    assert mentions(both, "style", "collapsed", "angle", "content", "shape", "90 %", "hue", "80 %")
    assert mentions(both, "Leakage", "content", "angle", "60 %")
    style = said([[0.0, 0.01, 0.0], [0.01, 0.0, 0.9]])
    assert mentions(style, "content", "collapsed", "shape", "hue", "style", "angle", "No part", "shape", "hue")
    dead = said([[0.9, 0.8, 0.0], [0.3, 0.3, 0.3]], {1: "none of its latents moves"})
    assert mentions(dead, "style", "collapsed", "none of its latents moves", "content", "shape")
    assert "30 %" not in dead  # what an inactive part seems to encode is chance
    assert "Leakage" not in said([[0.0, 0.0, 0.0], [0.9, 0.8, 0.3]], {0: "it is still", 1: "it is still"})


def test_content_that_has_collapsed_to_one_factor_and_leaks():
    assert mentions(said([[0.9, 0.0, 0.0], [0.0, 0.0, 0.7]]), "content", "collapsed to shape", "hue", "style", "angle")
    leak = said([[0.9, 0.8, 0.3], [0.0, 0.2, 0.7]])
    assert mentions(leak, "Leakage", "style", "hue", "20 %") and mentions(leak, "Leakage", "content", "angle", "30 %")


def test_part_without_expected_factors_has_not_collapsed():
    found = said([[0.9, 0.8, 0.7], [0.0, 0.0, 0.0]], expected=(0, 0, 0))
    assert mentions(found, "content", "shape", "90 %", "hue", "80 %", "angle", "70 %") and "style" not in found
    assert said([[0.9, 0.8, 0.7], [0.0, 0.0, 0.0]], expected=(-1, -1, -1)) == ""


def test_inactive_parts_by_kl_or_by_variance():
    assert inactive_parts(trained(), scored(), 0) == {}
    by_kl = inactive_parts(trained(), scored(kl=[3.0, 0.001]), 0)
    assert list(by_kl) == [1] and "0.01 nats" in by_kl[1]
    wide = trained(SEES._replace(latents=3, parts=(Part("content", 1), Part("style", 2))))
    assert inactive_parts(wide, scored(kl=[3.0, 0.0, 0.0]), 0) == by_kl
    assert inactive_parts(wide, scored(kl=[3.0, 0.0, 0.2]), 0) == {}  # one latent is enough
    nothing = [np.nan, np.nan]
    assert inactive_parts(trained(), scored(kl=nothing), 0) == {}
    still = SEES._replace(encode=lambda x: look(x) * torch.tensor([1.0, 0.1]))
    by_variance = inactive_parts(trained(still), scored(kl=nothing), 0)
    assert list(by_variance) == [1] and "variance" in by_variance[1]


def test_coordinates_are_named_after_their_part():
    assert coordinate_names(trained()) == [("content", False), ("style", False)]
    assert coordinate_names(trained(Representation(look, 2))) == [("", False)] * 2


def test_panel_without_decoder_has_only_numbers():
    panel = context(view(trained(Representation(look, 2, parts=PARTS)), scored()))
    assert panel["swap"] is None
    assert panel["interpolations"] == []
    assert panel["title"] == "Content and style"
    assert panel["known"].expected_part_K == (0, 1)
    assert sorted(panel["accuracy"]["content"]) == [1]
    assert not PANEL.render(view(trained(Representation(look, 2))))


# --- the page ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    options = {"net": "small", "latents": 4, "steps": 3, "batch": 4, "log_every": 1, "device": "cpu"}
    uw.train("ml_vae", "digits(size=8)", supervision="groups(by=['digit'], size=2)", out=root / "grouped", **options)
    uw.train("beta_vae", "digits(size=8)", out=root / "plain", **options)
    return root


def test_page_of_a_grouped_model(runs):
    page = report([runs / "grouped"], runs / "grouped.html").read_text()
    for words in (
        "Content and style",
        "Swaps",
        "Interpolations of content",
        "Predicting the group",
        "content of 4 images combined",
    ):
        assert words in page
    assert page.count('alt="from one group to another"') == 4
    assert re.search(r"digit \d → \d", page)
    assert "<em>content</em>" in page
    assert "KL of the content" in page
    addresses = re.findall(r"""(?:src|href)\s*=\s*["']?([^"'\s>]+)""", page)
    assert all(a.startswith(("data:image/png;base64,", "#")) for a in addresses)


def test_page_of_an_undivided_code_has_no_parts(runs):
    page = report([runs / "plain"], runs / "plain.html").read_text()
    for words in ("Swaps", "Interpolations of content", "Predicting the group", "Analogies", "Map of the code", "<em>"):
        assert words not in page


def test_both_runs_on_one_page(runs):
    page = report([runs / "plain", runs / "grouped"], runs / "both.html").read_text()
    assert page.count("Predicting the group") == 1
    assert "<h4>Swaps</h4>" in page
