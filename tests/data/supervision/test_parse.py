"""The language itself: what its texts mean, which method may have which, and what is said when it makes no sense."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import unweave as uw
from unweave.contract import UNSUPERVISED_FIELDS, Batch, is_supervised
from unweave.data import Dataset, Digits, Sampler, explain, supervised_info
from unweave.data.supervision.parse import read_supervision
from unweave.data.supervision.specs import (
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
    check_needs,
    default_supervision,
    example_supervision,
)
from unweave.data.user.arrays import Arrays
from unweave.errors import UserError


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
        ("pairs(k='uniform', share=['shape', 'colour'])", ChangedPairs(1, 2, (2, 3))),
        ("pairs(share='shape')", SharedPairs((0,))),
        ("groups(by=['shape', 'angle'])", Groups((0, 3), 2)),
        ("groups(by=['scale'], size=15, distinct=True)", Groups((2,), 15, True)),
        ("match(content=['shape'])", Match((0,), (2, 3))),
        ("match(content=['shape'], style=['angle'])", Match((0,), (3,))),
        ("triplets(by=['shape'])", Triplets((0,))),
        ("rank(factor='scale')", Rank(2)),
    ],
)
def test_meaning(text, meaning):
    assert read_supervision(text, Grid()) == meaning
    said = explain(text, Grid())
    assert said.endswith(".") and "\n" not in said


def test_meaning_of_clips():
    assert read_supervision("clips", Film()) == Clips(6, 1)
    assert read_supervision("clips(length=2, stride=5)", Film()) == Clips(2, 5)
    assert explain("clips(length=2, stride=5)", Film()) == "Clips of 2 frames, every 5."


GRID, DIGITS, BARE = Grid(), Digits(), Arrays(Digits().pixels)
PARTLY = Arrays(  # of ten observations four have no kind
    np.zeros((10, 1, 8, 8), np.uint8) + np.arange(10, dtype=np.uint8)[:, None, None, None],
    np.array([[["a", "b"][i % 2] if i < 6 else None] for i in range(10)], dtype=object),
    names=["kind"],
)
NEEDS = {"pairs": ("x", "pair"), "labels": ("x", "labelled", "labels"), "groups": ("groups",), "none": ("x",)}
NEEDS |= {"match": ("pair", "shared"), "triplets": ("positive",), "rank": ("order",), "clips": ("clips",)}


@pytest.mark.parametrize(
    "data, text, said",
    [
        (DIGITS, "pairs(k=1)", "grid.*'digits'.*pairs\\(share=\\['digit'\\]\\)"),
        (GRID, "pairs(k=0)", "k=0.*1 to 3"),
        (GRID, "pairs(k=4)", "k=4.*1 to 3"),
        (GRID, "pairs(k=True)", "k=True"),
        (GRID, "pairs(k=1.5)", "k=1.5.*'uniform'"),
        (GRID, "pairs(k='some')", "k='some'"),
        (GRID, "pairs(k=(3, 1))", "k=\\(3, 1\\).*1 to 3"),
        (GRID, "pairs(k=(1, 2, 3))", "k=\\(1, 2, 3\\)"),
        (GRID, "pairs", "k is missing"),
        (GRID, "pairs(k=2, share=['shape', 'scale'])", "k=2.*1 to 1$"),
        (GRID, "pairs(k='uniform', change=['angle'])", None),
        (GRID, "pairs(k=1, share=['shap'])", "factor 'shap' does not exist; did you mean 'shape'.*angle"),
        (GRID, "pairs(share=['shap'])", "factor 'shap' does not exist; did you mean 'shape'"),
        (GRID, "pairs(share=[])", "share=\\[\\].*list of factor names"),
        (GRID, "pairs(share=['shape', 'shape'])", "share="),
        (GRID, "pairs(share=3)", "share=3"),
        (GRID, "pairs(k=1, share=['shape', 'scale', 'angle'])", "nothing is left to change"),
        (GRID, "pairs(change=['colour'])", "'colour' has not"),
        (GRID, "pairs(change=['shape'], share=['angle'])", "both change and share"),
        (GRID, "pairs(k=1, rule='mine')", "rule='mine'.*'paper' or 'dlib'"),
        (GRID, "pears(k=1)", "did you mean 'pairs'"),
        (GRID, "pairs(n=1)", "'n'"),
        (GRID, "none(k=1)", "'k'"),
        (GRID, "labels(n=0)", "n=0.*1 to 60.*fraction above 0"),
        (GRID, "labels(n=0.0)", "n=0.0.*fraction above 0"),
        (GRID, "labels(n=1.5)", "n=1.5"),
        (GRID, "labels(n=-3)", "n=-3"),
        (GRID, "labels(n=61)", "n=61.*1 to 60"),
        (GRID, "labels(n='all')", "n='all'"),
        (GRID, "labels(n=True)", "n=True"),
        (GRID, "labels(factors=['size'])", "'size' does not exist"),
        (GRID, "labels(noise=1.5)", "noise=1.5.*0 to 1"),
        (GRID, "labels(noise='much')", "noise='much'"),
        (GRID, "labels(bins=1)", "bins=1.*from 2"),
        (GRID, "labels(permute=1)", "permute=1.*True or False"),
        (GRID, "labels(n=10, balanced=True)", "balanced=True.*one factor"),
        (GRID, "labels(n=10, factors=['shape'], balanced=True)", "multiple of its classes \\(3"),
        (GRID, "labels(n=60, factors=['shape'], balanced=True, seed=-1)", "seed=-1"),
        (BARE, "labels(n=5)", "has none"),
        (DIGITS, "labels(n=1790, balanced=True)", "n=1790 .*needs 179 .*the rarest.*has 174; give at most n=1740$"),
        (PARTLY, "labels(n=7)", "n=7 is not accepted; give an integer from 1 to 6, as many as have labels$"),
        (PARTLY, "labels(n=11)", "n=11 is not accepted; give an integer from 1 to 6, as many as have labels$"),
        (PARTLY, "labels(n=0.8)", "n=0.8 is not accepted; give an integer from 1 to 6, as many as have labels$"),
        (PARTLY, "labels(n=6)", None),
        (PARTLY, "labels(n=1.0)", None),
        (GRID, "groups(size=2)", "by is missing; give a list of factor names"),
        (GRID, "groups(by=[", "cannot read supervision='groups.by=.'; write a name, or a name with options"),
        (GRID, "groups(by=['shape'], size=0)", "size=0"),
        (GRID, "groups(by=['shape'], size=21)", "largest group.*20"),
        (DIGITS, "groups(by=['digit'], size=200)", "size=200.*183"),
        (BARE, "groups(by=['digit'])", "'digit' does not exist \\(there are none\\)"),
        (GRID, "match(content=['shape', 'scale', 'angle'])", "none is left for the style"),
        (GRID, "match(content=['shape'], style=['scale', 'shape'])", "'shape' is one"),
        (DIGITS, "match(content=['digit'])", "none is left for the style"),
        (GRID, "triplets(by=['colour'])", "has none"),
        (GRID, "triplets(by=['shape', 'scale', 'angle'])", "no observation.*partner"),
        (GRID, "rank(factor='colour')", "one factor with several values"),
        (GRID, "rank(factor=['shape', 'scale'])", "one factor"),
        (GRID, "clips(length=4)", "needs videos, which data 'grid' is not; try 'clips'"),
        (Film(), "clips(length=7)", "length=7.*2 to 6"),
        (Film(), "clips(length=3, stride=3)", "stride=3.*1 to 2"),
    ],
)
def test_refused(data, text, said):
    needs = NEEDS.get(text.split("(")[0], ("x", "pair"))
    if said is None:
        Sampler(data, needs, text)
        return
    with pytest.raises(UserError, match=said) as error:
        Sampler(data, needs, text)
    assert "\n" not in str(error.value)


def test_more_groups_than_there_are():
    sampler = Sampler(GRID, ("groups",), "groups(by=['shape'], distinct=True)")
    with pytest.raises(UserError, match="batch 4 is too large.*3 groups"):
        sampler.plan(torch.tensor(0), 4)


# --- which method may have which -------------------------------------------------------------------------------------


def test_every_field_comes_from_somewhere():
    given = {field for kind in SUPERVISION_KINDS.values() for field in kind.batch_fields}
    assert given | set(UNSUPERVISED_FIELDS) == set(Batch._fields) and not given & set(UNSUPERVISED_FIELDS)


@pytest.mark.parametrize("kind", [kind for kind in SUPERVISION_KINDS if kind != "none"])
def test_too_little_and_too_much_is_an_error_with_an_example(kind):
    data = Film() if kind == "clips" else GRID
    needs = ("x", *SUPERVISION_KINDS[kind].batch_fields)
    with pytest.raises(UserError, match=f"supervision='none' but the method needs {needs[1]}.*give e.g. ") as error:
        Sampler(data, needs, "none")
    fitting = str(error.value).split("supervision=")[-1].strip("'\"")
    assert fitting == example_supervision(needs, data)
    for other in SUPERVISION_KINDS:
        accepted = set(SUPERVISION_KINDS[kind].batch_fields) <= set(SUPERVISION_KINDS[other].batch_fields)
        assert accepted == (other == kind)
        if not accepted:
            with pytest.raises(UserError, match="the method needs"):
                check_needs(other, needs, data)
    with pytest.raises(UserError, match="needs only x, second; leave it 'none'"):
        Sampler(data, ("x", "x_other"), fitting)
    with pytest.raises(UserError, match="'y'"):
        Sampler(data, ("y",), "none")


def test_examples_are_accepted():
    for kind, word in SUPERVISION_KINDS.items():
        data = Film() if kind == "clips" else GRID
        Sampler(data, ("x", *word.batch_fields), example_supervision(("x", *word.batch_fields), data))
    assert example_supervision(("pair",), DIGITS) == "pairs(share=['digit'])"
    Sampler(DIGITS, ("pair",), example_supervision(("pair",), DIGITS))


def test_default():
    assert default_supervision(("x",)) == default_supervision(("x", "x_other", "x_index")) == "none"
    assert default_supervision(("x", "pair")) == default_supervision(("x", "pair", "changed")) == "pairs(k=1)"
    assert default_supervision(("x", "pair", "shared")) == default_supervision(("groups",)) == "none"
    assert not is_supervised(UNSUPERVISED_FIELDS) and is_supervised(("x", "labels"))


def test_in_a_run(tmp_path):
    """The words reach the batches of a run and its config; a method without need of them refuses them."""
    options = dict(steps=2, batch=4, net="small", latents=3)
    run = uw.train("ada_gvae", "digits", supervision="pairs(share=['digit'])", out=tmp_path / "run", **options)
    assert run.config.supervision == "pairs(share=['digit'])"
    assert uw.load(tmp_path / "run").config.supervision == "pairs(share=['digit'])"
    with pytest.raises(UserError, match="needs only x"):
        uw.train("vae", "digits", supervision="labels(n=10)", out=tmp_path / "two", **options)
    with pytest.raises(UserError, match="'digt' does not exist; did you mean 'digit'"):
        uw.train("ada_gvae", "digits", supervision="pairs(share=['digt'])", out=tmp_path / "two", **options)
    assert not (tmp_path / "two").exists()


class Linear(uw.Method):
    """The smallest method that has to be told something: one layer, any loss."""

    players = {"model": ("line",)}

    def __init__(self, data, *, latents: int = 2, previous=None):
        super().__init__()
        self.latents, self.line = latents, nn.Linear(64, max(1, *data.labels, 1))

    def forward(self, batch, noise, hyper, step):
        shown = batch.x if batch.labelled is None else batch.labelled
        loss = self.line(shown.flatten(1)).square().mean()
        return uw.Out({"model": loss}, {"loss": loss})


def test_what_one_stage_needs_another_may_do_without(tmp_path):
    class Second(Linear):
        needs = ("labelled", "labels")

    class First(Linear):
        next_stage = Second

    options = dict(steps=2, batch=4, out=tmp_path / "run")
    with pytest.raises(UserError, match="supervision='none' but the method needs labelled"):
        uw.train(First, "digits", **options)  # said before the first stage, not after it
    with pytest.raises(UserError, match="the method needs labelled"):
        uw.train(First, "digits", supervision="pairs(share=['digit'])", **options)
    assert not (tmp_path / "run").exists()
    run = uw.train(First, "digits", supervision="labels(n=50)", **options)
    assert isinstance(run.method, Second) and run.method.line.out_features == 10


def test_a_method_is_told_the_form_of_its_labels(tmp_path):
    """Its constructor sees how many classes there are, and a run of it learns from the labels of its own seed."""
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
    theirs = Sampler(Digits(), ("labelled", "labels"), text, seed=5).labelled.table[0]
    assert torch.equal(Digits().images(theirs).flatten(1).unique(dim=0), images)
    assert supervised_info(Digits(), text).labels == (10,)
