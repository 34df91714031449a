"""The command line that trains a run again: what it says, read back, is the run."""

import shlex

import pytest

import unweave as uw
from unweave.config import resolve
from unweave.methods import METHODS
from unweave.report import repeat_command
from unweave.training.build import optimizer_settings
from unweave.training.trainer import prepare

TINY = {"net": "small", "latents": 3, "steps": 3, "batch": 4, "log_every": 1, "device": "cpu"}


def parsed(command):
    """A command line as the arguments of train()."""
    words = shlex.split(command)
    assert words[:2] == ["unweave", "train"]
    options, settings = {}, {}
    for name, value in zip(words[3::2], words[4::2], strict=True):
        if name == "--set":
            key, _, settings[key] = value.partition("=")
        else:
            options[name[2:]] = value
    return words[2], options, settings


def test_command_repeats_the_run(tmp_path):
    given = {"beta": "linear(0, 4.5, 1000, 20)", "lr": "linear(1e-3, 1e-05, 3)", "clip": 2.5, "init": "normal(0.01)"}
    given |= {"likelihood": "gaussian"}
    config = uw.train("beta_vae", "digits(size=8)", out=tmp_path / "a", **TINY, **given).config
    assert repeat_command({**config, "precision": "bf16", "engine": "loop"}).endswith("--precision bf16 --engine loop")
    method, options, settings = parsed(repeat_command(config))
    assert settings["beta"] == "linear(0,4.5,1000,20)"
    assert settings["likelihood"] == "gaussian"
    numbers = {name: int(options.pop(name)) for name in ("steps", "batch", "seed")}
    options["clip"] = float(options["clip"])
    again = uw.train(method, out=tmp_path / "b", log_every=1, device="cpu", **numbers, **options, **settings).config
    assert {**again, "created": 0} == {**config, "created": 0}
    assert (tmp_path / "a" / "log.jsonl").read_text() == (tmp_path / "b" / "log.jsonl").read_text()


@pytest.mark.parametrize("lr", [None, 0.25, "x0.3", "x linear(1, 0.01, 300)"])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_command_repeats_the_optimizer(lr, optimizer):
    options = dict(supervision="labels(n=9)", net="mlp", device="cpu", lr=lr, optimizer=optimizer)
    config, _, _ = prepare("aae_semi", "digits", **options)
    _, options, _ = parsed(repeat_command(config))
    assert ("lr" in options) is (lr is not None) and options.get("optimizer", "adam") == optimizer
    again = optimizer_settings(METHODS["aae_semi"], options.get("lr"), 0.0, optimizer)
    assert again.keys() == config["optimizer"].keys()
    for player, settings in again.items():
        assert settings.pop("lr") == pytest.approx(config["optimizer"][player].pop("lr"), rel=1e-9)
        assert settings == config["optimizer"][player]


def test_command_of_two_stages_says_no_rate_that_is_their_own():
    config, _, _ = prepare("m1", "digits", supervision="labels(n=9)", net="mlp", device="cpu")
    assert "lr" not in parsed(repeat_command(config))[1]


@pytest.mark.parametrize("name", list(METHODS))
def test_command_leaves_defaults_out_and_keeps_the_rest(name):
    fixed, hyper = resolve(METHODS[name], {"latents": 7})
    optimizer_defaults = {
        p: {"lr": 1e-4, "clip": 0.0, **METHODS[name].optimizer_defaults.get(p, {})} for p in METHODS[name].players
    }
    config = {"method": name, "arguments": fixed, "hyper": hyper, "data": "sprites", "supervision": "pairs(k=1)",
              "data_options": {"size": 32, "antialias": 1}, "steps": 5, "batch": 64, "seed": 3,
              "optimizer": optimizer_defaults, "precision": "float32", "engine": "auto"}  # fmt: skip
    method, options, settings = parsed(repeat_command(config))
    assert method == name
    assert options == {
        "data": "sprites(size=32)",
        "supervision": "pairs(k=1)",
        "steps": "5",
        "batch": "64",
        "seed": "3",
    }
    assert resolve(METHODS[name], settings) == (fixed, hyper)
    assert "net" not in settings
