"""Predicting the class of a group from content and style: splits, groups, and the classifier."""

import numpy as np
import pytest
import torch
from halves import PARTS, HalvesData, look, paint, trained
from raises import raises
from sklearn.linear_model import LogisticRegression

from unweave.contract import Representation
from unweave.evaluation.groups import content_leakage, group_accuracy, group_rows, train_rows

rng = np.random.default_rng(0)
CLASSES = rng.integers(0, 5, 900)
CONTENT = np.eye(5)[CLASSES] @ rng.normal(size=(5, 3)) + 0.5 * rng.normal(size=(900, 3))
STYLE = rng.normal(size=(900, 4))


def test_leakage_is_the_test_accuracy_of_a_logistic_regression():
    found = content_leakage(CONTENT, STYLE, CLASSES, seed=3)
    train = train_rows(CLASSES, 3)
    for codes, ours in ((CONTENT, found.content), (STYLE, found.style)):
        scaled = (codes - codes[train].mean(0)) / codes[train].std(0)
        theirs = LogisticRegression().fit(scaled[train], CLASSES[train]).score(scaled[~train], CLASSES[~train])
        assert ours == pytest.approx(theirs, abs=0.01)
    assert found.content > 0.7
    assert found.style < 0.35
    assert found.chance == pytest.approx((CLASSES[~train] == np.bincount(CLASSES[train]).argmax()).mean())
    assert content_leakage(CONTENT, STYLE, CLASSES, seed=3) == found
    names = np.array(list("abcde"))[CLASSES]  # classes of any type
    assert content_leakage(CONTENT, STYLE, names, seed=3) == found


def test_two_thirds_of_every_class_train():
    train = train_rows(CLASSES, 0)
    for value in range(5):
        mine = value == CLASSES
        assert train[mine].sum() == mine.sum() * 2 // 3
    assert (train != train_rows(CLASSES, 1)).any()
    assert train_rows(np.array([0, 0, 1]), 0)[2]  # a class of one trains
    with raises("classes"):
        train_rows(np.arange(4), 0)


def test_groups_are_of_one_class_and_one_side_and_have_no_member_twice():
    train = train_rows(CLASSES, 0)
    together = group_rows(CLASSES, train, 4, 0)
    assert together.shape == (900, 4)
    assert (together[:, 0] == np.arange(900)).all()
    assert (CLASSES[together] == CLASSES[:, None]).all()
    assert (train[together] == train[:, None]).all()
    assert all(len(set(row)) == 4 for row in together)
    assert group_rows(CLASSES, train, 200, 0) is None  # no class has so many


class Noisy(HalvesData):
    """Each observation has independent noise on its content, which averages out over members."""

    name, size, grid = "noisy", 1200, False

    def factors(self, index_B):
        return torch.stack([index_B % 4, index_B // 4 % 4], 1)

    def images(self, index_B):
        noise = torch.sin(index_B * 12.9898) * 43758.5453 % 1 - 0.5
        left = self.factors(index_B)[:, 0] / 3 + 0.8 * noise
        return paint(torch.stack([left, self.factors(index_B)[:, 1] / 3], 1))


def join(images):
    codes = look(images)
    return torch.cat([codes[..., :1].mean(-2, keepdim=True).expand_as(codes[..., :1]), codes[..., 1:]], -1)


def test_more_members_increase_the_accuracy_and_style_has_no_information():
    what = Representation(look, 2, paint, parts=PARTS, encode_group=join)
    found = group_accuracy(trained(what, data=Noisy()), members=(1, 2, 8), num_samples=900)
    assert found.classes == 4
    assert found.rows == 900
    assert found.content[1] < found.content[2] < found.content[8]
    assert found.content[8] > 0.9
    assert found.style < 0.35
    alone = group_accuracy(trained(what._replace(encode_group=None), data=Noisy()), members=(1, 2), num_samples=900)
    assert alone.content == {1: found.content[1]}
    few = group_accuracy(trained(what), members=(1, 2, 8))  # four observations of each class, two of them to test
    assert list(few.content) == [1, 2]


def test_invalid_arguments():
    with raises("codes_style"):
        content_leakage(CONTENT, STYLE[:5], CLASSES)
    with raises("supervision", value="none"):
        group_accuracy(trained(supervision="none"))
    with raises("parts"):
        group_accuracy(trained(Representation(look, 2)))


def test_test_data_are_not_used_for_training():
    what = Representation(look, 2, paint, parts=PARTS, encode_group=join)
    seen, shown = Noisy(), Noisy()
    shown.images = lambda index: 1 - Noisy.images(shown, index)  # inverted images
    found = group_accuracy(trained(what, data=seen), test=shown, members=(1, 2), num_samples=400)
    assert found.rows == 800
    assert found.content[1] < 0.15
    assert found.content[2] < 0.1
    same = group_accuracy(trained(what, data=seen), test=seen, members=(1, 2), num_samples=400)
    assert same.content[2] > same.content[1] > 0.4
    with raises("data"):
        group_accuracy(trained(what, data=seen), num_samples=1)
