"""The panel with the map of a two-dimensional code."""

import re

import numpy as np
import pytest
import torch
from halves import SEES, HalvesData, look, paint, scored, trained, view

import unweave as uw
from unweave.contract import Representation
from unweave.report import report
from unweave.report.images import image_grid
from unweave.report.panels.latent_map import FIELD, LEFT, PANEL, SIDE, context, corners, decoded_map

KNOWS = scored([[1.3, 0.0], [0.0, 0.9]])


def latent_map(model, result=KNOWS):
    return context(view(model, result))


def test_only_codes_of_two_latents_that_can_be_decoded_have_a_map():
    assert PANEL.render(view(trained(), KNOWS))
    assert not PANEL.render(view(trained(SEES._replace(latents=3)), KNOWS))
    assert not PANEL.render(view(trained(Representation(look, 2)), KNOWS))


def test_map_is_decoded_from_lower_left_to_upper_right():
    codes = look(HalvesData().images(torch.arange(16))).numpy()
    (low, _), (high, _) = np.percentile(codes, (1, 99), axis=0)
    pixels = decoded_map(trained(), *corners(codes))
    steps = np.linspace(low, high, SIDE)
    rows = [[paint(torch.tensor([[x, y]]).float())[0].numpy() for x in steps] for y in steps[::-1]]
    assert np.array_equal(pixels, image_grid(rows))


def test_both_axes_have_one_scale():
    """Codes three times as wide as high: they fill the middle third, and the map is decoded from a square."""
    asked = []
    wide = SEES._replace(
        encode=lambda x: look(x) * torch.tensor([3.0, 1.0]), decode=lambda z: asked.append(z) or paint(z.clamp(0, 1))
    )
    found = latent_map(trained(wide))
    width, height = (asked[0].amax(0) - asked[0].amin(0)).tolist()
    assert width == pytest.approx(height) and asked[0].mean(0).tolist() == pytest.approx([1.5, 0.5], abs=1e-5)
    heights = {int(y) for y in re.findall(r"M\d+ (\d+)h0", found["svg"])}
    assert len(heights) == 4  # points near the ends of the shorter axis are included
    assert max(heights) - min(heights) == pytest.approx(FIELD / 3, abs=6)


def test_dots_are_coloured_by_the_factor_the_code_knows_best():
    found = latent_map(trained())
    assert found["factor"] == "left"
    assert found["legend"] == [("var(--kind0)", "black"), ("var(--kind1)", "dark"), ("var(--kind2)", "light"),
                            ("var(--kind3)", "white")]  # fmt: skip
    paths = dict(re.findall(r'style="stroke:([^"]*)" d="([^"]*)"', found["svg"]))
    places = {colour: re.findall(r"M(\d+) (\d+)h0", d) for colour, d in paths.items()}
    assert set(places) <= {colour for colour, _ in found["legend"]}
    dots = [(int(x), int(y)) for some in places.values() for x, y in some]
    assert all(LEFT <= x <= LEFT + FIELD and 0 <= y <= FIELD for x, y in dots)
    columns = {colour: {int(x) for x, _ in some} for colour, some in places.items()}
    assert all(len(xs) == 1 for xs in columns.values())  # a class of the left half has one horizontal position
    ordered = [min(columns[colour]) for colour, _ in found["legend"] if colour in columns]
    assert ordered == sorted(ordered)


class Missing(HalvesData):
    grid = False

    def factors(self, index_B):
        return torch.where(index_B[:, None] == 5, -1, super().factors(index_B))

    def images(self, index_B):
        return paint(super().factors(index_B) / 3)


def test_unknown_classes_are_grey_and_many_are_shades():
    assert "stroke:var(--faint)" in latent_map(trained(data=Missing()))["svg"]
    many = HalvesData()
    many.factor_sizes, many.factor_values = (16, 1), (tuple(range(16)), (0,))
    found = latent_map(trained(data=many, supervision="none"))
    assert len(found["legend"]) == 5
    assert found["legend"][0][0].startswith("#")
    assert [name for _, name in found["legend"]] == ["0", "4", "8", "11", "15"]


def test_without_factors_there_is_one_colour():
    nothing = latent_map(trained(supervision="none"), scored(np.zeros((2, 0)), names=()))
    assert nothing["factor"] == ""
    assert nothing["legend"] == []
    assert nothing["svg"].count("<path") == 1


def test_constant_code_has_a_map():
    still = latent_map(trained(SEES._replace(encode=lambda x: torch.zeros(len(x), 2))))
    assert "nan" not in still["svg"]


def test_page_of_a_code_of_two_latents(tmp_path):
    options = {"net": "small", "latents": 2, "steps": 2, "batch": 4, "device": "cpu"}
    run = uw.train("vae", "digits(size=8)", out=tmp_path / "run", **options)
    page = report([run], tmp_path / "r.html").read_text()
    assert "Map of the code" in page
    assert 'alt="images decoded from a grid of codes"' in page
    assert "coloured by digit" in page
    assert "nan" not in re.search(r'<div class="plane">.*?</section>', page, re.DOTALL).group().split("base64")[0]
