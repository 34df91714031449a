"""Names of classes of labels, and warnings about them."""

import numpy as np
import pandas as pd
import pytest
import torch
from mentions import mentions

from unweave.data import VIEWS, Sprites, parse_supervision
from unweave.data.supervision.label_mapping import label_mappings
from unweave.data.user.arrays import Arrays
from unweave.data.user.factor_table import factor_table

NUMBERS = np.random.default_rng(0).random(120)


def images(count=120):
    return np.zeros((count, 1, 8, 8), np.float32)


def made(**columns):
    table, _ = factor_table({name: pd.Series(values) for name, values in columns.items()})
    return Arrays(images(len(next(iter(columns.values())))), table)


def warnings(text, data):
    return parse_supervision(text, data).warnings(data)


def test_classes_of_a_binned_factor_are_ranges():
    data = made(kind=NUMBERS)
    (fine,) = label_mappings(parse_supervision("labels", data).labelled_set(data, 0))
    (coarse,) = label_mappings(parse_supervision("labels(bins=5)", data).labelled_set(data, 0))
    assert (fine.size, coarse.size) == (20, 5)
    ends = [name.split(" to ") for name in coarse.names()]
    assert [float(low) for low, _ in ends] == [fine.spans[c][0] for c in (0, 4, 8, 12, 16)]
    assert [float(high) for _, high in ends] == [fine.spans[c][1] for c in (3, 7, 11, 15, 19)]
    (renamed,) = label_mappings(parse_supervision("labels(bins=5, permute=True)", data).labelled_set(data, 3))
    assert sorted(renamed.names()) == sorted(coarse.names()) and renamed.names() != coarse.names()
    own = renamed.class_of(NUMBERS)
    assert own.tolist() == [renamed.classes[data.factor_values[0][c]] for c in data.table.classes_NK[:, 0]]


def test_exact_values_through_views():
    data = made(other=np.arange(120) % 2, kind=NUMBERS)
    part = VIEWS["subset"](data, indices=[7, 3])
    assert data.exact_values(torch.arange(120))[:, 1].tolist() == NUMBERS.tolist()
    assert part.exact_values(torch.arange(2))[:, 1].tolist() == NUMBERS[[7, 3]].tolist()
    (mapping,) = label_mappings(parse_supervision("labels(factors=['kind'])", part).labelled_set(part, 0))
    assert mapping.size == 20 and " to " in mapping.names()[0]


@pytest.mark.parametrize(
    "text, said",
    [
        ("labels", "labels of 'kind' are continuous: 120 different numbers from {} to {} are cut into 20 classes; "),
        (
            "labels(bins=4)",
            "labels of 'kind' are continuous: 120 different numbers from {} to {} are cut into 4 classes",
        ),
        ("labels(bins=2)", "{} to {} are cut into 2 classes"),
    ],
)
def test_warning_about_a_continuous_factor(text, said):
    (line,) = warnings(text, made(kind=NUMBERS))
    assert said.format(f"{NUMBERS.min():.6g}", f"{NUMBERS.max():.6g}") in line
    assert ("bins" in line) == (text != "labels(bins=2)")


def test_warning_about_few_different_numbers():
    (line,) = warnings("labels", made(kind=np.arange(60) % 6 / 4))
    assert mentions(line, "0", "1.25", "6 classes", "bins")


def test_warning_about_similar_names():
    data = made(digit=["one", "One", "two", "o ne", "Two ", "three"], size=[1, 2, 1, 2, 1, 2])
    one, two = warnings("labels", data)
    assert mentions(one, "'digit'", "'One'", "'o ne'", "'one'", "3 classes")
    assert mentions(two, "'digit'", "'Two'", "'two'", "2 classes")
    assert warnings("labels(factors=['size'])", data) == []


def test_no_warnings():
    assert warnings("none", made(kind=NUMBERS)) == []
    assert warnings("labels(n=10)", Sprites()) == []
