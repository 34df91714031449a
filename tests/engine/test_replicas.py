"""Strategies of fleets, and what replicas must have in common."""

import pytest
import torch
from raises import raises
from toys import TwoPhases, program

import unweave as uw
from unweave.engine.program import initial_state
from unweave.engine.replicas import make_fleet, stack_programs


def replicas(*rates, **settings):
    method = TwoPhases()
    programs = [program(method, lr=rate, seed=k, **settings) for k, rate in enumerate(rates)]
    return [p._replace(max_step=torch.tensor(5)) for p in programs], [initial_state(method) for _ in programs]


@pytest.mark.parametrize("strategy", ["streams", "vmap", "magic"])
def test_an_unknown_strategy_is_an_error(strategy):
    with raises("strategy", value=strategy, accepted=["auto", "loop", "batched"]):
        uw.fit([{"method": "vae"}], strategy=strategy)


def test_both_strategies_compute_the_same():
    loop, batched = (make_fleet(*replicas(0.1, 0.2), strategy=s, engine="loop") for s in ("loop", "batched"))
    for one, other in zip(loop.run(7), batched.run(7), strict=True):
        assert one.step == other.step == one.steps_done == other.steps_done == 5
        assert one.logs == pytest.approx(other.logs)
    for one, other in zip(loop.states(), batched.states(), strict=True):
        torch.testing.assert_close(one.params, other.params)


def test_replicas_share_the_optimizer_kind():
    programs, _ = replicas(0.1, 0.1)
    descent, _ = replicas(0.1, momentum=0.9)
    with pytest.raises(ValueError):
        stack_programs([programs[0], descent[0]])
