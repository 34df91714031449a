"""The panel of classes, on a stub whose class is the brightness of the left half."""

import io
import re

import numpy as np
import pytest
import torch
from halves import HalvesData, look, paint, trained, view
from mentions import mentions
from PIL import Image
from torch import nn

import unweave as uw
from unweave.contract import Batch, DataInfo, Method, Out, Part, Representation
from unweave.report import report, traversal_png
from unweave.report.charts.curves import chart_grid, read_curves
from unweave.report.class_accuracy import (
    ClassAccuracy,
    class_accuracies,
    class_parts,
    label_names,
    unlabelled,
)
from unweave.report.formatting import percent
from unweave.report.images import image_grid, sample_images
from unweave.report.panels import classes as panel
from unweave.report.panels import parts
from unweave.report.panels.classes import MAX_ROWS, analogies, random_codes, samples
from unweave.report.swaps import split_code, swap_grid

LABELS = "labels(n=4, factors=['left'])"
PARTS = (Part("style", 1), Part("class", 4, classes=True))


def encode(images):
    """The brightness of the right half, then the class of the left one."""
    left, right = (look(images) * 3).round().long().unbind(-1)
    return torch.cat([right[:, None] / 3, nn.functional.one_hot(left, 4).float()], 1)


def decode(codes):
    left = codes[:, 1:].argmax(1) / 3
    return paint(torch.stack([left, codes[:, 0].clamp(0, 1)], 1))


def classify(images):
    """Predict correctly, but the lightest class for the darkest."""
    wrong = encode(images)[:, 1:].clone()
    return (torch.where(wrong[:, :1] > 0, torch.eye(4)[3], wrong),)


KNOWS = Representation(encode, 5, decode, parts=PARTS, classify=classify)


def used(model):
    return model.supervision.labelled_set(model.data, model.config.seed)


def run(what=KNOWS, supervision=LABELS, **options):
    return trained(what, supervision, **options)


# --- pictures ------------------------------------------------------------------------------------------------------


def test_samples_have_one_class_per_row_and_one_style_per_column():
    (part,) = class_parts(run())
    assert part == ("left", 1, ["black", "dark", "light", "white"])
    found = samples(run(), part, across=3, seed=7)
    styles = random_codes(run(), 3, 7)[:, 0]
    assert np.array_equal(styles, np.random.default_rng(7).standard_normal((3, 5))[:, 0])
    assert [name for name, _ in found] == part.names
    for v, (_, pixels) in enumerate(found):
        wanted = paint(torch.tensor([[v / 3, s] for s in styles.clip(0, 1)]).float())
        assert np.array_equal(pixels, image_grid([list(wanted.numpy())]))


def test_samples_come_from_the_prior_of_the_class():
    """Class v has style with mean v / 4 and standard deviation 0.1; a column is the same draw."""

    def from_prior(codes):
        return torch.cat([codes[:, 1:].argmax(1, keepdim=True) / 4 + 0.1 * codes[:, :1], codes[:, 1:]], 1)

    model = run(KNOWS._replace(from_prior=from_prior))
    (part,) = class_parts(model)
    styles = random_codes(model, 3, 7)[:, 0]
    for v, (_, pixels) in enumerate(samples(model, part, across=3, seed=7)):
        wanted = paint(torch.tensor([[v / 3, s] for s in (v / 4 + 0.1 * styles).clip(0, 1)]).float())
        assert np.allclose(pixels, image_grid([list(wanted.numpy())]), atol=1)
    assert panel.context(view(model))["grids"][0]["learned_prior"]
    assert not panel.context(view(run()))["grids"][0]["learned_prior"]


def test_random_codes_have_one_class_in_every_class_part():
    what = Representation(look, 7, paint, parts=(Part("a", 3, classes=True), Part("s", 2), Part("b", 2, classes=True)))
    codes = random_codes(run(what), 200, 0)
    for here in (slice(0, 3), slice(5, 7)):
        assert (np.sort(codes[:, here], axis=1)[:, -1] == 1).all()
        assert (codes[:, here].sum(1) == 1).all()
        assert (codes[:, here].sum(0) > 40).all()
    assert abs(codes[:, 3:5].std() - 1) < 0.1
    assert [part.title for part in class_parts(run(what))] == ["a", "b"]  # no labelled factor has three classes


def test_classes_are_named_by_their_labels():
    """A part without a label keeps its own name and numbers."""
    both = "labels(n=4, factors=['left', 'right'])"
    right, free, left = Part("r", 4, True, label=1), Part("k", 3, True), Part("l", 4, True, label=0)
    what = Representation(look, 12, paint, parts=(right, Part("s", 1), free, left))
    numbers, shades = ["0", "1", "2", "3"], ["black", "dark", "light", "white"]
    assert class_parts(run(what, both)) == [("right", 0, numbers), ("k", 5, numbers[:3]), ("left", 8, shades)]


