"""Runs trained together, stage after stage, into their folders.

Runs of equal static shape (method, network, data, batch, precision, ...) form a cohort and step as one program;
seeds, hyper-parameters, learning rates, clipping and numbers of steps may differ inside one. A cohort that would
not fit into memory is split into parts of equal size.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from unweave.contract import Method, stages
from unweave.data import Dataset
from unweave.engine.checkpoint import restore_state, save_state, saved_stage
from unweave.engine.program import State, initial_state
from unweave.engine.replicas import Fleet, make_fleet
from unweave.model import Diverged, TrainedModel, load
from unweave.runs import RunFolder, record_training_time
from unweave.training.build import build, build_program, load_trained_weights, matmul_precision, resolve_engine
from unweave.training.validation import ValidationFunction, make_validation

SECONDS_BETWEEN_CHECKPOINTS = 30.0  # hundreds of states are gigabytes: what a kill costs is bounded in time instead
_MEMORY_SHARE = 0.8


class Run(NamedTuple):
    """One run of a fleet: where it lives and what it is."""

    folder: RunFolder
    config: dict[str, Any]
    cls: type[Method]
    data: Dataset


class FleetProgress(NamedTuple):
    """What an observer is told after every record."""

    runs: int
    finished: int
    diverged: int
    done: int  # steps of all runs together
    total: int
    rate: float  # model-steps a second
    remaining_seconds: float  # seconds
    message: str


ProgressCallback = Callable[[FleetProgress], None]


def train_all(runs: Sequence[Run], strategy: str, observe: ProgressCallback | None) -> list[TrainedModel | Diverged]:
    """Every run to its end, cohort after cohort; results in the order of the runs."""
    clock = _Clock(runs, observe)
    results: dict[Path, TrainedModel | Diverged] = {}
    for cohort in _cohorts(runs):
        cohort[0].data.to(cohort[0].config["device"])  # before anything is tried with it
        for part in _parts(cohort, clock):
            results |= _fit_cohort(part, _strategy(strategy, part), clock)
    return [results[run.folder.path] for run in runs]


def cohort_key(run: Run) -> str:
    """Runs with the same key differ only in what may differ between replicas."""
    config = run.config
    same = ("method", "arguments", "data", "data_options", "supervision", "batch", "precision", "device", "engine")
    optimizer = {
        player: ({name: value for name, value in s.items() if name not in ("lr", "clip")}, s["clip"] > 0)
        for player, s in config["optimizer"].items()
    }
    return json.dumps([{n: config[n] for n in same}, optimizer, config["log_every"], id(run.data)], default=str)


def _cohorts(runs: Sequence[Run]) -> list[list[Run]]:
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(cohort_key(run), []).append(run)
    return list(groups.values())


def _strategy(strategy: str, cohort: Sequence[Run]) -> str:
    """On CUDA batched layers win from two models on, on a CPU nothing beats a loop (benchmarks/speed/fleet.py)."""
    if strategy != "auto":
        return strategy
    return "batched" if len(cohort) > 1 and cohort[0].config["device"].startswith("cuda") else "loop"


def _parts(cohort: list[Run], clock: _Clock) -> list[list[Run]]:
    """The cohort, split into equal parts if it is too large for the device."""
    most = _most_at_once(cohort)
    if len(cohort) <= most:
        return [cohort]
    count = -(-len(cohort) // most)
    size = -(-len(cohort) // count)
    clock.message(f"{len(cohort)} runs do not fit into memory together: {count} parts of at most {size}")
    return [cohort[i : i + size] for i in range(0, len(cohort), size)]


def _most_at_once(cohort: Sequence[Run]) -> int:
    """How many replicas fit, from what a fleet of four needs beyond a fleet of two."""
    config = cohort[0].config
    if not config["device"].startswith("cuda") or len(cohort) < 8:
        return len(cohort)
    device = torch.device(config["device"])
    needs = []
    for count in (2, 4):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        fleet = _make(cohort[:count], [None] * count, 0, "batched", "loop")[0]
        fleet.run(1)
        needs.append(torch.cuda.max_memory_allocated(device) - before)
        del fleet
    torch.cuda.empty_cache()
    free = torch.cuda.mem_get_info(device)[0]
    return max(1, int(_MEMORY_SHARE * free / max((needs[1] - needs[0]) / 2, 1)))


def _make(
    cohort: Sequence[Run], previous: Sequence[Method | None], stage: int, strategy: str, engine: str
) -> tuple[Fleet, list[Method], list[int]]:
    """The fleet of one stage, from wherever the folders stand: engine, methods, and the steps they begin at."""
    programs, states, methods = [], [], []
    for run, before in zip(cohort, previous, strict=True):
        cls = stages(run.cls)[stage]
        method = build(cls, run.config, run.data, before, stage)
        state, begun = initial_state(method), saved_stage(run.folder)
        max_step = run.config["steps"]
        if begun == stage:
            restore_state(run.folder, state)
        elif begun is not None and begun > stage:
            max_step = 0  # this stage is over for this run: it keeps its place, so that the others compute the same
        program = build_program(run.config, method, run.data, stage)
        programs.append(program._replace(max_step=torch.tensor(max_step, device=program.seed.device)))
        states.append(state)
        methods.append(method)
    begun_at = [int(s.step) for s in states]
    return make_fleet(programs, states, strategy=strategy, engine=engine), methods, begun_at


def _fit_cohort(cohort: Sequence[Run], strategy: str, clock: _Clock) -> dict[Path, TrainedModel | Diverged]:
    """Every stage of every run, to the run folders."""
    if all(run.folder.finished for run in cohort):
        clock.skip(cohort)
        return {run.folder.path: load(run.folder.path, method=run.cls, data=run.data) for run in cohort}
    config = cohort[0].config
    lost: dict[int, int] = {}
    methods: list[Any] = [None] * len(cohort)
    ahead = [run.folder for run in cohort if not run.folder.finished]
    with matmul_precision(config["precision"]), record_training_time(ahead, config["device"]) as note_time:
        for stage in range(len(stages(cohort[0].cls))):
            methods = _fit_stage(cohort, methods, stage, strategy, lost, clock, note_time)
    results: dict[Path, TrainedModel | Diverged] = {}
    for k, (run, method) in enumerate(zip(cohort, methods, strict=True)):
        if k in lost:
            results[run.folder.path] = Diverged(run.folder, run.config, lost[k])
            continue
        if not run.folder.finished:
            run.folder.save(
                "weights.safetensors", method.state_dict(), steps=str(run.config["steps"]), stage=str(stage)
            )
        results[run.folder.path] = TrainedModel(run.folder, run.config, method.eval(), run.data)
    clock.close(len(cohort) - len(lost), len(lost))
    return results


def _fit_stage(
    cohort: Sequence[Run],
    previous: list[Any],
    stage: int,
    strategy: str,
    lost: dict[int, int],
    clock: _Clock,
    note_time: Callable[[], None],
) -> list[Method]:
    """All runs to the end of one stage; their methods then hold the trained weights."""
    config = cohort[0].config
    engine = resolve_engine(config["engine"], config["device"])
    fleet, methods, steps = _make(cohort, previous, stage, strategy, engine)
    lasts = [
        run.config["steps"] if (saved_stage(run.folder) or 0) <= stage else steps[k] for k, run in enumerate(cohort)
    ]
    for run, step in zip(cohort, steps, strict=True):
        if not run.folder.finished:
            run.folder.truncate_log(stage, step)
    validations = [make_validation(method, run.config, run.data) for method, run in zip(methods, cohort, strict=True)]
    chunk, saved, changed = config["log_every"], time.monotonic(), set[int]()
    clock.begin(sum(steps))
    while going := [k for k in range(len(cohort)) if steps[k] < lasts[k] and k not in lost]:
        # Records stay on multiples of log_every even where runs stand at different steps.
        asked = min(*(chunk - steps[k] % chunk for k in going), max(lasts[k] - steps[k] for k in going))
        done = fleet.run(asked)
        due = [k for k in going if not done[k].step % cohort[k].config["checkpoint_every"] or done[k].step == lasts[k]]
        seen = _looked(validations, methods, fleet, due)
        for k in going:
            if done[k].moved < min(asked, lasts[k] - steps[k]):
                lost[k] = done[k].step
            elif done[k].logs:
                cohort[k].folder.append_log({"stage": stage, "step": done[k].step, **done[k].logs, **seen.get(k, {})})
            steps[k] = done[k].step
        changed |= set(going)
        over = all(steps[k] >= lasts[k] or k in lost for k in going)
        if over or time.monotonic() - saved > SECONDS_BETWEEN_CHECKPOINTS:
            _save(cohort, fleet.states(), stage, changed)
            note_time()
            saved, changed = time.monotonic(), set()
        clock.tick(sum(d.moved for d in done), sum(s >= n for s, n in zip(steps, lasts, strict=True)), len(lost))
    for method, state in zip(methods, fleet.states(), strict=True):
        load_trained_weights(method, state)
    return methods


def _looked(
    validations: Sequence[ValidationFunction | None], methods: Sequence[Method], fleet: Fleet, which: Sequence[int]
) -> dict[int, dict[str, float]]:
    """What is seen of these runs as they stand."""
    which = [k for k in which if validations[k]]
    states = fleet.states() if which else []
    found = {}
    for k in which:
        load_trained_weights(methods[k], states[k])
        found[k] = validations[k]()  # type: ignore[misc]
    return found


def _save(cohort: Sequence[Run], states: Sequence[State], stage: int, which: Iterable[int]) -> None:
    for k in sorted(which):
        save_state(cohort[k].folder, states[k], stage)


class _Clock:
    """Counts steps of all runs together and tells the observer."""

    def __init__(self, runs: Sequence[Run], observe: ProgressCallback | None) -> None:
        self.runs, self.observe = len(runs), observe
        self.total = sum(run.config["steps"] * len(stages(run.cls)) for run in runs)
        self.done, self.made, self.over, self.lost, self.text = 0, 0, 0, 0, ""
        self.began = time.monotonic()

    def begin(self, already: int) -> None:
        self.done += already

    def skip(self, cohort: Sequence[Run]) -> None:
        self.done += sum(run.config["steps"] * len(stages(run.cls)) for run in cohort)
        self.over += len(cohort)

    def close(self, finished: int, diverged: int) -> None:
        self.over += finished
        self.lost += diverged

    def message(self, text: str) -> None:
        self.text = text

    def tick(self, steps: int, finished: int, diverged: int) -> None:
        self.done += steps
        self.made += steps
        if self.observe:
            rate = self.made / max(time.monotonic() - self.began, 1e-9)
            remaining_seconds = (self.total - self.done) / max(rate, 1e-9)
            self.observe(
                FleetProgress(
                    self.runs,
                    self.over + finished,
                    self.lost + diverged,
                    self.done,
                    self.total,
                    rate,
                    remaining_seconds,
                    self.text,
                )
            )
