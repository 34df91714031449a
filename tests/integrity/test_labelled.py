"""Which observations were labelled in training is known for all data, whatever they are called."""

import re
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

import unweave as uw
from unweave.data.views import correlated, noisy, split

OPTIONS = {"steps": 2, "batch": 4, "net": "small", "latents": 2, "device": "cpu"}
COUNT = 200


def labelled(frame):
    """The rows that were labelled in training, according to the table."""
    columns = [name for name in frame if name.endswith("_labelled")]
    return {row for column in columns for row in np.flatnonzero(frame[column].to_numpy()).tolist()}


def lines(frame):
    try:
        from unweave.evaluation.classification import accuracy_lines
    except ImportError:  # its earlier module
        from unweave.predict import accuracy_lines
    return accuracy_lines(frame)


def counts(frame):
    """Numbers of observations of the lines about unlabelled and labelled observations."""
    return [int(re.search(r"of (\d+) observations", line).group(1)) for line in lines(frame)]


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A run on a part of the digits, all of which is labelled."""
    out = tmp_path_factory.mktemp("digits") / "run"
    uw.train("m2", "split(data='digits(size=16)', fraction=0.9)", supervision="labels()", out=out, **OPTIONS)
    return out


@pytest.fixture(scope="module")
def whole():
    data = uw.load_data("digits(size=16)")
    index = torch.arange(data.size)
    return data.images(index).numpy(), data.factors(index).numpy()


@pytest.fixture(scope="module")
def members():
    """The observations of the training part."""
    return set(uw.load_data("split(data='digits(size=16)', fraction=0.9)").index_N.tolist())


def test_the_data_that_the_run_has_a_part_of(digits, members, capsys, tmp_path):
    """(A6)"""
    from unweave.cli import app as cli

    frame = uw.predict(digits, "digits(size=16)")
    assert counts(frame) == [180, 1617] and labelled(frame) == members
    words = ["predict", str(digits), "digits(size=16)", "-o", str(tmp_path / "out.csv")]
    getattr(cli, "app", cli)(words, standalone_mode=False)
    said = " ".join(capsys.readouterr().out.split())
    assert re.search(r"of 180 observations.*not labelled in training.*1617", said)


def test_the_other_part_of_the_data(digits):
    """(A6)"""
    frame = uw.predict(digits, "split(data='digits(size=16)', fraction=0.9, part='validation')")
    assert not labelled(frame) and counts(frame) == [180]
    right = frame["digit"] == frame["digit_true"]
    validation = "split(data='digits(size=16)', fraction=0.9, part='validation')"
    assert uw.class_error(digits, validation)["digit"] == pytest.approx(1 - right.mean())


@pytest.mark.filterwarnings("ignore:class_error")
def test_the_error_is_that_of_observations_without_a_label(digits):
    """(A6)"""
    validation = uw.class_error(digits, "split(data='digits(size=16)', fraction=0.9, part='validation')")
    assert uw.class_error(digits, "digits(size=16)") == pytest.approx(validation)
    with pytest.raises(uw.UserError):
        uw.class_error(digits, "split(data='digits(size=16)', fraction=0.9)")


@pytest.mark.parametrize("order", ["same", "permuted", "subset"])
def test_arrays_of_the_same_images(digits, whole, members, order):
    """(A6)"""
    images, classes = whole
    index = {
        "same": np.arange(1797),
        "permuted": np.random.default_rng(0).permutation(1797),
        "subset": np.arange(99, 500),
    }
    chosen = index[order]
    data = uw.load_data(images[chosen], factors=classes[chosen], names=["digit"])
    frame = uw.predict(digits, data)
    assert labelled(frame) == {row for row, k in enumerate(chosen) if k in members}


@pytest.mark.parametrize("convert", [np.round, np.floor], ids=["rounded", "cut"])
def test_files_of_the_same_images(digits, whole, members, tmp_path, convert):
    """(A6)"""
    for k in range(40):
        Image.fromarray(convert(whole[0][k, 0] * 255).astype(np.uint8)).save(tmp_path / f"{k:02d}.png")
    frame = uw.predict(digits, tmp_path)
    assert labelled(frame) == members & set(range(40))
    assert str(len(labelled(frame))) in lines(frame)[0]


def numbered(size=COUNT, seed=0):
    draw = np.random.default_rng(seed)
    images = draw.integers(0, 256, (size, 1, 8, 8), dtype=np.uint8)
    return images, np.stack([np.arange(size) % 4, np.arange(size) // 4 % 5], 1)


def arrays(images, factors):
    return uw.load_data(images, factors=factors, names=["a", "b"])


def train_on(data, out, supervision="labels(n=30, factors=['a'])", **options):
    return uw.train("m2", data, supervision=supervision, out=out, **OPTIONS | options)


def test_data_in_memory_without_the_data_of_the_run(tmp_path):
    """(A6)"""
    images, factors = numbered()
    train_on(split(arrays(images, factors), fraction=0.5), tmp_path / "run")
    expected = set(split(arrays(images, factors), fraction=0.5).index_N.tolist())
    again = labelled(uw.predict(tmp_path / "run", arrays(images, factors)))
    assert len(again) == 30 and again <= expected
    reverse = labelled(uw.predict(tmp_path / "run", arrays(images[::-1].copy(), factors[::-1].copy())))
    assert reverse == {COUNT - 1 - row for row in again}
    assert not labelled(uw.predict(tmp_path / "run", arrays(*numbered(seed=1))))


def test_repetitions_and_noise_are_the_same_observation(tmp_path):
    """(A6) The labelled observation is recognised without its noise, and in each of its repetitions."""
    data = arrays(*numbered())
    view = noisy(correlated(data, factors=["a", "b"], sigma=0.3, size=300), sigma=0.2)
    run = train_on(view, tmp_path / "run")
    used = run.supervision.labelled_set(view, 0).table[0]
    originals = set(view.origin_index(used).tolist())
    rows = view.origin_index(torch.arange(300)).tolist()
    assert len(rows) > len(set(rows)) and len(used) == 30
    for found in (uw.predict(run), uw.predict(tmp_path / "run", view)):
        assert labelled(found) == {row for row, k in enumerate(rows) if k in originals}
    assert labelled(uw.predict(tmp_path / "run", arrays(*numbered()))) == originals


def test_validation_and_report_leave_out_repetitions(tmp_path):
    """(A6)"""
    from unweave.report.class_accuracy import class_accuracies
    from unweave.training.validation import sample_unlabelled

    data = arrays(*numbered(40))
    view = correlated(data, factors=["a", "b"], sigma=1.0, size=200)
    run = train_on(view, tmp_path / "run", validate_every=2)
    used = run.supervision.labelled_set(view, 0)
    originals = set(view.origin_index(used.table[0]).tolist())
    index_N, _ = sample_unlabelled(used)
    assert len(index_N) and not originals & set(view.origin_index(index_N).tolist())
    (accuracy,) = class_accuracies(run, 0)
    others = set(view.origin_index(torch.arange(200)).tolist()) - originals
    assert accuracy.held_out and accuracy.rows == len(others)


def test_test_observations_of_a_classifier_are_not_its_training_observations():
    """(A7) Codes that only identify an image predict its class by chance if no image is in both parts."""
    from unweave.contract import Part
    from unweave.evaluation.groups import group_accuracy

    index = np.arange(60)
    images = np.zeros((60, 1, 8, 8), np.float32)
    images.reshape(60, 64)[index, index] = 1.0  # images have nothing in common
    data = uw.load_data(images, factors=np.stack([index % 2, index // 2 % 2], 1), names=["a", "b"])
    view = correlated(data, factors=["a", "b"], sigma=100.0, size=2000)

    class Run:
        config = type("Config", (), {"supervision": "groups(by=['a'])"})
        representation = uw.Representation(lambda x: x.flatten(1), 64, parts=(Part("content", 60), Part("style", 4)))

    assert group_accuracy(Run, view, members=(1,)).content[1] < 0.75


def test_a_label_of_another_factor_does_not_count(tmp_path):
    """(A6) Of half of the labelled observations, the second factor is unknown."""
    images, factors = numbered(60)
    factors = factors.astype(float)
    factors[::2, 1] = np.nan
    graph = "q(a|x) q(b|x) q(z|x,a,b); p(x|a,b,z); labels: a, b; z: normal(2)"
    uw.train(
        "generalized_m2",
        arrays(images, factors),
        supervision="labels(n=40, factors=['a', 'b'])",
        graph=graph,
        out=tmp_path / "run",
        **{name: value for name, value in OPTIONS.items() if name != "latents"},
    )
    frame = uw.predict(tmp_path / "run", arrays(images[::-1].copy(), factors[::-1].copy()))
    assert frame["a_labelled"].sum() == 40
    assert (frame["b_labelled"] == (frame["a_labelled"] & frame["b_true"].notna())).all()


def test_floats_that_differ_by_less_than_8_bits(tmp_path):
    """(A6) They are different images, unless they are given in 8 bits."""
    images, factors = numbered(60)
    floats = images / np.float32(256) + np.linspace(0, 1e-3, 60, dtype=np.float32)[:, None, None, None]
    floats[1::2] = floats[::2] + np.float32(1e-6)
    train_on(arrays(floats[::2], factors[::2]), tmp_path / "run")
    frame = uw.predict(tmp_path / "run", arrays(floats, factors))
    assert labelled(frame) == set(range(0, 60, 2))


def test_runs_of_older_versions(tmp_path, digits):
    """(A6) They do not store their labels: these are read from the data if possible, and otherwise unknown."""
    images, factors = numbered()
    run = train_on(arrays(images, factors), tmp_path / "run")
    stored = labelled(uw.predict(tmp_path / "run", arrays(images, factors)))
    (tmp_path / "run" / "labels.safetensors").unlink()
    assert labelled(uw.predict(run, arrays(images, factors))) == stored  # from the data of the object
    frame = uw.predict(tmp_path / "run", arrays(images, factors))
    assert "a_labelled" not in frame
    (line,) = lines(frame)
    assert "200 observations" in line and "not known" in line and "not labelled" not in line
    with pytest.warns(UserWarning, match="not known"):
        uw.class_error(tmp_path / "run", arrays(images, factors))
    assert not (digits / "labels.safetensors").exists()  # rendered again from its call


def test_new_files_without_the_training_data(tmp_path, monkeypatch):
    """(A6)"""
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    images, _ = numbered(12)
    (tmp_path / "in").mkdir()
    for k in range(12):
        Image.fromarray(images[k, 0]).resize((16, 16), Image.Resampling.NEAREST).save(tmp_path / "in" / f"{k:02d}.png")
    rows = "".join(f"{k:02d}.png,{k % 2}\n" for k in range(12))
    (tmp_path / "labels.csv").write_text("file,side\n" + rows)
    data = uw.load_data(str(tmp_path / "in"), factors=str(tmp_path / "labels.csv"), size=16)
    uw.train("m2", data, supervision="labels(n=6)", out=tmp_path / "run", **OPTIONS)
    expected = labelled(uw.predict(tmp_path / "run"))
    assert len(expected) == 6
    shutil.move(tmp_path / "in", tmp_path / "elsewhere")
    shutil.copy(tmp_path / "elsewhere" / "00.png", tmp_path / "elsewhere" / "copy.png")
    frame = uw.predict(tmp_path / "run", tmp_path / "elsewhere")
    assert labelled(frame) == expected | ({12} if 0 in expected else set())


def test_a_damaged_file_is_an_error(tmp_path):
    images, factors = numbered(40)
    run = train_on(arrays(images, factors), tmp_path / "run")
    (tmp_path / "run" / "labels.safetensors").write_bytes(b"damaged")
    with pytest.raises(uw.UserError, match=r"labels\.safetensors"):
        uw.predict(run)
