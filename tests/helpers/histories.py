"""Random histories of runs: train, stop, change something, resume, evaluate, compare, predict.

After each step either the result equals that of a computation from scratch, in an empty folder, on the same data, or a
`UserError` of one line names what was changed. `play` plays one history and raises `Violation` otherwise.
"""

import json
import random
import shutil
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from changing_data import CHANGES, WORDS, move_files, restore_content
from changing_runs import RUN_CHANGES, SWEEP_CHANGES, WEIGHTS, Change, weights_and_log
from scratch_runs import Scratch, class_errors, comparison, difference, predictions, random_problem, scores, train

import unweave as uw
from unweave.errors import UserNotice
from unweave.training.sweep import resume_all

SHARED = 5  # successive seeds have the same data and settings, whose results from scratch are computed once


class Violation(AssertionError):
    """A step whose result is neither that of a computation from scratch nor a clear error."""


class Killed(BaseException):
    """Ends a training; the folders are then put back to their state at that moment, as if the process was killed."""


def resume_intact(root: Path) -> None:
    """Resume a sweep; raise the error about a run that is left out because it is damaged."""
    with warnings.catch_warnings(record=True) as notices:
        warnings.simplefilter("always")
        resume_all(root)
    for notice in notices:
        if str(notice.message).startswith("left out: "):
            raise uw.UserError(str(notice.message).removeprefix("left out: "))
        warnings.warn(notice.message, stacklevel=2)


