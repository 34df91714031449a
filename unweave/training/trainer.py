"""The trainer: runs of one cohort, stage after stage, into their folders. A single run is a cohort of one.

A checkpoint may be written between any two steps. It holds the unfinished log record too, so that neither checkpoints
nor interruptions change the log or the weights.
"""

import math
import time
from collections.abc import Callable, Collection, Sequence

import torch

from unweave.config.identity import identity
from unweave.contract import Method, stages
from unweave.data.prefetch import DeviceBuffer
from unweave.engine.checkpoint import OpenRecord, restore_state, save_state, saved_stage
from unweave.engine.program import Program, State, initial_state
from unweave.engine.replicas import Fleet, make_fleet, resolve_engine
from unweave.model import Diverged, TrainedModel, load
from unweave.runs import WEIGHTS, damaged, record_training_time, versions
from unweave.runs.checkpoints import remove_checkpoints
from unweave.training.build import (
    build,
    build_program,
    device_cache_bytes,
    keep_freed_memory,
    load_trained_weights,
    matmul_precision,
    with_prefetch,
)
from unweave.training.cohort import Run, choose_strategy, group_into_cohorts, split_to_fit
from unweave.training.folders import open_folders
from unweave.training.interrupt import SignalFlag, catch_signals
from unweave.training.prepare import init_from
from unweave.training.progress import ProgressCallback, ProgressMeter
from unweave.training.validation import ValidationFunction, make_validation

Result = TrainedModel | Diverged


def train_all(runs: Sequence[Run], strategy: str = "auto", observe: ProgressCallback | None = None) -> list[Result]:
    """Train all runs to their ends, cohort after cohort; return the results in the order of the runs.

    Folders of new runs are created. No other process can train the runs meanwhile.
    """
    meter = ProgressMeter(len(runs), sum(map(_total_steps, runs)), observe)
    results: dict[int, Result] = {}
    if any(run.config.device == "cpu" for run in runs):
        keep_freed_memory()
    for run in runs:
        run.data.fit_to(torch.device(run.config.device))
    paths = [run.folder.path for run in runs if run.folder.on_disk]
    with catch_signals(paths, strategy) as flag, open_folders(runs, flag.check):
        for k, run in enumerate(runs):
            if run.folder.finished:
                results[k] = _load_finished(run, meter)
                flag.check()
        unfinished = [k for k in range(len(runs)) if k not in results]
        for places in group_into_cohorts([runs[k] for k in unfinished]):
            indices = [unfinished[place] for place in places]
            cohort = [runs[k] for k in indices]
            data, device = cohort[0].data, cohort[0].config.device
            data.to(device if data.resident else "cpu")
            done: list[Result] = []
            for part in split_to_fit(cohort, _train_briefly, meter):
                done += _train_cohort(part, choose_strategy(strategy, part), meter, flag)
                flag.check()  # of a signal during the last step
            results |= dict(zip(indices, done, strict=True))
    return [results[k] for k in range(len(runs))]


def _total_steps(run: Run) -> int:
    return run.config.steps * len(stages(run.cls))


def _train_briefly(cohort: Sequence[Run]) -> None:
    """Run one step of a fleet of these runs, to measure its memory."""
    _Stage(cohort, [None] * len(cohort), 0, {}).make_fleet("batched", "loop").run(1)


def _load_finished(run: Run, meter: ProgressMeter) -> TrainedModel:
    """Load a run that needs no training: it belongs to no fleet."""
    meter.done += _total_steps(run)
    meter.close(1, 0)
    return load(run.folder.path, device=run.config.device, method=run.cls, data=run.data)


def _train_cohort(cohort: Sequence[Run], strategy: str, meter: ProgressMeter, flag: SignalFlag) -> list[Result]:
    """Train every stage of every run; write the weights of those that do not diverge."""
    methods: Sequence[Method | None] = [None] * len(cohort)
    diverged: dict[int, Diverged] = {}
    config, folders = cohort[0].config, [run.folder for run in cohort]
    with matmul_precision(config.precision), record_training_time(folders, config.device) as store_time:
        for index in range(len(stages(cohort[0].cls))):
            stage = _Stage(cohort, methods, index, diverged)
            stage.train(strategy, meter, flag, store_time)
            methods = stage.methods
    meter.close(len(cohort), len(diverged))
    pairs = enumerate(zip(cohort, stage.methods, strict=True))
    return [diverged.get(k) or _finish(run, method) for k, (run, method) in pairs]


def _finish(run: Run, method: Method) -> TrainedModel:
    """Write the weights of a run that has just finished, and drop its optimizer state unless it is to be kept."""
    folder, config = run.folder, run.config
    last = len(stages(run.cls)) - 1
    folder.save(WEIGHTS, method.state_dict(), steps=str(config.steps), stage=str(last), identity=identity(config))
    remove_checkpoints(folder, keep_latest=config.keep_state)
    return TrainedModel(folder, config, method.eval(), run.data.to(config.device))


