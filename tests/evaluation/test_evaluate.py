"""Evaluation: codes made once and kept, scores with intervals, plain arrays and files."""

import json

import numpy as np
import pytest
import torch
from mentions import mentions
from raises import raises

import unweave as uw
from unweave.contract import Representation
from unweave.data.user.arrays import Arrays
from unweave.evaluation import codes as encoding
from unweave.evaluation.evaluate import evaluate, evaluate_arrays, evaluate_npz, read_npz
from unweave.metrics import METRICS, importance_matrix, mig_score
from unweave.model import load
from unweave.report.information import adjusted_information

FACTORS = np.stack(np.unravel_index(np.arange(60), (4, 3, 5)), axis=1).repeat(10, axis=0)
CODES = FACTORS + np.random.default_rng(0).normal(scale=0.3, size=FACTORS.shape)
COUNTED = ["mig", "modularity", "mig_sup", "dcimig", "jemmig"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    return uw.train("beta_vae", "digits", net="mlp", latents=4, steps=3, batch=8, device="cpu", out=out)


@pytest.fixture
def run(trained, tmp_path):
    """A copy of the run folder without files of earlier tests."""
    path = tmp_path / "run"
    path.mkdir()
    for name in ("config.json", "weights.safetensors"):
        (path / name).write_bytes((trained.folder.path / name).read_bytes())
    return path


def counted_encodings(monkeypatch):
    calls, real = [], encoding.encode_dataset

    def encode(*arguments, **options):
        calls.append(options["num_samples"])
        return real(*arguments, **options)

    monkeypatch.setattr(encoding, "encode_dataset", encode)
    return calls


def test_earlier_names_of_arguments_and_of_attributes(run):
    with pytest.warns(DeprecationWarning, match="num_samples"):
        found = uw.evaluate(run, metrics=["mig"], rows=50, save=False)
    assert found.rows == 50
    assert (found.alive == found.active).all() and (found.nats == found.latent_information).all()
    with pytest.warns(DeprecationWarning, match="factor_types"):
        assert mig_score(CODES, FACTORS, kinds="continuous") == mig_score(CODES, FACTORS, factor_types="continuous")
    with pytest.warns(DeprecationWarning, match="factor_types"):
        uw.evaluate_arrays(CODES, FACTORS, kinds="discrete", metrics=["mig"])
    with pytest.warns(DeprecationWarning), raises("kinds", value="discrete"):
        mig_score(CODES, FACTORS, kinds="discrete", factor_types="discrete")


def test_sampled_codes_are_draws_from_the_posteriors(run):
    mean = evaluate(run, metrics=["mig"], num_samples=300)
    kept = (run / "scores.json").read_text()
    drawn = evaluate(run, metrics=["mig"], num_samples=300, codes="sampled")
    stored = encoding.load_codes(load(run).folder, mean.codes, 300, load(run).data)
    found = encoding.sample_codes(stored, 0)
    noise = (found.codes - stored.codes) / np.exp(0.5 * stored.logvar)
    assert abs(noise.mean()) < 0.1 and abs(noise.std() - 1) < 0.1 and found.logvar is None
    given = evaluate_arrays(found.codes, stored.factors, metrics=["mig"])
    assert drawn.scores["mig"] == pytest.approx(given.scores["mig"]) and drawn.scores["mig"] != mean.scores["mig"]
    assert drawn.scores == evaluate(run, metrics=["mig"], num_samples=300, codes="sampled").scores
    assert (run / "scores.json").read_text() == kept  # the run's own are those of means
    with raises("codes", value="modes", accepted=["mean", "sampled"]):
        evaluate(run, codes="modes")
    plain = Representation(encode=lambda x: x.flatten(1)[:, :3], latents=3)
    with raises("codes", value="sampled"):
        evaluate(plain, "digits", metrics=["mig"], num_samples=50, codes="sampled")


def test_codes_are_encoded_once(run, monkeypatch):
    calls = counted_encodings(monkeypatch)
    first = evaluate(run, metrics=["mig"], num_samples=200)
    assert (run / "codes.safetensors").is_file()
    again = evaluate(run, metrics=["mig", "irs"], num_samples=200)
    fewer = evaluate(run, metrics=["mig"], num_samples=100)  # the beginning of the same draw
    assert calls == [200]
    assert first.scores["mig"] == again.scores["mig"] and fewer.rows == 100
    np.testing.assert_array_equal(first.information, again.information)
    np.testing.assert_allclose(first.kl, again.kl)


def test_stored_codes_are_replaced_if_anything_they_depend_on_changes(run, monkeypatch):
    calls = counted_encodings(monkeypatch)
    model = load(run)
    evaluate(model, metrics=[], num_samples=100)
    evaluate(model, metrics=[], num_samples=150)  # more than there are
    evaluate(model, metrics=[], num_samples=100, seed=1)
    evaluate(model, metrics=[], num_samples=None, seed=1)  # all, in their own order
    with torch.no_grad():
        next(model.method.parameters()).add_(0.1)
    evaluate(model, metrics=[], num_samples=None, seed=1)
    assert calls == [100, 150, 100, None, None]


def test_damaged_stored_codes_are_replaced(run, monkeypatch):
    evaluate(run, metrics=[], num_samples=100)
    (run / "codes.safetensors").write_bytes(b"rubbish")
    calls = counted_encodings(monkeypatch)
    evaluate(run, metrics=[], num_samples=100)
    assert calls == [100]
    evaluate(run, metrics=[], num_samples=100)
    assert calls == [100]


def test_save_false_writes_no_files(run):
    before = sorted(run.iterdir())
    evaluate(run, num_samples=100, save=False)
    assert sorted(run.iterdir()) == before


def test_scores_of_the_same_codes_are_merged(run):
    def stored():
        return json.loads((run / "scores.json").read_text())

    evaluate(run, metrics=["mig"], num_samples=100, resamples=5)
    evaluate(run, metrics=["irs"], num_samples=100)
    assert set(stored()["scores"]) == {"mig", "irs"} and set(stored()["intervals"]) == {"mig"}
    evaluate(run, metrics=["irs"], num_samples=100, seed=1)
    assert set(stored()["scores"]) == {"irs"}
    (run / "scores.json").write_text("[]")
    evaluate(run, metrics=["irs"], num_samples=100)
    assert set(stored()["scores"]) == {"irs"}


def test_a_latent_with_a_constant_posterior_is_inactive():
    """Collapsed content of ML-VAE: the product of G posteriors of variance G is the prior, a single one is not."""
    means = np.stack([CODES[:, 0], np.zeros(len(CODES)), np.full(len(CODES), 2.0)], axis=1)
    logvar = np.log(np.stack([np.full(len(CODES), 0.1), np.full(len(CODES), 4.0), np.full(len(CODES), 0.5)], axis=1))
    result = evaluate_arrays(means, FACTORS, logvar=logvar, metrics=[])
    assert (result.kl > 0.8).all()
    assert result.active.tolist() == [True, False, False]
    assert result.latent_information[0] == pytest.approx(0.5 * np.log((means[:, 0].var() + 0.1) / 0.1))
    assert result.latent_information[1:] == pytest.approx([0.0, 0.0], abs=1e-9)
    assert json.loads(json.dumps(result.as_json()))["carried"] == pytest.approx(result.latent_information.tolist())


def test_quick_metrics_of_a_single_factor(run):
    result = evaluate(run, num_samples=100)  # digits have one factor, the digit
    quick = [name for name, metric in METRICS.items() if metric.quick and metric.factors < 2 and not metric.needs]
    assert list(result.scores) == quick
    assert mentions(result.skipped["factor_vae"], "2 factors", "1")
    named = evaluate(run, metrics=["factor_vae"], num_samples=100)
    assert list(named.scores) == ["factor_vae"]


def test_scores_of_the_posterior_come_with_a_run(run):
    result = evaluate(run, metrics=["mig_posterior", "kl_decomposition"], num_samples=150)
    assert result.scores["kl_decomposition.kl"] == pytest.approx(result.kl.sum(), rel=1e-3)
    assert 0.0 <= result.scores["mig_posterior"] <= 1.0


def test_arrays_without_factors_are_scored_by_what_needs_none():
    data = Arrays(np.random.default_rng(0).random((50, 1, 8, 8)).astype(np.float32))
    what = Representation(lambda x: x.flatten(1)[:, :3], 3)
    result = evaluate(what, data, metrics="all")
    assert set(result.scores) == {"gaussian_total_correlation", "active_dimensions"}
    assert result.information.shape == (3, 0) and np.isnan(result.kl).all()


def test_missing_labels_of_a_data_set_are_missing_values():
    labels = np.arange(60) % 3
    images = np.random.default_rng(0).random((60, 1, 8, 8)).astype(np.float32)
    images[:, 0, 0, 0] = labels / 2
    unknown = labels.astype(float)
    unknown[::4] = np.nan
    what = Representation(lambda x: x.flatten(1)[:, :2], 2)
    data = Arrays(images, unknown[:, None])
    assert evaluate(what, data, metrics=["mig"]).scores["mig"] > 0.5


def test_metrics_with_predictors_are_tested_on_held_out_rows(run, monkeypatch):
    calls = counted_encodings(monkeypatch)
    result = evaluate(run, metrics=["sap"], num_samples=400)
    assert calls == [600] and result.rows == 400
    whole = load(run)
    table = encoding.encode_dataset(whole.representation, whole.data, num_samples=600, seed=0)
    order = np.random.default_rng(0).permutation(400)
    expected = METRICS["sap"].function(
        table.codes[:400][order], table.factors[:400][order], test=(table.codes[400:], table.factors[400:])
    )
    assert result.scores["sap"] == pytest.approx(expected)


# --- arrays ----------------------------------------------------------------------------------------------------------


def test_arrays_are_scored_like_the_functions():
    result = evaluate_arrays(CODES, FACTORS, metrics=COUNTED, names=["a", "b", "c"])
    order = np.random.default_rng(0).permutation(600)
    expected = {name: METRICS[name].function(CODES[order], FACTORS[order]) for name in COUNTED}
    assert result.scores == pytest.approx(expected)
    assert result.factor_names == ("a", "b", "c") and result.rows == 600


def test_intervals_contain_their_scores_and_missing_ones_are_listed():
    result = evaluate_arrays(CODES, FACTORS, metrics=[*COUNTED, "irs", "mcc", "factor_vae"], resamples=60)
    assert set(result.intervals) == {*COUNTED, "irs", "mcc"}
    for name, (low, high) in result.intervals.items():
        assert low <= result.scores[name] <= high and high - low < 0.2
    assert result.intervals == evaluate_arrays(CODES, FACTORS, metrics=list(result.scores), resamples=60).intervals
    assert json.loads(json.dumps(result.as_json()))["intervals"]["mig"] == list(result.intervals["mig"])


def test_importance_comes_with_dci_from_the_same_fit():
    options = {"test": (CODES[::2], FACTORS[::2]), "seed": 3}
    result = evaluate_arrays(CODES, FACTORS, metrics=["dci"], **options)
    order = np.random.default_rng(3).permutation(600)
    arguments = (CODES[order], FACTORS[order])
    expected = METRICS["dci"].function(*arguments, **options)
    assert result.scores == {f"dci.{part}": value for part, value in expected.items()}
    np.testing.assert_array_equal(result.importance, importance_matrix(*arguments, **options))
    assert json.loads(json.dumps(result.as_json()))["importance"][0][0] == result.importance[0, 0]


def test_all_lists_skipped_metrics():
    result = evaluate_arrays(CODES[:100], FACTORS[:100, :2], metrics=["group_mig"], groups=([0, 0, 1], [0, 1]))
    assert -1.0 <= result.scores["group_mig"] <= 1.0
    with raises("metrics", value="group_mig"):
        evaluate_arrays(CODES, FACTORS, metrics=["group_mig"])
    with raises("metrics", value="mig_posterior"):
        evaluate_arrays(CODES, FACTORS, metrics=["mig_posterior"])
    given = evaluate_arrays(CODES, FACTORS, metrics=["mig_posterior"], logvar=np.full(CODES.shape, -2.0))
    assert 0.0 < given.scores["mig_posterior"] < 1.0 and np.isfinite(given.kl).all()


@pytest.mark.parametrize(
    ("options", "argument", "value"),
    [
        ({"metrics": ["migg"]}, "metric", "migg"),
        ({"metrics": "some"}, "metrics", "some"),
        ({"names": ["a"]}, "names", "1 names"),
        ({"logvar": np.zeros((2, 2))}, "logvar", "shape (2, 2)"),
        ({"resamples": -1}, "resamples", -1),
        ({"factor_types": "odd"}, "factor_types", "odd"),
        ({"device": "gpu"}, "device", "gpu"),
    ],
)
def test_invalid_options(options, argument, value):
    with raises(argument, value=value):
        evaluate_arrays(CODES, FACTORS, **{"metrics": ["mig"], **options})


def test_device_of_a_loaded_run(run):
    assert load(run, device="auto").config.method == "beta_vae"
    with raises("device", value="gpu"):
        load(run, device="gpu")


def test_a_representation_without_encoder():
    what = Representation(encode=None, latents=3, decode=lambda z: z)
    with raises("method"):
        evaluate(what, "digits", metrics=["mig"], num_samples=50)


def test_a_file_has_the_scores_of_its_arrays(tmp_path):
    np.savez(tmp_path / "a.npz", codes=CODES, factors=FACTORS, names=["a", "b", "c"])
    assert read_npz(tmp_path / "a.npz").names == ("a", "b", "c")
    assert (
        evaluate_npz(tmp_path / "a.npz", metrics=["mig"]).scores
        == evaluate_arrays(CODES, FACTORS, metrics=["mig"]).scores
    )


def test_information_about_few_known_values_is_corrected_for_chance():
    """Codes at random and a hundred labels of 2,000: counting sees a quarter of the factor's entropy in each."""
    draw = np.random.default_rng(0)
    codes, factor = draw.standard_normal((2000, 20)), draw.integers(10, size=2000).astype(float)
    factor[100:] = np.nan
    result = evaluate_arrays(codes, np.stack([factor, draw.integers(3, size=2000)], 1), metrics=["mig"])
    assert result.known.tolist() == [100, 2000]
    counted = result.information[:, 0] / result.entropies[0]
    assert (
        counted.min() > 0.15
        and (adjusted_information(result) > 0).sum() <= 2
        and adjusted_information(result).max() < 0.2
    )
    assert result.chance[:, 1].mean() == pytest.approx(19 * 2 / 4000, rel=0.4)  # 20 bins, 3 classes: Miller 1955
    same = evaluate_arrays(np.nan_to_num(factor)[:100, None], factor[:100, None], metrics=["mig"])
    assert adjusted_information(same) == pytest.approx(1.0)  # who knows all of it, knows all of it
    stored = json.loads(json.dumps(result.as_json()))
    assert stored["known"] == [100, 2000]
