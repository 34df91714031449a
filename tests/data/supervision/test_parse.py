"""Texts of supervision: their meaning, their errors, and which methods accept them."""

import math
import sys

import numpy as np
import pytest
import torch
from raises import raises
from torch import nn

import unweave as uw
from unweave.contract import UNSUPERVISED_FIELDS, Batch
from unweave.data import Dataset, Digits, Sampler, callspec, explain, parse_supervision
from unweave.data.supervision import (
    SUPERVISION_KINDS,
    ChangedPairs,
    Clips,
    Groups,
    Labels,
    Match,
    NoSupervision,
    Rank,
    SharedPairs,
    Triplets,
)
from unweave.data.supervision.parse import default_supervision, example_supervision
from unweave.data.user.arrays import Arrays


class Grid(Dataset):
    """Factors shape 3, colour 1, scale 4, angle 5."""

    name, shape, options = "grid", (1, 1, 1), {}
    factor_names, factor_sizes = ("shape", "colour", "scale", "angle"), (3, 1, 4, 5)
    factor_values = tuple(tuple(map(float, range(size))) for size in factor_sizes)
    size = math.prod(factor_sizes)


class Film(Grid):
    name, grid, frames = "film", False, 6


@pytest.mark.parametrize(
    "text, meaning",
    [
        ("none", NoSupervision()),
        ("labels", Labels(60, (0, 1, 2, 3))),
        ("labels(n=10)", Labels(10, (0, 1, 2, 3))),
        ("labels(n=0.5, factors=['angle', 'shape'], noise=0.1)", Labels(30, (3, 0), 0.1)),
        ("labels(n=1e-9, factors='scale', bins=2)", Labels(1, (2,), 0.0, 2)),
        ("labels(n=8, factors=['scale'], permute=True, balanced=True, seed=4)", Labels(8, (2,), 0, 0, True, True, 4)),
        ("pairs(k=1)", ChangedPairs(1, 1, (0, 2, 3))),
        ("pairs(k='uniform')", ChangedPairs(1, 2, (0, 2, 3))),
        ("pairs(k=(1, 3))", ChangedPairs(1, 3, (0, 2, 3))),
        ("pairs(k=[2, 3], rule='dlib')", ChangedPairs(2, 3, (0, 2, 3), "dlib")),
        ("pairs(change=['angle', 'shape'])", ChangedPairs(2, 2, (3, 0))),
        ("pairs(k=1, change=['angle', 'shape'])", ChangedPairs(1, 1, (3, 0))),
        ("pairs(k='uniform', change=('angle', 'shape'))", ChangedPairs(1, 2, (3, 0))),  # scale is shared anyway
        ("pairs(k='uniform', change=['angle'])", ChangedPairs(1, 1, (3,))),
        ("pairs(k='uniform', share=['shape', 'colour'])", ChangedPairs(1, 2, (2, 3))),
        ("pairs(share='shape')", SharedPairs((0,))),
        ("groups(by=['shape', 'angle'])", Groups((0, 3), 2)),
        ("groups(by=['scale'], size=15, distinct=True)", Groups((2,), 15, True)),
        ("match(content=['shape'])", Match((0,), (2, 3))),
        ("match(content=['shape'], style=['angle'])", Match((0,), (3,))),
        ("triplets(by=['shape'])", Triplets((0,))),
        ("rank(factor='scale')", Rank((2,))),
    ],
)
def test_meaning(text, meaning):
    assert parse_supervision(text, Grid()) == meaning
    sentence = explain(text, Grid())
    assert sentence.endswith(".") and "\n" not in sentence


def test_meaning_of_clips():
    assert parse_supervision("clips", Film()) == Clips(6, 1)
    assert parse_supervision("clips(length=2, stride=5)", Film()) == Clips(2, 5)


