"""Optimizer settings that a method declares."""

import pytest
from raises import raises

import unweave as uw
from unweave.config.optimizers import resolve_optimizers


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ({"lr": 1e-3, "weight_decay": 0.1}, "weight_decay"),
        ({"bta": (0.5, 0.9)}, "bta"),
        ({"sgd": {"lr": 0.1, "nesterov": True}}, "nesterov"),
    ],
)
def test_unknown_settings_are_an_error(declared, value):
    class Declared(uw.Method):
        players = {"model": ("net",)}
        optimizer_defaults = {"model": declared}

    with raises("optimizer setting", value=value, accepted=["lr"]):
        resolve_optimizers(Declared)


def test_an_unknown_player_is_an_error():
    class Declared(uw.Method):
        players = {"model": ("net",)}
        optimizer_defaults = {"modell": {"lr": 1e-3}}

    with raises("player", value="modell", accepted=["model"]):
        resolve_optimizers(Declared)


def test_earlier_names_of_class_attributes_are_read():
    with pytest.warns(DeprecationWarning, match="optimizer_defaults"):

        class Own(uw.Method):
            recipe = {"model": {"lr": 0.5}}
            players = {"model": ()}

    assert resolve_optimizers(Own)["model"]["lr"] == 0.5