class History:
    """One history: random steps, each checked."""

    def __init__(self, seed: int, folder: Path, scratch: Scratch) -> None:
        self.draw, self.scratch, self.problem = random.Random(f"history {seed}"), scratch, scratch.problem
        self.folder, self.out = folder, folder / "runs"
        self.source = self.problem.source(folder / "data", self.problem.content)
        self.trained_on = self.problem.content
        self.members = list(range(len(self.problem.runs)))
        self.names = {k: f"run{k}" for k in self.members}  # of the folders
        self.changes: list[Change] = []  # of the run folders
        self.steps: list[str] = []
        self.outcomes: list[str] = []

    def play(self) -> None:
        self.start()
        if not self.out.exists():  # refused, as from scratch
            return
        for _ in range(self.draw.randint(1, 3)):
            for _ in range(self.draw.choice([0, 1, 1, 2])):
                self.change()
            step = self.draw.choice(["resume", "resume", "evaluate", "rescore", "compare", "predict", "train_again"])
            getattr(self, step)()
        self.resume()
        self.evaluate()

    def path(self, k: int) -> Path:
        return self.out / self.names[k]

    # --- steps -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Train all runs, to their ends or to a random record of the log."""
        stop, seen, (run, *_) = self.draw.choice(["", "interrupt", "interrupt", "kill", "kill"]), [], self.problem.runs
        stages = 2 if run["method"] == "m1_m2" else 1
        record = self.draw.randint(1, stages * run["steps"] // run["log_every"] + 1)

        def observe(progress: object) -> None:
            seen.append(progress)
            if len(seen) == record and stop == "interrupt":
                raise KeyboardInterrupt
            if len(seen) == record and stop == "kill":
                shutil.copytree(self.out, self.folder / "killed")
                raise Killed

        try:
            what = f"{len(self.members)} x {run['method']} on {self.problem.kind} {self.problem.view[0]}"
            self.step(
                f"train {what}" + f", {stop} at record {record}" * bool(stop), lambda: self._fit(observe), self._files
            )
        except KeyboardInterrupt:
            pass
        except Killed:
            shutil.rmtree(self.out)
            (self.folder / "killed").rename(self.out)
        self._find_names()

    def _fit(self, observe: Callable | None = None, resume: bool = False) -> list:
        data, runs = self.source.given(), self.problem.runs
        if len(runs) == 1:
            train(runs[0], data, self.path(0), observe)
        else:
            uw.fit([{**run, "data": data} for run in runs], out=self.out, resume=resume, observe=observe)
            if not resume:
                self._find_names()
        return [weights_and_log(self.path(k)) for k in self.members]

    def _find_names(self) -> None:
        """Store which folder of a sweep has which run; they differ in their seeds."""
        for path in self.out.glob("*/config.json") if len(self.members) > 1 else ():
            seed = json.loads(path.read_text())["seed"]
            self.names[seed - self.problem.runs[0]["seed"]] = path.parent.name

    def _files(self) -> list:
        return self.scratch.files(self.trained_on, self.members)

    def change(self) -> None:
        """Change the data, or a run, or a sweep."""
        altered = self.source.content is not self.source.original
        of_data = (move_files,) if self.source.moved else (*CHANGES, *[restore_content] * 6 * altered)
        of_runs = RUN_CHANGES + (SWEEP_CHANGES if len(self.members) > 1 else ())
        if self.problem.kind != "digits" and self.draw.random() < 0.5:
            if text := self.draw.choice(of_data)(self.source, self.draw):
                self.steps.append(text)
        elif self.draw.random() < 0.15:
            self.move_runs()
        else:
            k = self.draw.choice(self.members)
            if self.path(k).is_dir() and (change := self.draw.choice(of_runs)(self.path(k), self.draw)):
                self.steps.append(f"{change.text} (run{k})")
                self.changes.append(change)

    def move_runs(self) -> None:
        """Continue in a copy of the run folders, or move them."""
        copy, new = self.draw.random() < 0.5, self.folder / f"runs{len(self.steps)}"
        (shutil.copytree if copy else shutil.move)(self.out, new)
        self.out = new
        self.steps.append("copy the run folders and continue there" if copy else "move the run folders")

    def resume(self) -> None:
        """Resume all runs, by their folders or by the call that started them."""

        def call() -> list:
            data = self.source.given() if self.source.in_memory else None
            if data is None and len(self.members) > 1:
                resume_intact(self.out)
            else:
                for k in self.members:
                    uw.resume(self.path(k), data=data)
            return [weights_and_log(self.path(k)) for k in self.members]

        if any(map(self.is_new, self.members)) or not any(map(self.is_run, self.members)):
            return
        complete = all(map(self.is_run, self.members)) or (self.out / "sweep.json").exists()
        if len(self.members) > 1 and (not complete or self.draw.random() < 0.5):
            self.step("repeat fit with resume=True", lambda: self._fit(resume=True), self._files)
        else:
            self.step("resume", call, self._files)

    def is_run(self, k: int) -> bool:
        return (self.path(k) / "config.json").is_file()

    def is_new(self, k: int) -> bool:
        """Return True if the configuration was edited and nothing is trained with it yet: it is another run, then."""
        edited = any(step.startswith("edit") and step.endswith(f"(run{k})") for step in self.steps)
        return edited and not [*self.path(k).glob("weights*"), *self.path(k).glob("checkpoint*")]

    def train_again(self) -> None:
        """Train the first run in a folder of its own, on the data as they are now."""
        out = self.folder / f"again{len(self.steps)}"

        def call() -> list:
            train(self.problem.runs[0], self.source.given(), out)
            return [weights_and_log(out)]

        self.step("train again on the data as they are", call, lambda: self.scratch.files(self.source.content, [0]))

    def evaluate(self) -> None:
        self.apply(scores, [self.draw.choice(self.members)])

    def rescore(self) -> None:
        """Evaluate a run, change something, and evaluate it again."""
        self.evaluate()
        self.change()
        self.evaluate()

    def compare(self) -> None:
        self.apply(comparison, self.members)

    def predict(self) -> None:
        self.apply(self.draw.choice([predictions, class_errors]), [self.draw.choice(self.members)])

    def apply(self, function: Callable, members: Sequence[int]) -> None:
        """Apply a function to finished runs, with their own data or with the data as they are now."""
        if not all((self.path(k) / WEIGHTS).is_file() for k in members):
            return
        given = self.source.in_memory or self.draw.random() < 0.3
        data = self.source.content if given else self.trained_on

        def call() -> Any:
            now = uw.load_data(self.source.given()) if given else None
            return function([uw.load(self.path(k), data=now) for k in members])

        name = function.__name__ + " on the data as they are" * given
        arguments = (function, self.trained_on, data, members)
        self.step(name, call, lambda: self.scratch.result(*arguments), lambda: self.scratch.result(*arguments, True))

    # --- the check of a step -----------------------------------------------------------------------------------------

    def step(self, text: str, call: Callable[[], Any], *expected: Callable[[], Any]) -> None:
        """Make a step; raise `Violation` unless its result is an expected one or its error names a change."""
        self.steps.append(text)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = call()
            except uw.UserError as error:
                return self._check_error(text, error, expected[0])
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                raise Violation(f"{text}: {type(error).__name__}: {error} ({where.filename}:{where.lineno})") from error
        notices = [str(notice.message) for notice in caught if isinstance(notice.message, UserNotice)]
        if any("verif" in notice for notice in notices):
            raise Violation(f"{text}: {notices}")
        where = ""
        for compute in expected:
            if not (where := difference(found, compute())):
                break
        if where:
            raise Violation(f"{text}: {where}")
        self.outcomes.append(f"{text.split()[0]}: equal")
        return None

    def _check_error(self, text: str, error: uw.UserError, expected: Callable[[], Any]) -> None:
        """Raise unless the error names one of the changes, or is also that of a computation from scratch."""
        message, words = str(error), [word for change in self.changes for word in change.words]
        if self.source.moved or self.source.content.key() != self.trained_on.key():
            words += WORDS
        named = next((word for word in words if word in message), None)
        if not message or "\n" in message:
            raise Violation(f"{text}: the error is not one line: {message!r}")
        if named is None:
            try:
                expected()
            except uw.UserError:
                named = "as from scratch"
            else:
                raise Violation(f"{text}: refused, and no change is named: {message}")
        self.outcomes.append(f"{text.split()[0]}: refused, {named}")


def play(seed: int, folder: Path, scratch: Scratch | None = None) -> History:
    """Play one history below an empty folder; raise `Violation` with its steps if one is wrong.

    Histories with the same `seed // SHARED` may share the results computed from scratch.
    """
    scratch = scratch or Scratch(random_problem(seed // SHARED), folder / "scratch")
    history = History(seed, folder, scratch)
    # Nothing here depends on when the system writes files to disk, which takes most of the time.
    with mock.patch.dict("os.environ", UNWEAVE_CACHE=str(folder.parent / "cache")), mock.patch("os.fsync"):
        try:
            history.play()
        except Violation as violation:
            raise Violation(f"seed {seed}: {violation}\n  " + "\n  ".join(history.steps)) from violation
    return history
