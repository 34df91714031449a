"""RunConfig: its JSON, the command that repeats a run, and what distinguishes two runs."""

import inspect
import json
import shlex

import pytest
from raises import raises

import unweave as uw
from unweave.config import OPTIONS, RunConfig, option_default, read_config, resolve_settings
from unweave.config.optimizers import resolve_optimizers
from unweave.methods import METHODS
from unweave.training.prepare import prepare

TINY = {"net": "small", "latents": 3, "steps": 3, "batch": 4, "log_every": 1, "device": "cpu"}


@pytest.fixture
def run(tmp_path):
    return prepare("beta_vae", "digits(size=8)", out=tmp_path / "run", lr="linear(1e-3, 1e-5, 3)", **TINY)


def parsed(command):
    """Return the method, the options and the settings of a command line."""
    words = shlex.split(command)
    assert words[:2] == ["unweave", "train"]
    options, settings = {}, {}
    for name, value in zip(words[3::2], words[4::2], strict=True):
        if name == "--set":
            key, _, settings[key] = value.partition("=")
        else:
            options[name[2:].replace("-", "_")] = value
    return words[2], options, settings


def numbers(options):
    return {name: int(options.pop(name)) for name in ("steps", "batch", "seed")}


def test_command_repeats_the_run(tmp_path):
    given = {"beta": "linear(0, 4.5, 1000, 20)", "lr": "linear(1e-3, 1e-05, 3)", "clip": 2.5, "init": "normal(0.01)"}
    given |= {"likelihood": "gaussian"}
    config = uw.train("beta_vae", "digits(size=8)", out=tmp_path / "a", **TINY, **given).config
    changed = config.replace(precision="bf16", engine="loop")
    assert " ".join(changed.command()).endswith("--precision bf16 --engine loop")
    method, options, settings = parsed(" ".join(config.command()))
    assert settings["beta"] == "linear(0,4.5,1000,20)"
    assert settings["likelihood"] == "gaussian"
    options["clip"] = float(options["clip"])
    again = uw.train(method, out=tmp_path / "b", log_every=1, device="cpu", **numbers(options), **options, **settings)
    assert again.config.replace(created="") == config.replace(created="")
    assert (tmp_path / "a" / "log.jsonl").read_text() == (tmp_path / "b" / "log.jsonl").read_text()


@pytest.mark.parametrize("lr", [None, 0.25, "x0.3", "x linear(1, 0.01, 300)"])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_command_repeats_the_optimizer(lr, optimizer):
    options = dict(supervision="labels(n=9)", net="mlp", device="cpu", lr=lr, optimizer=optimizer)
    config = prepare("aae_semi", "digits", **options).config
    _, options, _ = parsed(" ".join(config.command()))
    assert ("lr" in options) is (lr is not None) and options.get("optimizer", "adam") == optimizer
    again = resolve_optimizers(METHODS["aae_semi"], options.get("lr"), 0.0, optimizer)
    assert again == config.optimizers


def test_command_of_two_stages_leaves_out_their_own_rates():
    config = prepare("m1", "digits", supervision="labels(n=9)", net="mlp", device="cpu").config
    assert "lr" not in parsed(" ".join(config.command()))[1]


@pytest.mark.parametrize("name", list(METHODS))
def test_command_leaves_defaults_out_and_keeps_the_rest(name):
    arguments, hyper = resolve_settings(METHODS[name], {"latents": 7})
    optimizers = resolve_optimizers(METHODS[name])
    options = {"supervision": "pairs(k=1)", "steps": 5, "seed": 3}
    data = {"data": "sprites", "data_options": {"size": 32, "antialias": 1}}
    config = RunConfig(method=name, arguments=arguments, hyper=hyper, optimizers=optimizers, **data, **options)
    method, options, settings = parsed(" ".join(config.command()))
    assert method == name
    assert numbers(options) == {"steps": 5, "batch": 64, "seed": 3}
    assert options == {"data": "sprites(size=32)", "supervision": "pairs(k=1)"}
    assert resolve_settings(METHODS[name], settings) == (arguments, hyper)
    assert "net" not in settings


