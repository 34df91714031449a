"""The first number of a page about classes."""

import re

import numpy as np
import pandas as pd

import unweave as uw
from unweave.data.user.arrays import Arrays
from unweave.data.user.factor_table import factor_table
from unweave.report import report

COLOURS = ("red", "green", "blue")


def test_first_number_is_not_an_accuracy_if_all_known_classes_were_labelled(tmp_path):
    """Accuracy on the labels of the training says nothing about other images."""
    names = [COLOURS[row % 3] if row < 30 else None for row in range(40)]
    images = np.random.default_rng(0).random((40, 1, 8, 8)).astype(np.float32)
    data = Arrays(images, factor_table({"colour": pd.Series(names, dtype=object)})[0])
    options = {"steps": 2, "batch": 8, "latents": 2, "device": "cpu"}
    heads = []
    for supervision in ("labels", "labels(n=12)"):
        model = uw.train("m2", data, supervision=supervision, out=tmp_path / supervision, **options)
        page = report([model], tmp_path / "r.html").read_text()
        heads.append(re.search(r'<p class="name">([^<]+)</p>\s*<p class="big">([^<]+)<span>([^<]+)<', page).groups())
    assert "Accuracy" not in heads[0][0] and "colour" in heads[0][0] and heads[0][1] == "3" and "30" in heads[0][2]
    assert "Accuracy" in heads[1][0] and "colour" in heads[1][0] and heads[1][2] == " %"
