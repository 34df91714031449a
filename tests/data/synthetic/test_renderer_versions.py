"""The images of each renderer are pinned: a run identifies rendered data by the call and the version of the renderer.

If a test fails because the images have changed, increment `renderer_version` and enter the new version and hash.
"""

import hashlib

import pytest
import torch

from unweave.data import DATASETS, load_data
from unweave.data.published import FILES
from unweave.data.views import VIEWS

PINNED = {
    "sprites(size=16)": (2, "385fe30745cf6ec3"),
    "sprites(size=16, antialias=2)": (2, "8b30e98c4b66e556"),
    "rooms(size=16)": (2, "705e7570a12040ab"),
    "digits(size=16)": (1, "7b057e2f07abb73d"),
    "colour_sprites(size=16)": (1, "ead4bd8f2cf7c52a"),
    "colour_sprites(size=16, on='background')": (1, "2372de19a0b9c677"),
    "noisy_sprites(size=16)": (1, "d823400fa35f4dc4"),
    "textured_sprites(size=16)": (1, "8e3e7d44fb98d4f1"),
    "clips(size=16)": (1, "f9ac976f861a996f"),
    "clips(size=16, changing='colour')": (1, "26fcd921de259b5e"),
    "noisy(data='sprites(size=16)')": (1, "c0eaf0798b4a9cc2"),
    "split(data='digits(size=16)')": (1, "52ed5e66b5732db4"),
    "subset(data='sprites(size=16)', where={'shape': [1]})": (1, "7a73a7724bacf415"),
}


def sampled_images(data, count=48):
    """Return some pixels of evenly spread images, and their factors.

    They are few pixels in few levels, so that none changes its level where other processors round differently.
    """
    index = torch.linspace(0, data.size - 1, count, dtype=torch.float64).long()
    levels = (data.images(index).flatten()[::23] * 8).round().to(torch.uint8)
    return levels.numpy().tobytes() + data.factors(index).numpy().tobytes()


@pytest.mark.parametrize("text", PINNED)
def test_the_images_of_this_version_are_unchanged(text):
    data = load_data(text)
    found = hashlib.sha256(sampled_images(data)).hexdigest()[:16]
    assert (data.renderer_version, found) == PINNED[text]


def test_every_renderer_is_pinned():
    names = {text.partition("(")[0] for text in PINNED}
    assert DATASETS.keys() - FILES.keys() <= names and {"noisy"} <= names & VIEWS.keys()