def write_folder(run):
    with run.folder.create(run.config.to_json()):
        pass


def test_json_round_trip(run):
    stored = json.loads(json.dumps(run.config.to_json()))
    assert stored["format"] == 2
    assert RunConfig.from_json(stored) == run.config
    write_folder(run)
    assert read_config(run.folder) == run.config


def test_fields_are_read_like_those_of_a_dict(run):
    assert run.config["steps"] == run.config.steps and run.config["start"] == run.config.init


def test_a_newer_format_and_a_damaged_file_are_errors(run):
    write_folder(run)
    stored = run.folder.read_json("config.json")
    run.folder.write_json("config.json", {**stored, "format": 99})
    with raises("run", value=str(run.folder.path)):
        read_config(run.folder)
    for damaged in ([], {}, {**stored, "format": 1}):
        run.folder.write_json("config.json", damaged)
        with raises("run", value=str(run.folder.path)):
            read_config(run.folder)


def test_replicas_of_a_fleet_may_differ_in_seed_rates_and_hyperparameters_only(run):
    def key(**given):
        return prepare("beta_vae", run.data, **{**TINY, "lr": 1e-3, **given}).config.cohort_key()

    assert key() == key(seed=5) == key(lr=0.1) == key(beta=7.0) == key(steps=9) == key(init="normal(0.1)")
    assert key(clip=1) == key(clip=2)
    different = [key(), key(batch=8), key(latents=4), key(optimizer="sgd"), key(log_every=2), key(clip=1)]
    assert len(set(different)) == len(different)


def test_difference_names_the_first_field_of_another_run(run):
    config = run.config
    assert config.difference(config.replace(device="cuda", created="later", checkpoint_every=7, engine="loop")) == ""
    assert config.difference(config.replace(steps=9)) == "steps"
    assert config.difference(config.replace(hyper={"beta": 2.0})) == "hyper"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", 1.5),
        ("steps", "a"),
        ("batch", None),
        ("batch", 1),
        ("seed", 2**62),
        ("seed", True),
        ("lr", -1),
        ("lr", "x"),
        ("clip", "a"),
        ("clip", -1),
        ("optimizer", "adma"),
        ("engine", "slow"),
        ("precision", "float16"),
        ("log_every", 0),
        ("validate_every", 0),
        ("checkpoint_every", 0),
        ("checkpoint_every", "30m"),
        ("checkpoint_every", "-1s"),
        ("lr", True),
        ("lr", ("a", 1, 2, 3)),
        ("lr", (1.0, 0.1, 0, 0)),
        ("init", None),
        ("device", None),
        ("device", "cpu:x"),
        ("keep_state", "yes"),
        ("init_from", ""),
    ],
)
def test_invalid_options_are_refused_before_anything_is_written(name, value, tmp_path):
    with raises(name):
        uw.train("vae", "digits(size=16)", net="small", **{name: value}, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("given", "stored"), [(500, 500), ("500", 500), ("30s", "30s"), ("0.5s", "0.5s"), (" 2s ", "2s"), ("0s", "0s")]
)
def test_checkpoint_intervals_are_steps_or_seconds(given, stored):
    assert OPTIONS["checkpoint_every"].check("checkpoint_every", given) == stored


def test_the_keywords_of_train_are_the_declared_options():
    parameters = inspect.signature(uw.train).parameters
    assert {name: parameters[name].default for name in OPTIONS} == {name: option_default(name) for name in OPTIONS}


def test_an_earlier_option_name_is_accepted():
    assert prepare("vae", "digits(size=16)", start="normal(0.1)", net="small").config.init == "normal(0.1)"


@pytest.mark.parametrize("given", [{"start": 1, "init": 2}, {"critic_width": 1, "discriminator_width": 2}])
def test_a_value_by_both_its_names_is_an_error(given):
    with raises(next(iter(given)), value=1):
        prepare("factor_vae", "digits(size=16)", **given)
