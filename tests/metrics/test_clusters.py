import numpy as np
import pytest
import torch
from raises import raises

from unweave.metrics import cluster_error, cluster_labels

# Clusters 0 and 1; their most probable rows are 0 and 3.
CHANCES = np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.05, 0.95], [0.4, 0.6]])
LABELS = np.array([7, 7, 2, 2, 2])


def test_by_hand():
    """Row 2 is a 2 in the cluster of 7; it is one of three rows that do not determine a label."""
    assert cluster_labels(CHANCES, LABELS).tolist() == [7, 2]
    assert cluster_error(CHANCES, LABELS) == pytest.approx(1 / 3)
    assert cluster_error(CHANCES, LABELS, validation=(CHANCES, LABELS)) == pytest.approx(1 / 5)


def test_clusters_with_their_most_frequent_label():
    """Cluster 0: the most probable row is a 5, most rows are 3. Cluster 1: a 4 and a 9. Cluster 2 is empty."""
    chances = np.array([[0.9, 0.1, 0.0], [0.8, 0.2, 0.0], [0.7, 0.3, 0.0], [0.1, 0.9, 0.0], [0.2, 0.7, 0.1]])
    labels = np.array([5, 3, 3, 9, 4])
    assert cluster_labels(chances, labels, by="most").tolist() == [3, 4, 4]
    assert cluster_labels(chances, labels).tolist() == [5, 9, 4]
    assert cluster_error(chances, labels, by="most") == pytest.approx(2 / 5)  # all count
    assert cluster_error(chances, [3, 3, 3, 3, 3], validation=(chances, labels), by="most") == pytest.approx(2 / 5)
    with raises("by", value="all", accepted=["one", "most"]):
        cluster_error(chances, labels, by="all")


def test_labels_come_from_the_validation_rows():
    assert cluster_error(CHANCES, LABELS, validation=(CHANCES[:, ::-1], LABELS)) == pytest.approx(4 / 5)


def test_by_brute_force():
    draw = np.random.default_rng(0)
    chances, other = draw.dirichlet(np.ones(6), size=200), draw.dirichlet(np.ones(6), size=50)
    labels, other_labels = draw.integers(0, 3, 200), draw.integers(0, 3, 50)
    wrong = 0
    for row, label in zip(chances, labels, strict=True):
        cluster = max(range(6), key=lambda c: row[c])
        example = max(range(50), key=lambda n: other[n, cluster])
        wrong += other_labels[example] != label
    assert cluster_error(chances, labels, validation=(other, other_labels)) == pytest.approx(wrong / 200)


def test_more_clusters_than_classes_and_empty_clusters():
    """Two clusters of class 0, and an empty one."""
    chances = np.eye(4)[[0, 0, 1, 1, 2, 2]] * 0.9 + 0.01 * np.arange(6)[:, None]
    assert cluster_error(chances, [0, 0, 0, 0, 1, 1]) == 0.0


def test_order_of_rows_and_of_clusters_does_not_matter():
    draw = np.random.default_rng(1)
    chances, labels = draw.dirichlet(np.ones(5), size=100), draw.integers(0, 4, 100)
    rows, clusters = draw.permutation(100), draw.permutation(5)
    assert cluster_error(chances[rows][:, clusters], labels[rows]) == pytest.approx(cluster_error(chances, labels))


def test_tensors_are_taken_and_a_float_returned():
    found = cluster_error(torch.tensor(CHANCES), torch.tensor(LABELS))
    assert type(found) is float and found == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("chances", "labels", "argument", "value"),
    [
        (CHANCES[0], LABELS, "probabilities", "shape (2,)"),
        (CHANCES, LABELS[:2], "labels", "shape (2,)"),
        (CHANCES * np.nan, LABELS, "probabilities", "NaN or infinity"),
        (CHANCES[:1], LABELS[:1], "probabilities", "1 rows"),
    ],
)
def test_invalid_arrays(chances, labels, argument, value):
    with raises(argument, value=value):
        cluster_error(chances, labels)


def test_validation_has_the_same_clusters():
    with raises("validation", value="1 clusters"):
        cluster_error(CHANCES, LABELS, validation=(CHANCES[:, :1], LABELS))
