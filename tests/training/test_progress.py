"""What an observer of training receives: the rate of the last seconds, and a message during compilation."""

import pytest

import unweave as uw
from unweave.training import progress, trainer
from unweave.training.progress import RATE_SECONDS, ProgressMeter


def test_the_rate_is_that_of_the_last_seconds(monkeypatch):
    now, seen = [0.0], []
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    meter = ProgressMeter(1, 10_000, seen.append)
    meter.done = 500  # trained before an interruption
    meter.start_clock()
    for steps in [1] * 60 + [100] * 30:  # one step per second, then a hundred
        now[0] += 1
        meter.advance(steps)
    meter.report("VAE", 3560, 10_000, {})
    assert RATE_SECONDS < 30
    assert seen[-1].rate == pytest.approx(100)
    assert seen[-1].done == 3560 and seen[-1].remaining_seconds == pytest.approx(64.4)


def test_compilation_is_reported_before_the_first_step(tmp_path, monkeypatch):
    seen, make_fleet = [], trainer.make_fleet
    uncompiled = lambda *runs, engine, **options: make_fleet(*runs, engine="loop", **options)  # noqa: E731
    monkeypatch.setattr(trainer, "make_fleet", uncompiled)
    options = {"net": "small", "latents": 2, "steps": 2, "batch": 4, "log_every": 1, "device": "cpu"}
    uw.train("vae", "digits(size=8)", out=tmp_path / "run", engine="compiled", observe=seen.append, **options)
    assert [(record.step, bool(record.message)) for record in seen] == [(0, True), (1, False), (2, False)]