@pytest.mark.parametrize(
    "text, shared",
    [
        ("none", ()),
        ("labels(n=3)", ()),
        ("groups(by=['angle'], size=2)", (3,)),
        ("match(content=['shape'])", (0,)),
        ("triplets(by=['shape', 'angle'])", (0, 3)),
        ("pairs(share=['angle'])", (3,)),
        ("pairs(k=1)", ()),
    ],
)
def test_shared_factors(text, shared):
    assert parse_supervision(text, Grid()).shared == shared


GRID, DIGITS, BARE = Grid(), Digits(), Arrays(Digits().pixels)
PARTLY = Arrays(  # four of ten observations have no kind
    np.zeros((10, 1, 8, 8), np.uint8) + np.arange(10, dtype=np.uint8)[:, None, None, None],
    np.array([[["a", "b"][i % 2] if i < 6 else None] for i in range(10)], dtype=object),
    names=["kind"],
)
NEEDS = {"pairs": ("x", "pair"), "labels": ("x", "labelled", "labels"), "groups": ("groups",), "none": ("x",)}
NEEDS |= {"match": ("pair", "shared"), "triplets": ("positive",), "rank": ("order",), "clips": ("clips",)}


@pytest.mark.parametrize(
    "data, text, argument, value",
    [
        (DIGITS, "pairs(k=1)", "data", "digits"),
        (GRID, "pairs(k=0)", "k", 0),
        (GRID, "pairs(k=4)", "k", 4),
        (GRID, "pairs(k=True)", "k", True),
        (GRID, "pairs(k=1.5)", "k", 1.5),
        (GRID, "pairs(k='some')", "k", "some"),
        (GRID, "pairs(k=(3, 1))", "k", (3, 1)),
        (GRID, "pairs(k=(1, 2, 3))", "k", (1, 2, 3)),
        (GRID, "pairs", "k", None),
        (GRID, "pairs(k=2, share=['shape', 'scale'])", "k", 2),
        (GRID, "pairs(k=1, share=['shap'])", "factor", "shap"),
        (GRID, "pairs(share=['shap'])", "factor", "shap"),
        (GRID, "pairs(share=['shape', 'shape'])", "share", ["shape", "shape"]),
        (GRID, "pairs(share=3)", "share", 3),
        (GRID, "pairs(k=1, share=[])", "share", []),
        (GRID, "pairs(k=1, share=['shape', 'scale', 'angle'])", "share", ["shape", "scale", "angle"]),
        (GRID, "pairs(change=['colour'])", "change", ["colour"]),
        (GRID, "pairs(change=['shape'], share=['angle'])", "change", ["shape"]),
        (GRID, "pairs(k=1, rule='mine')", "rule", "mine"),
        (GRID, "pears(k=1)", "supervision", "pears"),
        (GRID, "pairs(n=1)", "option", "n"),
        (GRID, "none(k=1)", "option", "k"),
        (GRID, "labels(n=0)", "n", 0),
        (GRID, "labels(n=0.0)", "n", 0.0),
        (GRID, "labels(n=1.5)", "n", 1.5),
        (GRID, "labels(n=-3)", "n", -3),
        (GRID, "labels(n=61)", "n", 61),
        (GRID, "labels(n='all')", "n", "all"),
        (GRID, "labels(n=True)", "n", True),
        (GRID, "labels(factors=['size'])", "factor", "size"),
        (GRID, "labels(noise=1.5)", "noise", 1.5),
        (GRID, "labels(noise='much')", "noise", "much"),
        (GRID, "labels(bins=1)", "bins", 1),
        (GRID, "labels(permute=1)", "permute", 1),
        (GRID, "labels(n=10, balanced=True)", "balanced", True),
        (GRID, "labels(n=10, factors=['shape'], balanced=True)", "balanced", True),
        (GRID, "labels(n=60, factors=['shape'], balanced=True, seed=-1)", "seed", -1),
        (BARE, "labels(n=5)", "supervision", "labels(n=5)"),
        (DIGITS, "labels(n=1790, balanced=True)", "n", 1790),
        (PARTLY, "labels(n=7)", "n", 7),
        (PARTLY, "labels(n=11)", "n", 11),
        (PARTLY, "labels(n=0.8)", "n", 0.8),
        (GRID, "groups(size=2)", "by", None),
        (GRID, "groups(by=[", "supervision", "groups(by=["),
        (GRID, "groups(by=['shape'], size=0)", "size", 0),
        (GRID, "groups(by=['shape'], size=21)", "size", 21),
        (DIGITS, "groups(by=['digit'], size=200)", "size", 200),
        (BARE, "groups(by=['digit'])", "factor", "digit"),
        (GRID, "match(content=['shape', 'scale', 'angle'])", "content", ["shape", "scale", "angle"]),
        (GRID, "match(content=['shape'], style=['scale', 'shape'])", "style", ["scale", "shape"]),
        (DIGITS, "match(content=['digit'])", "content", ["digit"]),
        (GRID, "triplets(by=['colour'])", "by", ["colour"]),
        (GRID, "triplets(by=['shape', 'scale', 'angle'])", "supervision", "grid"),
        (GRID, "rank(factor='colour')", "factor", "colour"),
        (GRID, "rank(factor=['shape', 'scale'])", "factor", ["shape", "scale"]),
        (GRID, "clips(length=4)", "data", "grid"),
        (Film(), "clips(length=7)", "length", 7),
        (Film(), "clips(length=3, stride=3)", "stride", 3),
    ],
)
def test_invalid_text(data, text, argument, value):
    with raises(argument, **{} if value is None else {"value": value}):
        Sampler(data, NEEDS.get(text.split("(")[0], ("x", "pair")), text)