class _Stage:
    """One stage of a cohort, from the positions stored in its folders to its last step.

    Attributes, each with one entry per run: `steps`, the position; `last_steps`; `record_start`, the step at which the
    current log record starts. `new_records` are the runs whose next step starts a record.
    """

    def __init__(
        self, cohort: Sequence[Run], previous: Sequence[Method | None], index: int, diverged: dict[int, Diverged]
    ) -> None:
        self.cohort, self.index, self.diverged = cohort, index, diverged
        self.final = index == len(stages(cohort[0].cls)) - 1
        self.methods: list[Method] = []
        self.programs: list[Program] = []
        self.states: list[State] = []
        self.steps: list[int] = []
        self.last_steps: list[int] = []
        self.open_records: dict[int, OpenRecord] = {}
        self.unchecked = set[str]()  # tensors that were not finite from the start, which is intended
        for k, run in enumerate(cohort):
            self._add(k, run, previous[k])
        self.record_start = [
            self.open_records[k].first_step if k in self.open_records else n for k, n in enumerate(self.steps)
        ]
        self.new_records = set(range(len(cohort))) - self.open_records.keys()
        self.validations: Sequence[ValidationFunction | None] = []

    def _add(self, k: int, run: Run, previous: Method | None) -> None:
        """Build the method of run `k`, its program, and its state, stored or initial."""
        config, folder = run.config, run.folder
        saved = saved_stage(folder)
        method = build(stages(run.cls)[self.index], config, run.data, previous, self.index, run.supervision)
        if config.init_from and self.index == 0 and saved is None:
            init_from(method, config.init_from)
        state = initial_state(method)
        self.unchecked |= {f"buffers/{n}" for n, b in state.buffers.items() if not b.isfinite().all()}
        if saved == self.index:
            if record := restore_state(folder, state):
                self.open_records[k] = record
            if int(state.step) > config.steps:
                fault = f"its checkpoint is of step {int(state.step)}, but steps in config.json is {config.steps}"
                raise damaged(folder.path, fault)
            if name := state.not_finite(self.unchecked):
                self.diverged[k] = Diverged(folder, config, int(state.step), name)
        # A run that is past this stage keeps its place in the fleet, so that the others compute the same.
        last = 0 if (saved or 0) > self.index or k in self.diverged else config.steps
        program = build_program(config, method, run.data, self.index, run.supervision)
        if not run.data.resident:
            program = with_prefetch(program, int(state.step), device_cache_bytes(run.data, config.device))
        self.programs.append(program._replace(max_step=torch.tensor(last, device=program.seed.device)))
        self.states.append(state)
        self.methods.append(method)
        self.steps.append(int(state.step))
        self.last_steps.append(last)

    def make_fleet(self, strategy: str, engine: str) -> Fleet:
        fleet = make_fleet(self.programs, self.states, strategy=strategy, engine=engine)
        for k, record in self.open_records.items():
            fleet.restore_sums(k, *record)
        return fleet

    def unfinished(self) -> list[int]:
        """Return the runs that have steps to go."""
        return [k for k in range(len(self.cohort)) if self.steps[k] < self.last_steps[k] and k not in self.diverged]

    def train(self, strategy: str, meter: ProgressMeter, flag: SignalFlag, store_time: Callable[[], None]) -> None:
        """Train to the last steps; `methods` then hold the trained weights."""
        pairs = list(zip(self.cohort, self.steps, self.last_steps, strict=True))
        for run, step, last in pairs:
            if last:  # in this stage
                run.folder.truncate_log(self.index, step)
        meter.done += sum(step if last else run.config.steps for run, step, last in pairs)
        states = self.states
        try:
            if self.unfinished():
                states = self._run(self._start(strategy, meter, flag), meter, flag, store_time).states()
        finally:
            for program in self.programs:
                if isinstance(program.sample, DeviceBuffer):
                    program.sample.prefetcher.close()
        for method, state in zip(self.methods, states, strict=True):
            load_trained_weights(method, state)

    def _start(self, strategy: str, meter: ProgressMeter, flag: SignalFlag) -> Fleet:
        """Return the fleet, its step compiled."""
        flag.check()
        config = self.cohort[0].config
        engine = resolve_engine(config.engine, config.device)
        if engine != "loop":
            meter.message = "compiling the training step"
            self._report(meter, {})
        fleet = self.make_fleet(strategy, engine)
        meter.message = ""
        meter.start_clock()
        pairs = zip(self.methods, self.cohort, strict=True)
        self.validations = [make_validation(method, run) for method, run in pairs]
        return fleet

    def _run(self, fleet: Fleet, meter: ProgressMeter, flag: SignalFlag, store_time: Callable[[], None]) -> Fleet:
        """Run the fleet from one boundary of logging, validation or checkpoints to the next."""
        changed = set[int]()
        intervals = [run.config.checkpoint_every for run in self.cohort]
        seconds = min((float(text[:-1]) for text in intervals if isinstance(text, str)), default=math.inf)
        due = time.monotonic() + seconds

        def stop() -> bool:
            return flag.signum is not None or time.monotonic() >= due

        while going := self.unfinished():
            logs = self._advance(fleet, going, meter, stop)
            changed |= set(going)
            over = not self.unfinished()
            if over or stop() or any(self._is_due(k, self.cohort[k].config.checkpoint_every) for k in going):
                self._save(fleet, changed, over)
                store_time()
                due, changed = time.monotonic() + seconds, set()
            if not over:
                flag.check()
            if logs is not None:
                self._report(meter, logs)
        return fleet

    def _advance(
        self, fleet: Fleet, going: Sequence[int], meter: ProgressMeter, stop: Callable[[], bool]
    ) -> dict[str, float] | None:
        """Run the fleet to the next boundary and write the records that are due; return one of them, or None."""
        most = max(self.last_steps[k] - self.steps[k] for k in going)
        num_steps = min(most, *(every - self.steps[k] % every for k in going for every in self._intervals(k)))
        done = fleet.run(num_steps, stop=stop, new_records=self.new_records)
        for k in self.new_records:
            self.record_start[k] = self.steps[k]
        for k in going:
            self.steps[k] = done[k].step
            if done[k].diverged:
                name = next((n for n, value in done[k].logs.items() if not math.isfinite(value)), "a logged quantity")
                self.diverged[k] = Diverged(self.cohort[k].folder, self.cohort[k].config, done[k].step, name)
        meter.advance(sum(progressed.steps_done for progressed in done))
        finite = [k for k in going if k not in self.diverged]
        self.new_records = {k for k in finite if self._is_due(k, self.cohort[k].config.log_every)}
        validated = self._validate(fleet, finite)
        written: dict[str, float] | None = None if len(finite) == len(going) else {}
        for k in finite:
            record = {**(done[k].logs if k in self.new_records else {}), **validated.get(k, {})}
            if record:
                self.cohort[k].folder.append_log({"stage": self.index, "step": self.steps[k], **record})
                written = record
        return written

    def _intervals(self, k: int) -> list[int]:
        """Return the numbers of steps after which run `k` logs, validates and writes checkpoints."""
        config = self.cohort[k].config
        validate_every = config.validate_every if self.validations[k] else None
        return [n for n in (config.log_every, validate_every, config.checkpoint_every) if isinstance(n, int)]

    def _is_due(self, k: int, every: int | str) -> bool:
        """Return True if run `k` is at a multiple of `every` steps, or at its last step; texts are times, not steps."""
        return isinstance(every, int) and (self.steps[k] % every == 0 or self.steps[k] == self.last_steps[k])

    def _validate(self, fleet: Fleet, runs: Sequence[int]) -> dict[int, dict[str, float]]:
        """Return the validation results of the runs that are due."""
        due = [k for k in runs if self.validations[k] and self._is_due(k, self.cohort[k].config.validate_every)]
        states, results = fleet.states() if due else [], {}
        for k in due:
            load_trained_weights(self.methods[k], states[k])
            results[k] = self.validations[k]()  # type: ignore[misc]
        return results

    def _save(self, fleet: Fleet, changed: Collection[int], over: bool) -> None:
        """Write checkpoints, except of runs in a state that is not finite and of runs whose final weights are due."""
        states, finite = fleet.states(), fleet.finite(self.unchecked)
        for k in sorted(changed):
            folder, config = self.cohort[k].folder, self.cohort[k].config
            if not finite[k]:
                name = states[k].not_finite(self.unchecked)
                self.diverged.setdefault(k, Diverged(folder, config, self.steps[k], name))
            weights_follow = over and self.final and not config.keep_state and k not in self.diverged
            if finite[k] and not weights_follow and (k not in self.diverged or fleet.freezes):
                open_record = None if k in self.new_records else OpenRecord(fleet.sums(k), self.record_start[k])
                save_state(folder, states[k], self.index, open_record, identity=identity(config), versions=versions())

    def _report(self, meter: ProgressMeter, logs: dict[str, float]) -> None:
        unfinished, stage = self.unfinished(), type(self.methods[0]).__name__
        finished = len(self.cohort) - len(unfinished) - len(self.diverged) if self.final else 0
        step = min((self.steps[k] for k in unfinished), default=max(self.steps))
        logs = logs if len(self.cohort) == 1 else {}
        steps = max(run.config.steps for run in self.cohort)
        meter.report(stage, step, steps, logs, finished=finished, diverged=len(self.diverged))
