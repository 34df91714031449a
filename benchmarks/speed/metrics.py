"""Time and scores of the metrics of disentanglement_lib and explicitness: ours and plain scikit-learn code.

python benchmarks/speed/metrics.py           10,000 train and 5,000 test rows, factors of dSprites, 10 codes; 7 minutes
python benchmarks/speed/metrics.py --quick   a tenth of the rows
python benchmarks/speed/metrics.py --table full --device cuda   every metric on all 737,280 rows of that grid, ours only

Shape letters: N rows, D codes, K factors.
"""

from __future__ import annotations

import argparse
import inspect
import os
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.stats
import torch
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import mutual_info_score, roc_auc_score
from sklearn.svm import LinearSVC

from unweave.metrics import METRICS

Array = np.ndarray
Test = tuple[np.ndarray, np.ndarray]
Scores = dict[str, float]  # by part, {"": 0.5} for a metric of one number

SIZES = (3, 6, 40, 32, 32)  # of dSprites
NAMES = ("beta_vae", "factor_vae", "mig", "modularity", "dci", "sap", "explicitness")


def synthetic_codes(factors_NK: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return ten codes: five noisy factors, three noisy sums of two factors, and two of pure noise."""
    z_NK = (factors_NK - (np.array(SIZES) - 1) / 2) / np.array(SIZES)
    mixed = z_NK[:, [0, 1, 2]] + z_NK[:, [1, 3, 4]]
    codes = np.column_stack([z_NK, mixed, np.zeros((len(z_NK), 2))])
    noise = rng.standard_normal(codes.shape, dtype=np.float32) * np.array([0.02] * 5 + [0.3] * 3 + [1.0] * 2)
    return (codes + noise).astype(np.float32)


# --- the definitions of disentanglement_lib, written with scikit-learn ------------------------------------------------


def plain_mig(codes: Array, factors: Array, test: Test) -> Scores:
    information = plain_information(codes, factors)
    entropy = [mutual_info_score(factor, factor) for factor in factors.T]
    best = np.sort(information, axis=0)
    return {"": np.mean((best[-1] - best[-2]) / entropy)}


def plain_modularity(codes: Array, factors: Array, test: Test) -> Scores:
    squared = plain_information(codes, factors) ** 2
    best = squared.max(axis=1)
    spread = (squared.sum(axis=1) - best) / (best * (squared.shape[1] - 1))
    return {"": np.mean(1 - spread)}


def plain_information(codes: Array, factors: Array) -> Array:
    binned = [np.digitize(code, np.histogram(code, 20)[1][:-1]) for code in codes.T]
    return np.array([[mutual_info_score(factor, code) for factor in factors.T] for code in binned])


def plain_beta_vae(codes: Array, factors: Array, test: Test, batch: int = 64) -> Scores:
    rng = np.random.default_rng(0)
    order = np.argsort(factors, axis=0, kind="stable")
    count = [np.bincount(factor) for factor in factors.T]
    first = [np.cumsum(numbers) - numbers for numbers in count]

    def votes(number: int) -> tuple[Array, Array]:
        labels = rng.integers(factors.shape[1], size=number)
        features = []
        for k in labels:  # one experiment at a time, as in disentanglement_lib
            left = rng.integers(len(codes), size=batch)
            value = factors[left, k]
            right = order[first[k][value] + rng.integers(count[k][value]), k]
            features.append(np.abs(codes[left] - codes[right]).mean(axis=0))
        return np.array(features), labels

    model = LogisticRegression(random_state=0).fit(*votes(10_000))
    return {"": model.score(*votes(5_000))}


def plain_factor_vae(codes: Array, factors: Array, test: Test, batch: int = 64) -> Scores:
    rng = np.random.default_rng(0)
    variance = codes.var(axis=0, ddof=1)
    active = np.sqrt(variance) >= 0.05
    sharing = [[np.flatnonzero(factor == value) for value in range(factor.max() + 1)] for factor in factors.T]

    def votes(number: int) -> Array:
        table = np.zeros((active.sum(), factors.shape[1]), int)
        for _ in range(number):
            k = rng.integers(factors.shape[1])
            rows = rng.choice(sharing[k][rng.integers(len(sharing[k]))], batch)
            table[np.argmin(codes[rows][:, active].var(axis=0, ddof=1) / variance[active]), k] += 1
        return table

    guess = votes(10_000).argmax(axis=1)
    tested = votes(5_000)
    return {"": tested[np.arange(len(guess)), guess].sum() / tested.sum()}


def plain_dci(codes: Array, factors: Array, test: Test) -> Scores:
    models = [GradientBoostingClassifier(random_state=0).fit(codes, factor) for factor in factors.T]
    importance = np.stack([model.feature_importances_ for model in models], axis=1)
    by_code = 1 - scipy.stats.entropy(importance.T + 1e-11, base=importance.shape[1])
    by_factor = 1 - scipy.stats.entropy(importance + 1e-11, base=importance.shape[0])
    return {
        ".disentanglement": (by_code * importance.sum(axis=1)).sum() / importance.sum(),
        ".completeness": (by_factor * importance.sum(axis=0)).sum() / importance.sum(),
        ".informativeness": np.mean([model.score(test[0], factor) for model, factor in zip(models, test[1].T)]),
    }


def plain_sap(codes: Array, factors: Array, test: Test) -> Scores:
    scores = np.zeros((codes.shape[1], factors.shape[1]))
    for d in range(codes.shape[1]):
        for k in range(factors.shape[1]):
            model = LinearSVC(C=0.01, class_weight="balanced").fit(codes[:, [d]], factors[:, k])
            scores[d, k] = model.score(test[0][:, [d]], test[1][:, k])
    best = np.sort(scores, axis=0)
    return {"": np.mean(best[-1] - best[-2])}


def plain_explicitness(codes: Array, factors: Array, test: Test) -> Scores:
    mean, deviation = codes.mean(axis=0), codes.std(axis=0)
    found = []
    for factor, tested in zip(factors.T, test[1].T):
        model = LogisticRegression().fit((codes - mean) / deviation, factor)
        guess = model.predict_proba((test[0] - mean) / deviation)
        areas = [roc_auc_score(tested == v, guess[:, i]) for i, v in enumerate(model.classes_) if (tested == v).any()]
        found.append(np.mean(areas))
    return {"": np.mean(found)}


PLAIN = {name: globals()[f"plain_{name}"] for name in NAMES}


# --- measurement ------------------------------------------------------------------------------------------------------


def ours(name: str, codes: Array, factors: Array, test: Test | None, device: str | None) -> Scores:
    """Return the scores of our metric, with those of the options that it accepts."""
    function = METRICS[name].function
    offered = {"test": test, "device": device}
    accepted = inspect.signature(function).parameters
    options = {key: value for key, value in offered.items() if key in accepted and value is not None}
    found = function(codes, factors, **options)
    return {f".{part}": value for part, value in found.items()} if isinstance(found, dict) else {"": found}


class Timed(NamedTuple):
    scores: Scores
    wall: float
    cpu: float  # of all threads; hardly affected by other load


def timed(function: Callable[..., Scores], *arguments: Any) -> Timed:
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = function(*arguments)
    return Timed(found, time.perf_counter() - wall, time.process_time() - cpu)


def compare(rows: int, device: str | None, names: list[str], references: bool) -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(SIZES, size=(rows + rows // 2, len(SIZES)))
    codes = synthetic_codes(factors, rng)
    train, test = (codes[:rows], factors[:rows]), (codes[rows:], factors[rows:])
    ours("dci", codes[:200], factors[:200], None, device)  # warm-up
    print(
        f"{rows} train and {rows // 2} test rows, {codes.shape[1]} codes, factor sizes {SIZES}; seconds and CPU seconds"
    )
    print("score                    scikit-learn      s  CPU s       ours      s  CPU s   times  in CPU  difference")
    sums = np.zeros(4)
    for name in names:
        us = timed(ours, name, *train, test, device)
        nothing = Timed(dict.fromkeys(us.scores, np.nan), np.nan, np.nan)
        plain = timed(PLAIN[name], *train, test) if references else nothing
        sums += plain.wall, plain.cpu, us.wall, us.cpu
        for part, value in us.scores.items():
            theirs = f"{plain.scores[part]:12.4f} {plain.wall:6.1f} {plain.cpu:6.1f}"
            times = f"{plain.wall / us.wall:7.0f} {plain.cpu / us.cpu:7.0f}"
            mine = f"{value:10.4f} {us.wall:6.2f} {us.cpu:6.2f}"
            print(f"{name + part:24s} {theirs} {mine} {times} {value - plain.scores[part]:+11.4f}", flush=True)
    numbers = f"{sums[0]:6.1f} {sums[1]:6.1f} {'':10s} {sums[2]:6.2f} {sums[3]:6.2f}"
    print(f"{'all':24s} {'':12s} {numbers} {sums[0] / sums[2]:7.0f} {sums[1] / sums[3]:7.0f}")


def whole_table(device: str | None) -> None:
    """Time every metric of codes and factors on the full grid of factors."""
    rows = int(np.prod(SIZES))
    factors = np.stack(np.unravel_index(np.arange(rows), SIZES), axis=1).astype(np.int8)
    codes = synthetic_codes(factors, np.random.default_rng(0))
    ours("dci", codes[::5000], factors[::5000], None, device)
    print(f"{rows} rows, {codes.shape[1]} codes, factor sizes {SIZES}")
    total = 0.0
    for name, metric in METRICS.items():
        if metric.needs:
            continue
        found, seconds, _ = timed(ours, name, codes, factors, None, device)
        total += seconds
        print(
            f"{name:28s} {seconds:8.2f} s   " + ", ".join(f"{p[1:]} {v:.4f}".strip() for p, v in found.items()),
            flush=True,
        )
    print(f"{'all':28s} {total:8.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--device", default=None, help="cpu or cuda")
    parser.add_argument("--table", choices=("split", "full"), default="split")
    parser.add_argument("--metrics", default=",".join(NAMES))
    parser.add_argument("--ours", action="store_true", help="skip the scikit-learn code")
    arguments = parser.parse_args()
    on = arguments.device or "cpu"
    where = torch.cuda.get_device_name() if on.startswith("cuda") else f"{os.cpu_count()} CPU cores"
    print(f"{where}, {torch.get_num_threads()} threads, torch {torch.__version__}")
    if arguments.table == "full":
        whole_table(arguments.device)
    else:
        compare(
            1_000 if arguments.quick else 10_000, arguments.device, arguments.metrics.split(","), not arguments.ours
        )


if __name__ == "__main__":
    main()
