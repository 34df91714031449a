"""The scikit-learn estimator: a failed fit changes nothing, and every stage has its own random numbers."""

import numpy as np
import pandas as pd
import pytest
import torch

import unweave as uw
from unweave import Method, Out, Representation, Unweaver, UserError

OPTIONS = {"latents": 2, "steps": 2, "batch": 8, "device": "cpu"}


def rows(features):
    return np.random.default_rng(features).random((50, features)).astype(np.float32)


def state(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_") or name.startswith("_")}


@pytest.mark.parametrize(
    "features, change",
    [(20, {"lr": -1}), (20, {"shape": (3, 5)}), (20, {"lr": 1e30, "steps": 20}), (10, {"likelihood": "bernoulli"})],
)
def test_a_failed_fit_keeps_the_previous_state(features, change):
    """(A13)"""
    X, other = rows(10), rows(features)
    if change.get("likelihood"):
        other = other * 3  # outside 0..1
    model = Unweaver(**OPTIONS).fit(X)
    codes, before = model.transform(X), state(model)
    with pytest.raises(UserError):
        model.set_params(**change).fit(other)
    assert state(model) == before and model.n_features_in_ == 10 and model.shape_ == (1, 1, 10)
    assert np.array_equal(model.transform(X), codes)
    with pytest.raises(ValueError, match="20 features"):
        model.transform(rows(20))


def test_a_failed_fit_keeps_the_names_of_the_columns():
    """(A13)"""
    names = [f"c{k}" for k in range(10)]
    model = Unweaver(**OPTIONS).fit(pd.DataFrame(rows(10), columns=names))
    with pytest.raises(UserError):
        model.set_params(lr=-1).fit(rows(20))
    assert list(model.feature_names_in_) == names


def test_a_failed_first_fit_leaves_nothing():
    """(A13)"""
    model = Unweaver(**OPTIONS, lr=-1)
    with pytest.raises(UserError):
        model.fit(rows(10))
    assert not hasattr(model, "n_features_in_") and not hasattr(model, "method_")


class First(Method):
    """A method that logs its random numbers and the mean of its batch."""

    players = {"model": ("net",)}
    noise = {"z": uw.normal(4)}

    def __init__(self, data, *, previous=None):
        super().__init__()
        self.net = torch.nn.Linear(data.shape[2], 2)
        self.first = None if previous is None else [previous]

    def forward(self, batch, noise, hyper, step):
        loss = self.net(batch.x).square().mean()
        return Out({"model": loss}, {"noise": noise["z"].mean(), "batch": batch.x.mean()})

    def representation(self):
        return Representation(lambda x: self.net(x)[:, 0, 0], 2)


class Second(First):
    next_stage = None


First.next_stage = Second


def test_later_stages_draw_their_own_random_numbers():
    """(Low finding on estimator.py:149)"""
    model = Unweaver(**OPTIONS, method=First).fit(rows(10))
    first, second = model.losses_[:2], model.losses_[2:]
    assert [record["step"] for record in first] == [record["step"] for record in second] == [1, 2]
    for name in ("noise", "batch"):
        assert not {record[name] for record in first} & {record[name] for record in second}, name
