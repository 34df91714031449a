"""Recall@1: by hand, by brute force, in blocks, invalid arguments."""

import doctest

import numpy as np
import pytest
import torch
from raises import raises

from unweave.metrics import recall_at_1 as public
from unweave.metrics import retrieval
from unweave.metrics.retrieval import recall_at_1


def brute(codes, classes, distance):
    right = []
    for i in range(len(codes)):
        others = [j for j in range(len(codes)) if j != i]
        if not any(classes[j] == classes[i] for j in others):
            continue
        if distance == "cosine":
            unit = codes / np.linalg.norm(codes, axis=1, keepdims=True)
            found = max(others, key=lambda j: unit[i] @ unit[j])
        else:
            found = min(others, key=lambda j: np.linalg.norm(codes[i] - codes[j]))
        right.append(classes[found] == classes[i])
    return np.mean(right)


@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
def test_as_by_brute_force_and_in_blocks(distance, monkeypatch):
    rng = np.random.default_rng(0)
    classes = np.append(rng.integers(0, 5, 80), 9)  # the last class has one row
    codes = rng.normal(size=(81, 3)) + classes[:, None] % 5 / 2
    expected = brute(codes, classes, distance)
    assert recall_at_1(codes, classes, distance=distance) == pytest.approx(expected)
    monkeypatch.setattr(retrieval, "BLOCK", 81 * 7)
    assert recall_at_1(codes, classes, distance=distance) == pytest.approx(expected)
    assert public(torch.from_numpy(codes), torch.from_numpy(classes), distance=distance) == pytest.approx(expected)
    assert recall_at_1(codes, [f"c{c}" for c in classes], distance=distance) == pytest.approx(expected)


def test_known_cases():
    assert recall_at_1([[0.0], [1.0], [10.0], [11.0]], [0, 0, 1, 1]) == 1.0
    assert recall_at_1([[0.0], [1.0], [10.0], [11.0]], [0, 1, 0, 1]) == 0.0
    # a collapsed code finds nobody better than another: 1 of 3 others has the class
    assert recall_at_1(np.zeros((4, 2)), [0, 0, 1, 1]) == pytest.approx(1 / 3)
    assert recall_at_1([[1.0, 0.0], [9.0, 0.1], [0.0, 1.0], [0.1, 9.0]], [0, 0, 1, 1], distance="cosine") == 1.0
    assert doctest.testmod(retrieval).failed == 0


@pytest.mark.parametrize(
    ("codes", "classes", "options", "argument", "value"),
    [
        ([[0.0], [1.0]], [0, 1], {}, "classes", "one row per class"),
        ([[0.0], [1.0]], [0, 0, 0], {}, "classes", "shape (3,)"),
        ([0.0, 1.0], [0, 0], {}, "codes", "shape (2,)"),
        ([[0.0], [float("nan")]], [0, 0], {}, "codes", "NaN or infinity"),
        ([[0.0], [1.0]], [0.0, float("nan")], {}, "classes", "NaN"),
        ([[0.0], [1.0]], [None, {}], {}, "classes", "object"),
        ([[0.0], [1.0]], [0, 0], {"distance": "l1"}, "distance", "l1"),
    ],
)
def test_invalid_arguments(codes, classes, options, argument, value):
    with raises(argument, value=value):
        recall_at_1(codes, classes, **options)
