"""The match of clusters and classes, on a stub that clusters by the brightness of the left half."""

import pytest
import torch
from halves import HalvesData, look, paint, trained, view
from mentions import mentions

import unweave as uw
from unweave.contract import Representation
from unweave.metrics import cluster_error
from unweave.report import report
from unweave.report.class_accuracy import match_clusters
from unweave.report.panels import classes


class Many(HalvesData):
    """Every combination 25 times."""

    size, grid = 400, False

    def factors(self, index_B):
        return torch.stack([index_B % 4, index_B // 4 % 4], 1)


def cluster(images):
    """Cluster by brightness of the left half, the darkest with the lightest; two clusters are empty."""
    left = (look(images) * 3).round().long()[:, 0]
    dark, white = left == 0, left == 3
    sure = torch.where(dark, 0.9, 1.0)[:, None] * torch.eye(4)[torch.where(dark, 3, left)]
    return torch.cat([sure, torch.zeros(len(left), 1)], 1) + 0.01 * white[:, None]


CLUSTERS = Representation(look, 2, paint, cluster=cluster)


def test_clusters_are_named_by_one_image_and_counted_on_the_others():
    found = match_clusters(trained(CLUSTERS, "none", data=Many()), 0)
    assert (found.title, found.factors) == ("left", 2)  # right has nothing to do with the clusters
    assert (found.used, found.clusters, found.rows) == (3, 5, 397)  # one white image names three of them
    assert found.error == pytest.approx(100 / 397) and found.chance == pytest.approx(0.75)


def test_continuous_factors_are_not_matched():
    for kinds, title in ((("continuous", "discrete"), "right"), (("continuous", "continuous"), None)):
        found = match_clusters(trained(CLUSTERS, "none", data=type("Some", (Many,), {"factor_types": kinds})()), 0)
        assert (found and found.title) == title
    data = Many()
    data.factor_names, data.factor_sizes, data.factor_values = (), (), ()
    assert match_clusters(trained(CLUSTERS, "none", data=data), 0) is None
    assert not classes.PANEL.render(view(trained(CLUSTERS, "none", data=data)))
    assert match_clusters(trained(CLUSTERS._replace(cluster=None), "none", data=Many()), 0) is None


def test_observations_without_a_class_are_not_counted():
    """Of 400 images 7 have a class of left, and no more than there are clusters one of right."""
    data, every = Many(), Many().factors
    data.images = lambda index: paint(every(index) / 3)
    data.factors = lambda index: torch.where(index[:, None] < torch.tensor([7, 5]), every(index), -1)
    found = match_clusters(trained(CLUSTERS, "none", data=data), 0)
    assert (found.title, found.factors, found.rows, found.used) == ("left", 1, 4, 3)
    assert found.error == pytest.approx(2 / 4)  # the two that are dark


@pytest.mark.parametrize("method", ["aae_cluster", "aae_reduce"])
def test_page_shows_how_well_clusters_match_the_digits(method, tmp_path):
    options = {"net": "small", "steps": 20, "batch": 32, "lr": 1e-3, "device": "cpu", "clusters": 12}
    model = uw.train(method, "digits(size=8)", out=tmp_path / "run", **options)
    index = torch.arange(model.data.size)
    with torch.no_grad():
        chances = model.representation.cluster(model.data.images(index))
    page = report([model], tmp_path / "r.html").read_text()
    text = " ".join(page[page.index(">Classes</h2>") :].split())
    error = cluster_error(chances, model.data.factors(index)[:, 0])
    assert mentions(text, f"{len(chances.argmax(1).unique())} of 12", f"<b>{100 * error:.1f} %</b>")
    assert ("Analogies" in text) == (method == "aae_cluster")