@pytest.mark.parametrize("text, n", [("labels(n=6)", 6), ("labels(n=1.0)", 6), ("labels(n=10)", 6), ("labels(n=2)", 2)])
def test_labels_of_a_factor_that_is_partly_unknown(text, n):
    assert Sampler(PARTLY, NEEDS["labels"], text).supervision.n == n


def test_more_distinct_groups_than_there_are():
    sampler = Sampler(GRID, ("groups",), "groups(by=['shape'], distinct=True)")
    with raises("batch", value=4):
        sampler.plan(torch.tensor(0), 4)


# --- which methods accept a kind -------------------------------------------------------------------------------------


def test_every_batch_field_has_a_kind():
    given = {field for kind in SUPERVISION_KINDS for field in kind.batch_fields}
    assert given | set(UNSUPERVISED_FIELDS) == set(Batch._fields) and not given & set(UNSUPERVISED_FIELDS)


def test_examples_follow_the_data():
    assert example_supervision(("pair",), GRID) == "pairs(k=1)"
    assert example_supervision(("pair",), DIGITS) == "pairs(share=['digit'])"
    assert example_supervision(("pair", "shared"), GRID) == "match(content=['shape'])"
    assert example_supervision(("pair", "shared"), DIGITS) == example_supervision(("clips",), GRID) == ""
    with raises("supervision", value="none", accepted="use e.g. supervision=\"pairs(share=['digit'])\""):
        Sampler(DIGITS, ("x", "pair"), "none")


def test_an_unknown_batch_field():
    with raises("batch field", value="y", accepted=Batch._fields):
        Sampler(GRID, ("y",), "none")


def test_default():
    assert default_supervision(("x",)) == default_supervision(("x", "x_other", "x_index")) == "none"
    assert default_supervision(("x", "pair")) == default_supervision(("x", "pair", "changed")) == "pairs(k=1)"
    assert default_supervision(("x", "pair", "shared")) == default_supervision(("groups",)) == "none"


# --- in a run --------------------------------------------------------------------------------------------------------