def test_a_graph_with_labels_out_of_order(tmp_path):
    """Labels in another order than the q factors, and a class without a label."""
    graph = "q(c|x) q(z|x) q(k|x) q(r|x); p(x|c,r,k,z); labels: r, c; z: normal(1), k: classes(4)"
    model = uw.train(
        "generalized_m2", HalvesData(), supervision="labels(n=16, factors=['left', 'right'])", graph=graph,
        net="mlp", steps=1, batch=4, out=tmp_path / "run",
    )  # fmt: skip
    assert [(part.title, part.start) for part in class_parts(model)] == [("right", 0), ("k", 5), ("left", 9)]
    assert [accuracy.title for accuracy in class_accuracies(model, 0)] == ["left", "right"]


def test_analogies_keep_the_style_and_go_through_the_classes():
    (part,) = class_parts(run())
    images = sample_images(run(), 3, 0)
    right = look(torch.from_numpy(images))[:, 1]
    rows = [
        [image, *(paint(torch.tensor([[v / 3, r]]))[0].numpy() for v in range(4))] for image, r in zip(images, right)
    ]
    assert np.array_equal(analogies(run(), part, down=3), image_grid(rows))


def test_parts_that_follow_from_the_class_change_with_it():
    """Coordinate 5 holds the brightness of the left half, which is the class's; images are painted from it."""

    def brightness(codes):
        return torch.cat([codes[:, :5], codes[:, 1:5].argmax(1, keepdim=True) / 3], 1)

    what = Representation(
        lambda images: brightness(encode(images)), 6,
        lambda codes: paint(torch.stack([codes[:, 5], codes[:, 0].clamp(0, 1)], 1)),
        parts=(*PARTS, Part("shade", 1, follows=True)), follow=brightness,
    )  # fmt: skip
    (part,) = class_parts(run(what))
    assert np.array_equal(analogies(run(what), part, down=3), analogies(run(), part, down=3))
    split = split_code(what.parts)
    assert (split.first, split.second, split.is_first_Z.tolist()) == (
        "class and shade",
        "style",
        [False] + [True] * 5,
    )
    plain = swap_grid(run(), split_code(PARTS), down=2, across=3)
    assert np.array_equal(swap_grid(run(what), split, down=2, across=3), plain)


def test_panel_swaps_class_and_style_and_replaces_the_panel_of_parts():
    context = panel.context(view(run()))
    assert (context["swap"]["first"], context["swap"]["second"]) == ("class", "style")
    assert len(context["grids"]) == 1
    assert not parts.PANEL.render(view(run()))
    assert not panel.PANEL.render(view(run(Representation(look, 2, paint))))
    blind = panel.context(view(run(KNOWS._replace(decode=None))))
    assert blind["grids"] == []
    assert blind["swap"] is None
    assert len(blind["accuracies"]) == 1


def test_many_classes_are_truncated():
    what = Representation(look, 42, lambda z: paint(z[:, :2].clamp(0, 1)), parts=(Part("s", 2), Part("c", 40, True)))
    (part,) = class_parts(run(what, "none"))
    assert part.names[:2] == ["0", "1"]
    assert len(samples(run(what, "none"), part)) == MAX_ROWS


# --- accuracy ------------------------------------------------------------------------------------------------------


