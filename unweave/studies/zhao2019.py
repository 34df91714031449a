"""Zhao et al. 2019 (InfoVAE): divergences between the aggregate posterior and the prior."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from unweave.data import Dataset
from unweave.evaluation.likelihood import marginal_nll
from unweave.evaluation.prior_match import Classifier, aggregate_posterior_metrics, fit_classifier
from unweave.model import TrainedModel
from unweave.studies.study import DIGITS, Published, Row, RunSpec, Study, base_name, held_out_data, settings_text

# The weights of an MMD, which has no unit, and of a divergence in nats are not comparable.
MODELS: tuple[RunSpec, ...] = (
    {"method": "vae"},
    {"method": "aae"},
    {"method": "info_vae", "divergence": "mmd", "alpha": 0, "lambda_": 100},
    {"method": "info_vae", "divergence": "mmd", "alpha": 0, "lambda_": 1000},
    {"method": "info_vae", "divergence": "stein", "alpha": 0, "lambda_": 10},
    {"method": "info_vae", "divergence": "adversarial", "alpha": 0, "lambda_": 10},
)
# Without the KL of single codes: the models of the paper with published likelihoods.
WITHOUT_KL: tuple[RunSpec, ...] = (
    {"method": "info_vae", "divergence": "mmd", "alpha": 1, "lambda_": 1000},
    {"method": "info_vae", "divergence": "stein", "alpha": 1, "lambda_": 10},
    {"method": "info_vae", "divergence": "adversarial", "alpha": 1, "lambda_": 10},
)
DATA = {"sprites": MODELS, "mnist(part='train')": (*MODELS, *WITHOUT_KL)}
FACTORS = ("digit", "shape")  # predicted by the classifier
LABELS = (100, 1000)

FULL: RunSpec = {"steps": 60_000, "batch": 64, "log_every": 1000}
QUICK: RunSpec = {"data": DIGITS, "steps": 1000, "batch": 64, "net": "small", "lr": 1e-3}


def runs(scale: str) -> list[RunSpec]:
    if scale == "quick":
        chosen = [model for model in MODELS if model.get("lambda_") != 1000]
        return [{**model, **QUICK, "seed": seed} for model in chosen for seed in range(2)]
    found = [{**model, "data": data, **FULL} for data, models in DATA.items() for model in models]
    return [{**run, "seed": seed} for run in found for seed in range(5)]


def row(run: Mapping[str, Any]) -> Row:
    words = [run["method"], *([run["divergence"]] if "divergence" in run else []), "on", base_name(run["data"])]
    return Row(" ".join(words), settings_text(run, *(["alpha"] if run.get("alpha") else []), "lambda_"))


@lru_cache(maxsize=2)
def _classifier(data: Dataset) -> Classifier:
    """Return the classifier for all runs on a data set."""
    return fit_classifier(data, next(name for name in FACTORS if name in data.factor_names))


def scores(run: TrainedModel) -> dict[str, float]:
    """Return the scores of a run, and the error of the classifier of its samples."""
    classifier = _classifier(run.data)
    found = aggregate_posterior_metrics(run.representation, run.data, classifier, labels=LABELS)
    return {
        "mmd_x1000": 1000.0 * found.mmd,
        "log_det": found.log_det,
        "squared_error": found.squared_error,
        "class_kl": found.class_divergence,
        **{f"error_{count}": 100.0 * error for count, error in found.label_errors.items()},
        "classifier_error": 100.0 * classifier.error,
        **({} if run.data.name == "sprites" else {"nll": _held_out_nll(run)}),
    }


def _held_out_nll(run: TrainedModel) -> float:
    """Return the mean -log p(x) of a tenth of the test images, because it takes a hundred times as long as encoding."""
    other = held_out_data(run.data)
    return float(marginal_nll(run, other, num_samples=other.size // 10).mean())


SOURCE = "a table of arXiv 1706.02262; binary images, network and length of training are not known"
LIKELIHOODS = {
    "vae on mnist": 82.75,
    "info_vae mmd on mnist, alpha=1, lambda_=1000": 80.76,
    "info_vae stein on mnist, alpha=1, lambda_=10": 81.47,
    "info_vae adversarial on mnist, alpha=1, lambda_=10": 82.21,
}


STUDY = Study(
    name="zhao2019",
    paper="Zhao, Song and Ermon, InfoVAE: Balancing Learning and Inference in Variational Autoencoders, AAAI 2019",
    question="Which divergence matches the aggregate posterior best with the prior, and does this improve samples and "
    "classification?",
    runs=runs,
    row=row,
    scores=("mmd_x1000", "log_det", "squared_error", "class_kl", *(f"error_{count}" for count in LABELS), "nll"),
    published=tuple(Published(name, "nll", v, "one model", "recalled", SOURCE) for name, v in LIKELIHOODS.items()),
    extra=scores,
    notes=(
        "mmd x1000: unbiased squared MMD between samples z of q(z|x) and as many samples of the prior, times 1,000; "
        "log det: of the covariance of these codes; both are 0 if the aggregate posterior equals the prior",
        "squared error: of the images decoded from these codes, summed over pixels",
        "class kl: KL in nats between the classes of decoded samples of the prior, predicted by a network trained on "
        "the data, and those of the data; error 100, error 1000: test error in per cent of an SVM on posterior means "
        "with this number of labels",
        "nll: -log p(x) in nats of 1,000 binarised test images, by annealed importance sampling; not for sprites, "
        "which has no test images",
        "only likelihoods of the paper are given, as recalled, for models without the KL of single codes (alpha 1); "
        "its finding, according to a survey: MMD is as good as Stein and adversarial training or better",
        "full: 60,000 steps of 64 images, five seeds; data, network, weights and steps are ours",
        "quick: 1,797 digits of 16 x 16 pixels; 1,000 steps, learning rate 1e-3 for all players",
    ),
)