def test_a_run_uses_and_records_its_supervision(tmp_path):
    options = dict(steps=2, batch=4, net="small", latents=3)
    run = uw.train("ada_gvae", "digits", supervision="pairs(share=['digit'])", out=tmp_path / "run", **options)
    assert run.config.supervision == "pairs(share=['digit'])"
    assert uw.load(tmp_path / "run").config.supervision == "pairs(share=['digit'])"
    with raises("supervision", value="labels(n=10)"):
        uw.train("vae", "digits", supervision="labels(n=10)", out=tmp_path / "two", **options)
    with raises("factor", value="digt", accepted=("digit",)):
        uw.train("ada_gvae", "digits", supervision="pairs(share=['digt'])", out=tmp_path / "two", **options)
    assert not (tmp_path / "two").exists()


def count_calls(monkeypatch):
    """Return a list that collects the texts which are parsed, by any module."""
    parse, texts = callspec.parse_call, []

    def counted(text, *arguments):
        texts.append(text)
        return parse(text, *arguments)

    for module in [module for name, module in sys.modules.items() if name.startswith("unweave")]:
        if getattr(module, "parse_call", None) is parse:
            monkeypatch.setattr(module, "parse_call", counted)
    return texts


@pytest.mark.parametrize(
    "method, given", [("ada_gvae", {}), ("ml_vae", {"supervision": "groups(by=['shape'], size=2)"})]
)
def test_a_training_run_parses_data_and_supervision_once(tmp_path, monkeypatch, method, given):
    texts = count_calls(monkeypatch)
    options = dict(steps=2, batch=4, net="small", latents=4, validate_every=1, device="cpu")
    run = uw.train(method, "sprites(size=8)", out=tmp_path / "run", **options, **given)
    assert texts == ["sprites(size=8)", run.config.supervision]


class Linear(uw.Method):
    """A minimal method: one layer, any loss."""

    players = {"model": ("line",)}

    def __init__(self, data, *, latents: int = 2, previous=None):
        super().__init__()
        self.latents, self.line = latents, nn.Linear(64, max(1, *data.labels, 1))

    def forward(self, batch, noise, hyper, step):
        shown = batch.x if batch.labelled is None else batch.labelled
        loss = self.line(shown.flatten(1)).square().mean()
        return uw.Out({"model": loss}, {"loss": loss})


def test_supervision_of_a_later_stage(tmp_path):
    class Second(Linear):
        needs = ("labelled", "labels")

    class First(Linear):
        next_stage = Second

    options = dict(steps=2, batch=4, out=tmp_path / "run")
    for given in ({}, {"supervision": "pairs(share=['digit'])"}):
        with raises("supervision", value=given.get("supervision", "none")):  # before the first stage, not after it
            uw.train(First, "digits", **options, **given)
    assert not (tmp_path / "run").exists()
    run = uw.train(First, "digits", supervision="labels(n=50)", **options)
    assert isinstance(run.method, Second) and run.method.line.out_features == 10


def test_a_method_learns_from_the_labels_of_its_seed(tmp_path):
    seen = []

    class Classifier(Linear):
        needs = ("x", "labelled", "labels")

        def forward(self, batch, noise, hyper, step):
            seen.append((batch.labelled, batch.labels))
            loss = nn.functional.cross_entropy(self.line(batch.labelled.flatten(1)), batch.labels[:, 0])
            return uw.Out({"model": loss}, {"loss": loss})

    text = "labels(n=20, balanced=True)"
    uw.train(Classifier, "digits", supervision=text, steps=30, batch=32, seed=5, out=tmp_path / "run")
    images = torch.cat([image for image, _ in seen]).flatten(1).unique(dim=0)
    assert len(images) == 20 and torch.cat([label for _, label in seen]).unique().tolist() == list(range(10))
    theirs = parse_supervision(text, Digits()).labelled_set(Digits(), 5).table[0]
    assert torch.equal(Digits().images(theirs).flatten(1).unique(dim=0), images)