def test_accuracy_is_measured_on_unlabelled_observations():
    labelled = {int(i) for i in used(run()).table[0]}
    left = [i for i in range(16) if i not in labelled]
    index, labels, held_out = unlabelled(used(run()), 0)
    assert held_out
    assert sorted(index.tolist()) == left
    assert labels[:, 0].tolist() == [i // 4 for i in index.tolist()]
    (accuracy,) = class_accuracies(run(), 0)
    dark = sum(i // 4 == 0 for i in left)
    assert accuracy.rows == 12
    assert accuracy.accuracy == pytest.approx(1 - dark / 12)
    assert accuracy.confusion_VV[0].tolist() == [0, 0, 0, 1]
    assert np.array_equal(accuracy.confusion_VV[1:, 1:], np.eye(3))
    assert mentions(accuracy.most_frequent_errors(), "black", "white", "100\N{NARROW NO-BREAK SPACE}%")
    assert "no errors" in accuracy._replace(confusion_VV=np.eye(4)).most_frequent_errors()


def test_accuracy_on_labelled_observations_is_marked():
    (accuracy,) = class_accuracies(run(supervision="labels(factors=['left'])"), 0)
    assert not accuracy.held_out
    assert accuracy.rows == 16
    assert accuracy.accuracy == pytest.approx(0.75)


def test_truth_is_permuted_and_binned_like_the_labels_but_without_noise():
    text = "labels(factors=['left'], permute=True, bins=2{})"
    clean = used(run(supervision=text.format(""), seed=3)).table
    wanted = dict(zip(clean[0].tolist(), clean[1][:, 0].tolist()))
    index, labels, _ = unlabelled(used(run(supervision=text.format(", noise=1.0"), seed=3)), 0)
    assert dict(zip(index.tolist(), labels[:, 0].tolist(), strict=True)) == wanted
    (names,) = [names for _, names in label_names(run(supervision=text.format(""), seed=3))]
    assert sorted(names) == ["black or dark", "light or white"]
    assert names[wanted[0]] == "black or dark"  # observation 0 is black


def test_no_accuracy_without_labels_or_classifier():
    assert class_accuracies(run(supervision="none"), 0) == []
    assert class_accuracies(run(KNOWS._replace(classify=None)), 0) == []


def test_leakage_of_the_class_into_style_is_measured():
    many = HalvesData()
    many.size, many.grid = 400, False
    many.factors = lambda index: torch.stack([index % 4, index // 4 % 4], 1)
    (clean,) = class_accuracies(run(data=many), 0)
    assert clean.leak.content == 1.0
    assert clean.leak.style < 0.4
    both = KNOWS._replace(encode=lambda x: torch.cat([look(x)[:, :1], encode(x)[:, 1:]], 1))
    (leaky,) = class_accuracies(run(both, data=many), 0)
    assert leaky.leak.style > 0.9


def test_accuracy_over_training_is_a_curve():
    logs = [{"stage": 0, "step": s, "accuracy": s / 10, "label_accuracy": 0.5} for s in range(1, 4)]
    titles = [chart["title"] for chart in chart_grid([read_curves(logs, 0)])["charts"]]
    assert titles == ["class accuracy, labelled"] * 2  # those that are trained on


# --- the page ------------------------------------------------------------------------------------------------------


class TwoHeads(Method):
    """A linear autoencoder beside a linear classifier."""

    needs = ("x", "labelled", "labels")
    players = {"model": ("down", "up", "head")}

    def __init__(self, data: DataInfo, *, latents: int = 2) -> None:
        super().__init__()
        self.latents, self.shape, self.classes = latents, data.shape, data.labels[0]
        self.down, self.up = nn.Linear(64, latents), nn.Linear(latents + self.classes, 64)
        self.head = nn.Linear(64, self.classes)

    def code(self, x):
        return torch.cat([self.down(x.flatten(1)), self.head(x.flatten(1)).softmax(1)], 1)

    def decode(self, z):
        return self.up(z).sigmoid().unflatten(1, self.shape)

    def forward(self, batch: Batch, noise, hyper, step) -> Out:
        recon = (self.decode(self.code(batch.x)) - batch.x).square().sum((1, 2, 3)).mean()
        logits = self.head(batch.labelled.flatten(1))
        cross = nn.functional.cross_entropy(logits, batch.labels[:, 0])
        right = (logits.argmax(1) == batch.labels[:, 0]).float().mean()
        return Out({"model": recon + cross}, {"loss": recon + cross, "accuracy": right})

    def representation(self) -> Representation:
        parts = (Part("style", self.latents), Part("class", self.classes, classes=True))
        classify = lambda x: (self.head(x.flatten(1)).softmax(1),)  # noqa: E731
        return Representation(self.code, self.latents + self.classes, self.decode, parts=parts, classify=classify)


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    options = {"steps": 60, "batch": 32, "lr": 1e-2, "device": "cpu", "log_every": 10}
    out = tmp_path_factory.mktemp("runs") / "stub"
    return uw.train(TwoHeads, "digits(size=8)", supervision="labels(n=500)", out=out, **options)


def test_page_of_a_model_with_classes(stub, tmp_path):
    page = report([stub], tmp_path / "r.html").read_text()
    (accuracy,) = class_accuracies(stub, 0)
    assert accuracy.accuracy > 0.5
    assert accuracy.rows == 1297
    shown = f"{100 * accuracy.accuracy:.0f}\N{NARROW NO-BREAK SPACE}%"
    assert mentions(page, f"<b>{shown}</b>", "1,297 images", "no label")
    first = re.search(r'<p class="name">([^<]+)</p>\s*<p class="big">([^<]+)<', page)
    assert first.groups() == ("Accuracy of digit", f"{100 * accuracy.accuracy:.1f}")  # before any metric of latents
    assert percent(accuracy.chance) in page
    assert page.index(">Classes</h2>") < page.index(">Latent traversals</h2>")
    for words in ("Samples by digit", "Analogies", "Swaps", "class accuracy, labelled", 'class="heat confusion"'):
        assert words in page
    assert page.count('alt="digit ') == 10
    assert sorted(set(re.findall(r'alt="(z\d+) moved', page))) == ["z0", "z1"]  # classes are not moved one at a time
    assert re.search(r'<p class="big">2<span> of 2</span>', page)


def test_traversals_leave_out_classes(stub):
    with Image.open(io.BytesIO(traversal_png(stub, include_inactive=True))) as one:
        assert one.height < 3 * (one.width // 9)  # two latents, two rows


def test_hostile_class_names_are_escaped(stub, tmp_path):
    values = ("<script>alert(1)</script>", *map(str, range(9)))
    stub.data.factor_values = (values,)
    page = report([stub], tmp_path / "r.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_many_classes_have_no_confusion_matrix():
    accuracy = ClassAccuracy("thing", [str(v) for v in range(20)], 100, True, 0.5, 0.1, np.full((20, 20), 0.05), None)
    page = view(run())
    vars(page)["accuracies"] = [accuracy]
    assert 'class="heat confusion"' not in panel.PANEL.render(page)
    assert accuracy.most_frequent_errors().startswith("Most frequent errors: 0 taken for 1")
