"""Random problems, data and runs, and their results computed from scratch in empty folders."""

import random
import shutil
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from changing_data import KINDS, Content, Source, random_content, random_view
from changing_runs import weights_and_log

import unweave as uw
from unweave.errors import UserNotice

FACTOR = {"digits": "digit", "folder": "folder"}  # the factor of supervision, by kind of data; of others "a"
SUPERVISION = {
    "beta_vae": "none", "annealed_vae": "none", "ada_gvae": "pairs(share=['a'])", "ml_vae": "groups(by=['a'], size=2)",
    "m2": "labels(factors=['a'], n=9)", "m1_m2": "labels(factors=['a'], n=9)",
}  # fmt: skip


class Problem(NamedTuple):
    """Data and runs, which several histories share."""

    kind: str
    content: Content
    view: tuple[str, dict]
    runs: tuple[dict, ...]  # keywords of `train`; several are a sweep

    def source(self, folder: Path, content: Content) -> Source:
        source = Source(self.kind, content, folder, self.view)
        source.save()
        return source


def random_problem(number: int) -> Problem:
    draw = random.Random(number)
    kind, method = KINDS[number % len(KINDS)], draw.choice([*SUPERVISION, "m1_m2"])
    shared = {
        "method": method, "supervision": SUPERVISION[method].replace("'a'", repr(FACTOR.get(kind, "a"))),
        "net": "small", "latents": 3, "batch": draw.choice([4, 6]), "steps": draw.randint(2, 5), "lr": 1e-3,
        "log_every": draw.choice([1, 2, 3]), "checkpoint_every": draw.choice([1, 2, 3]),
        "keep_state": draw.random() < 0.3, "engine": "loop", "device": "cpu", "seed": draw.randrange(100),
    }  # fmt: skip
    count = draw.choice([1, 1, 1, 2, 2, 3])
    runs = tuple({**shared, "seed": shared["seed"] + k, "steps": shared["steps"] + k % 2} for k in range(count))
    return Problem(kind, random_content(kind, draw), random_view(kind, draw), runs)


# --- results, as numbers and texts that can be compared -------------------------------------------------------------


def train(run: dict, data: Any, out: Path, observe: Callable | None = None) -> None:
    uw.train(data=data, out=out, observe=observe, **run)


def scores(runs: Sequence[uw.TrainedModel]) -> Any:
    found = uw.evaluate(runs[0], metrics=["mig"], num_samples=None)
    return [found.scores, found.information.tolist(), found.kl.tolist()]


def comparison(runs: Sequence[uw.TrainedModel]) -> Any:
    frame = uw.score_runs(runs, metrics=["mig"], num_samples=None, stored=True)
    return frame.drop(columns=["run", "data_call", "setting"], errors="ignore").to_dict("list")  # contain paths


def predictions(runs: Sequence[uw.TrainedModel]) -> Any:
    return uw.predict(runs[0]).to_dict("list")


def class_errors(runs: Sequence[uw.TrainedModel]) -> Any:
    return uw.class_error(runs[0])


def difference(found: Any, expected: Any, place: str = "") -> str:
    """Return where two results differ, "" if they are equal; numbers may differ by rounding."""
    if isinstance(found, dict) and isinstance(expected, dict) and found.keys() == expected.keys():
        return next(filter(None, (difference(found[key], expected[key], f"{place}[{key!r}]") for key in found)), "")
    if isinstance(found, list | tuple) and isinstance(expected, list | tuple) and len(found) == len(expected):
        pairs = enumerate(zip(found, expected, strict=True))
        return next(filter(None, (difference(a, b, f"{place}[{n}]") for n, (a, b) in pairs)), "")
    if isinstance(found, float) and isinstance(expected, float):
        if np.isclose(found, expected, rtol=1e-4, atol=1e-6, equal_nan=True):
            return ""
    elif found == expected:
        return ""
    return f"{place or 'result'} is {str(found)[:80]}, from scratch {str(expected)[:80]}"


class Scratch:
    """Results of a problem computed from scratch in empty folders, each once."""

    def __init__(self, problem: Problem, folder: Path) -> None:
        self.problem, self.folder, self.known, self.folders = problem, folder, {}, 0

    def trained(self, content: Content, k: int) -> Path:
        """Return the folder of run `k`, trained on this content."""

        def compute() -> Path:
            train(self.problem.runs[k], self._data(content), out := self._empty() / f"run{k}")
            return out

        return self._once(("trained", content.key(), k), compute)

    def files(self, content: Content, members: Sequence[int]) -> list:
        """Return weights and logs of runs trained on this content."""
        return [weights_and_log(self.trained(content, k)) for k in members]

    def result(
        self, function: Callable, content: Content, data: Content, members: Sequence[int], compared: bool = False
    ) -> Any:
        """Return what the function gives for runs trained on one content and loaded with the data of another one.

        With `compared` all runs are compared before, which computes codes for all at once, equal up to rounding.
        """

        def compute() -> Any:
            given = uw.load_data(self._data(data))
            copies = [self._empty() / f"run{k}" for k in range(len(self.problem.runs))]
            runs = [
                uw.load(shutil.copytree(self.trained(content, k), copy), data=given) for k, copy in enumerate(copies)
            ]
            if compared:
                comparison(runs)
            return function([runs[k] for k in members])

        return self._once((function.__name__, content.key(), data.key(), *members, compared), compute)

    def _data(self, content: Content) -> Any:
        return self.problem.source(self._empty(), content).given()

    def _empty(self) -> Path:
        self.folders += 1
        (path := self.folder / f"{self.folders:04}").mkdir(parents=True)
        return path

    def _once(self, key: tuple, compute: Callable[[], Any]) -> Any:
        """Return the result, or raise the error, of the first call with this key."""
        if key not in self.known:
            try:
                with warnings.catch_warnings(action="ignore", category=UserNotice):
                    self.known[key] = compute()
            except uw.UserError as error:
                self.known[key] = error
        if isinstance(self.known[key], uw.UserError):
            raise self.known[key]
        return self.known[key]
