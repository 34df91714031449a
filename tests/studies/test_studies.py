"""All studies: runs that can be trained, published numbers with sources."""

import math

import pytest
from tiny_mnist import write_mnist

from unweave.config import resolve_settings, split_options
from unweave.data import load_data
from unweave.methods import METHODS
from unweave.metrics import METRICS
from unweave.studies import STUDIES
from unweave.studies.study import PROVENANCE, SCALES, base_name, settings_text
from unweave.studies.work import folder_name, group_into_cohorts
from unweave.training.prepare import prepare

# What no metric gives: test errors in per cent, likelihoods in nats of images of 32 x 32.
HIGHEST = {"kingma2014": 100, "makhzani2015": 100, "zhao2019": 710}

STATISTICS = ("median", "mean", "best", "range", "one model")
BOTH = [(name, scale) for name in STUDIES for scale in SCALES]


@pytest.fixture(scope="module")
def data_of(tmp_path_factory):
    """The data set of a text, once; MNIST and Fashion-MNIST from files of our own."""
    root, found = tmp_path_factory.mktemp("studies"), {}
    write_mnist(root / "mnist")

    def find(text):
        if text not in found and base_name(text) not in ("mnist", "fashion_mnist"):
            found[text] = load_data(text)
        elif text not in found:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("UNWEAVE_CACHE", str(root / "cache"))
                found[text] = load_data(text, path=root / "mnist")
        return found[text]

    return find


@pytest.mark.parametrize(("name", "scale"), BOTH)
def test_every_run_can_be_trained(name, scale, data_of):
    """One of each fleet is prepared, data and supervision included; of all others the hyper-parameters are read."""
    for cohort in group_into_cohorts(STUDIES[name].runs(scale)):
        options = [{k: v for k, v in run.items() if k not in ("method", "data")} for run in cohort]
        first = cohort[0]
        config = prepare(first["method"], data_of(first["data"]), device="cpu", **options[0]).config
        assert config.steps == first["steps"] and config.supervision == first.get("supervision", "none")
        for given in options[1:]:
            resolve_settings(METHODS[first["method"]], split_options(given)[1])


@pytest.mark.parametrize(("name", "scale"), BOTH)
def test_runs_have_different_rows_and_folders(name, scale):
    study = STUDIES[name]
    runs = study.runs(scale)
    folders = [folder_name(study, run) for run in runs]
    assert len(set(folders)) == len(runs)
    assert all(
        set(folder) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") for folder in folders
    )
    seeds = {}
    for run in runs:
        seeds.setdefault(study.row(run), []).append(run["seed"])
    assert all(found == list(range(len(found))) and len(found) > 1 for found in seeds.values()), (
        "runs of one row differ"
    )
    assert sum(map(len, group_into_cohorts(runs))) == len(runs)


@pytest.mark.parametrize("name", STUDIES)
def test_published_numbers_have_provenance_and_a_row(name):
    study = STUDIES[name]
    rows = {n for run in study.runs("full") for n in (study.row(run).family, study.row(run).name)}
    seen = set()
    for number in study.published:
        assert number.provenance in PROVENANCE and number.statistic in STATISTICS and number.source
        assert number.row in rows and (not number.ratio_to or number.ratio_to in rows)
        assert number.score in study.scores
        low, high = number.interval
        assert low < high if isinstance(number.value, tuple) else math.isfinite(low)
        assert number.ratio_to or 0 <= low <= high <= HIGHEST.get(name, 1)
        key = (number.row, number.score, number.statistic, number.source, number.ratio_to)
        assert key not in seen
        seen.add(key)


@pytest.mark.parametrize("name", [name for name, study in STUDIES.items() if study.extra is None])
def test_scores_are_metrics_and_quick_leaves_out_the_slow_ones(name):
    study = STUDIES[name]
    for score in study.scores:
        metric, _, part = score.partition(".")
        assert metric in METRICS and (part in METRICS[metric].parts if part else not METRICS[metric].parts)
    assert set(study.metrics("quick")) == set(study.metrics("full")) - {"dci"}


def test_sizes_are_the_papers():
    assert [len(STUDIES[name].runs("full")) for name in ("locatello2019", "locatello2020", "tran2021")] == [
        90,
        125,
        126,
    ]
    runs = STUDIES["locatello2019"].runs("full")
    assert {(run["steps"], run["batch"], run["data"]) for run in runs} == {(300_000, 64, "sprites")}
    assert {run["lambda_d"] / run["lambda_od"] for run in runs if run["method"] == "dip_vae_i"} == {10}
    assert {run["lambda_d"] / run["lambda_od"] for run in runs if run["method"] == "dip_vae_ii"} == {1}


def test_few_labels_on_mnist_are_as_many_as_the_papers():
    runs = STUDIES["kingma2014"].runs("full")
    assert len(runs) == 2 * 4 * 3 * 5 and len(STUDIES["makhzani2015"].runs("full")) == 2 * 8 * 5
    assert {run["supervision"] for run in runs} == {f"labels(n={n}, balanced=True)" for n in (100, 1000, 3000)}
    assert all(run["binarize"] for run in runs)
    every = [*runs, *STUDIES["makhzani2015"].runs("full")]
    sets = {f"{name}(part='train', size=28)" for name in ("mnist", "fashion_mnist")}
    assert {run["data"] for run in every} == sets
    assert {run["batch"] for run in every if run["method"] != "m1_m2"} == {100}


def test_every_step_of_tran2021_sees_64_images():
    for run in STUDIES["tran2021"].runs("full"):
        size = int(run["supervision"].split("size=")[1].rstrip(")")) if "size=" in run["supervision"] else 2
        assert run["batch"] * size == 64


def test_words():
    assert base_name("rooms(size=16)") == "rooms"
    assert base_name("noisy(data=\"split(data='digits(size=16)')\", sigma=0.1)") == "digits"
    assert settings_text({"beta": 4.0, "gamma": 0.5}, "beta", "gamma", "c_max") == "beta=4, gamma=0.5"
