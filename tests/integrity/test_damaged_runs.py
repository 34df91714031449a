"""(B-H8) Every damaged run folder leads to one line that says so, and never to a traceback."""

import json
import shutil
import struct

import pytest

import unweave as uw
from unweave.report import report

pytestmark = pytest.mark.filterwarnings("ignore:.*no digests:UserWarning")
OPTIONS = {"net": "small", "latents": 2, "batch": 4, "steps": 4, "log_every": 1, "checkpoint_every": 2, "device": "cpu"}
NESTED = "[" * 100_000
WRONG = ["x", 5, -1, None, [], {}, [[1]], 1e999, 10**400, True]


def evaluate(run):
    return uw.evaluate(run, metrics=["irs"], save=False)


def write_report(run):
    return report([run], run.parent / "report.html")


COMMANDS = {"load": uw.load, "resume": uw.resume, "evaluate": evaluate, "report": write_report}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A finished run and an interrupted one, whose method predicts classes, with labels."""
    root = tmp_path_factory.mktemp("runs")

    def stop(progress):
        if progress.step == 3:
            raise KeyboardInterrupt

    options = {"data": "digits(size=8)", "supervision": "labels(n=50)", **OPTIONS}
    uw.train("m2", out=root / "finished", **options)
    with pytest.raises(KeyboardInterrupt):
        uw.train("m2", out=root / "stopped", observe=stop, **options)
    return root


@pytest.fixture
def outcomes(runs, tmp_path):
    """Return a function that damages copies of both runs and returns the errors of all commands, by state and command.

    Any error that is not a UserError of one line fails the test.
    """

    def call(damage, commands=("load", "resume"), states=("finished", "stopped")):
        found = {}
        for state in states:
            for command in commands:
                run = tmp_path / state
                shutil.rmtree(run, ignore_errors=True)
                shutil.copytree(runs / state, run)
                damage(run)
                try:
                    COMMANDS[command](run)
                except uw.UserError as error:
                    found[state, command] = str(error)
        assert not any("\n" in message for message in found.values()), found
        return found

    return call


def replace_json(name, *path, value):
    """Return a function that replaces an entry of a JSON file of a run."""

    def damage(run):
        stored = json.loads((run / name).read_text())
        entry = stored
        for key in path[:-1]:
            entry = entry[key]
        entry[path[-1]] = value
        (run / name).write_text(json.dumps(stored))

    return damage


def write(name, content):
    def damage(run):
        if (run / name).exists() or "*" not in name:
            (run / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return damage


def replace_about(run, change):
    """Replace the metadata of the files of tensors; digests are left out, as in files of older versions."""
    for path in run.glob("*.safetensors"):
        content = path.read_bytes()
        end = 8 + struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8:end])
        about = json.loads(header["__metadata__"]["about"])
        for name in ("digest", "identity", "versions"):
            about.pop(name, None)
        header["__metadata__"]["about"] = json.dumps(change(about)) if callable(change) else change
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        path.write_bytes(struct.pack("<Q", len(text)) + text + content[end:])


FIELDS = "method arguments hyper data data_options optimizers supervision steps batch seed log_every checkpoint_every"
ENTRIES = [
    (("optimizers", "model", "lr"), "x"),
    (("optimizers", "model", "betas"), 3),
    (("optimizers", "model"), {}),
    (("optimizers", "model"), "x"),
    (("hyper", "alpha"), "x"),
    (("hyper", "alpha"), [1, 2]),
    (("arguments", "latents"), [1]),
    (("data_options", "size"), "x"),
    (("data_options", "nothing"), 1),
    (("versions",), "x"),
    (("notices",), "x"),
    (("created",), 5),
    (("format",), "x"),
    (("format",), 99),
    (("precision",), "x"),
    (("lr",), {}),
    (("init",), 5),
    (("clip",), "x"),
]


@pytest.mark.parametrize("name", FIELDS.split())
def test_a_configuration_with_a_value_of_the_wrong_type(outcomes, runs, name):
    right = type(json.loads((runs / "finished" / "config.json").read_text()).get(name))
    for value in WRONG:
        errors = outcomes(replace_json("config.json", name, value=value))
        assert right is type(value) or len(errors) == 4, (name, value, errors)


def test_a_configuration_with_a_wrong_entry(outcomes):
    for path, value in ENTRIES:
        assert len(outcomes(replace_json("config.json", *path, value=value))) == 4, (path, value)


def test_a_configuration_that_is_none(outcomes):
    for content in [NESTED, NESTED.replace("[", '{"a":'), "", "5", "[]", "null", '"x"', b"\xff\xfe", "{"]:
        errors = outcomes(write("config.json", content), COMMANDS)
        assert len(errors) == 8 and all("damaged" in message for message in errors.values()), content[:9]


def test_a_description_of_the_model_that_is_none(outcomes, monkeypatch):
    monkeypatch.setitem(COMMANDS, "load", lambda run: uw.load(run, with_data=False))
    for content in [NESTED, "", "5", "[]", '"x"', b"\xff\xfe", "{}"]:
        errors = outcomes(write("model.json", content))
        assert "damaged" in errors["finished", "load"] and "damaged" in errors["stopped", "load"], content[:9]


MODEL_FIELDS = [("data",), ("pictures",), ("labels",), ("labels", 0), ("data", "shape"), ("data", "size")]
MODEL_FIELDS += [
    ("data", "labels"),
    *(("labels", 0, name) for name in ("factor", "size", "values", "classes", "spans")),
]


def test_a_description_of_the_model_with_a_value_of_the_wrong_type(outcomes, monkeypatch):
    monkeypatch.setitem(COMMANDS, "load", lambda run: uw.load(run, with_data=False))
    for path in MODEL_FIELDS:
        for value in WRONG:
            errors = outcomes(replace_json("model.json", *path, value=value), ["load"], ["finished"])
            if value == "x" and path != ("labels", 0, "factor"):
                assert "damaged" in errors["finished", "load"], path


def test_metadata_of_tensors_that_are_none(outcomes):
    for value in [5, None, "x", [], NESTED, '{"stage": "x"}', '{"stage": "999999"}', '{"stage": 5}']:
        text = value if isinstance(value, str) else json.dumps(value)
        errors = outcomes(lambda run, text=text: replace_about(run, text), COMMANDS)
        assert len(errors) == 8 and all("damaged" in message for message in errors.values()), str(value)[:20]


@pytest.mark.parametrize("name", ["stage", "first_step", "format"])
def test_metadata_of_tensors_with_a_wrong_entry(outcomes, name):
    for value in ("x", "-1", "999999", "\u00b2", None, 7, [], {}):

        def damage(run, value=value):
            replace_about(run, lambda about: {**about, name: value})

        outcomes(damage, ["load"])
        outcomes(damage, ["resume"], ["stopped"])


@pytest.mark.parametrize("name", ["weights.safetensors", "checkpoint.safetensors"])
def test_a_file_of_tensors_that_is_none(outcomes, name):
    state = "finished" if name.startswith("weights") else "stopped"
    for content in [b"", b"\x00" * 99, b"\xff" * 99, b"\x02" + bytes(7) + b"[]", b"\x10\x00"]:

        def damage(run, content=content):
            for path in run.glob(name.replace(".", "*.")):
                path.write_bytes(content)

        errors = outcomes(damage, COMMANDS, [state])
        assert all("damaged" in errors[state, command] for command in COMMANDS), content[:9]


RECORDS = [
    '{"stage": 0, "step": null}',
    '{"stage": 0}',
    '{"stage": "0", "step": 1}',
    "5",
    "null",
    "rubbish",
    "",
    NESTED,
]
RECORDS += ['{"stage": 0, "step": 1, "loss": "x"}', '{"stage": 0, "step": 1, "loss": 1' + "0" * 400 + "}", "\x00\x00"]


def test_a_log_with_a_record_that_is_none(outcomes):
    for line in RECORDS:

        def damage(run, line=line):
            lines = (run / "log.jsonl").read_text().splitlines()
            (run / "log.jsonl").write_text("\n".join([lines[0], line, *lines[1:]]) + "\n")

        errors = outcomes(damage, ["resume"], ["stopped"])
        assert "damaged" in errors["stopped", "resume"], line[:40]
    assert "damaged" in outcomes(damage, ["report"], ["finished"])["finished", "report"]


def test_the_last_line_of_a_log_may_be_incomplete(outcomes):
    def damage(run):
        with open(run / "log.jsonl", "a") as file:
            file.write('{"stage": 0, "st')

    assert not outcomes(damage, ["resume"], ["stopped"]) and not outcomes(damage, ["report"], ["finished"])


def test_a_training_time_that_is_none(outcomes):
    for content in ['{"seconds": "x"}', '{"seconds": null}', '{"device": 5}', "[]", "5", NESTED]:
        errors = outcomes(write("time.json", content), ["resume"], ["stopped"])
        assert "damaged" in errors["stopped", "resume"], content[:9]
    assert "damaged" in outcomes(write("time.json", content), ["report"], ["finished"])["finished", "report"]
