"""Validation during training."""

import json

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.data import load_data, parse_supervision
from unweave.data.user.arrays import Arrays
from unweave.training.validation import sample_unlabelled

RUN = {"steps": 20, "batch": 16, "net": "mlp", "log_every": 5, "validate_every": 10}
LABELS = "labels(n=100, factors=['digit'])"


def records(run):
    return [json.loads(line) for line in (run.folder.path / "log.jsonl").read_text().splitlines()]


def test_the_log_holds_the_accuracy_on_unlabelled_images(tmp_path):
    run = uw.train("m2", "digits", supervision=LABELS, out=tmp_path / "run", **RUN)
    seen = {record["step"]: record.get("unlabelled_accuracy") for record in records(run)}
    assert seen[5] is seen[15] is None and 0 <= seen[10] <= 1
    index_N, true_NL = sample_unlabelled(parse_supervision(LABELS, run.data).labelled_set(run.data, 0))
    (chances,) = run.representation.classify(run.data.images(index_N))
    assert seen[20] == pytest.approx(float((chances.argmax(1) == true_NL[:, 0]).float().mean()))


def test_validation_does_not_change_the_training(tmp_path):
    runs = [
        uw.train("m2", "digits", supervision=LABELS, out=tmp_path / name, **{**RUN, "validate_every": every})
        for name, every in (("often", 5), ("rarely", 20))
    ]
    for one, other in zip(*(run.method.state_dict().values() for run in runs), strict=True):
        assert torch.equal(one, other)


def test_a_fleet_validates_as_single_runs_do(tmp_path):
    specs = [{"method": "m2", "data": "digits", "supervision": LABELS, "seed": seed, **RUN} for seed in (0, 1)]
    fleet = uw.fit([{**spec, "out": tmp_path / f"fleet{spec['seed']}"} for spec in specs], out=tmp_path / "fleet")
    for spec, together in zip(specs, fleet, strict=True):
        alone = uw.train(**{**spec, "out": tmp_path / f"alone{spec['seed']}"})
        found = [[r.get("unlabelled_accuracy", -1.0) for r in records(run)] for run in (alone, together)]
        assert found[0] == pytest.approx(found[1], abs=0.003)


def test_validation_samples_are_unlabelled_and_numbered_as_labels():
    data, spec = load_data("digits"), "labels(n=200, factors=['digit'], bins=5, permute=True, noise=0.5)"
    used = parse_supervision(spec, data).labelled_set(data, 3)
    index_N, true_NL = sample_unlabelled(used, max_samples=300)
    assert len(set(index_N.tolist())) == 300 and not set(index_N.tolist()) & set(used.table[0].tolist())
    digits, class_labels = data.factors(index_N)[:, 0], used.class_labels(0)
    assert torch.equal(true_NL[:, 0], class_labels[digits]) and len(set(true_NL[:, 0].tolist())) == 5


@pytest.mark.parametrize("supervision", ["labels()", "labels(n=1797)"])
def test_there_is_no_validation_if_all_is_labelled(tmp_path, supervision):
    run = uw.train("m2", "digits", supervision=supervision, out=tmp_path / "run", **RUN)
    assert not any("unlabelled_accuracy" in record for record in records(run))


def test_each_labelled_factor_has_its_own_accuracy(tmp_path):
    """And what is not known of an observation does not count."""
    images = np.random.default_rng(0).random((60, 1, 8, 8), dtype=np.float32)
    form = np.where(np.arange(60) < 40, np.arange(60) % 3, np.nan)
    data = Arrays(images, np.stack([np.arange(60) % 2, form], 1), names=["colour", "form"])
    labels = "labels(n=20, factors=['colour', 'form'])"
    graph = "q(a|x) q(b|x) q(z|x,a,b); p(x|a,b,z); labels: a, b; z: normal(2)"
    settings = {**RUN, "net": "small", "graph": graph}
    run = uw.train("generalized_m2", data, supervision=labels, out=tmp_path / "run", **settings)
    last = records(run)[-1]
    index_N, true_NL = sample_unlabelled(parse_supervision(labels, data).labelled_set(data, 0))
    assert len(index_N) == 40 and (true_NL[:, 0] >= 0).all() and 0 < (true_NL[:, 1] < 0).sum() <= 20
    for name, true_N, chance in zip(
        data.factor_names, true_NL.unbind(1), run.representation.classify(data.images(index_N)), strict=True
    ):
        right = (chance.argmax(1) == true_N)[true_N >= 0].float().mean()
        assert last[f"unlabelled_accuracy_{name}"] == pytest.approx(float(right))
