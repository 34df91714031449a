"""The engine on toy methods: players, phases, schedules, state, and the optimizer against torch's own."""

from typing import Annotated, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from toys import TwoPhases, program, sample

import unweave as uw
from unweave.config import parse_schedule
from unweave.engine.compiled import CompiledEngine
from unweave.engine.loop import LoopEngine, train_step
from unweave.engine.optim import Moments, Optimizer, clip_by_norm, update
from unweave.engine.program import at_step, initial_state, schedule_row


def test_phases_run_in_order_on_different_batches():
    method, seen = TwoPhases(), []

    def watched(key, batch):
        seen.append(sample(key, batch).x)
        return uw.Batch(x=seen[-1])

    start = initial_state(method)
    state, logs = train_step(program(method)._replace(sample=watched), start)
    assert len(seen) == 2 and not torch.equal(*seen)
    assert state.params["a"] < start.params["a"] and state.params["b"] > start.params["b"]
    # logs are the last phase's: it saw a moved already, b not yet
    assert logs["a"] == state.params["a"] and logs["b"] == start.params["b"]
    # b's gradient is taken at the moved a
    assert state.moments["b"].mean[0].item() == pytest.approx(0.1 * 2 * (-5.0 - state.params["a"].item()), rel=1e-5)


def test_players_of_one_phase_use_the_same_parameters():
    method = TwoPhases()
    method.phases = {}
    state, logs = train_step(program(method), initial_state(method))
    assert logs["a"] == 5.0 and logs["b"] == -5.0
    assert state.moments["b"].mean[0].item() == pytest.approx(0.1 * 2 * (-5.0 - 5.0))


def test_phases_and_steps_have_different_noise():
    method, drawn = TwoPhases(), []
    method.forward = lambda *args, phase, own=method.forward: (drawn.append(args[1]["eps"]), own(*args))[1]
    LoopEngine(program(method), initial_state(method)).run(3)
    assert len(torch.stack(drawn).unique()) == 3 * 2 * 4


def test_a_discriminator_of_several_steps():
    method = TwoPhases()
    method.phases = {"1": ("b",), "2": ("b",), "3": ("b",), "4": ("a",)}
    state = LoopEngine(program(method), initial_state(method))
    state.run(2)
    counts = {player: m[-1].item() for player, m in state.state.moments.items()}
    assert counts == {"a": 2.0, "b": 6.0} and state.state.step == 2


def test_a_method_is_not_changed_by_training_steps():
    method = TwoPhases()
    LoopEngine(program(method), initial_state(method)).run(3)
    assert method.a == 5.0 and method.a.grad is None


class Average(uw.Method):
    """A buffer that follows a decreasing weight."""

    players = {"model": ("weight",)}

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3))
        self.register_buffer("average", torch.ones(3))

    def forward(self, batch, noise, hyper, step):
        moved = 0.5 * self.average + 0.5 * self.weight
        return uw.Out({"model": self.weight.sum()}, {"average": moved.mean()}, {"average": moved})


@pytest.mark.parametrize("engine", [LoopEngine, CompiledEngine])
def test_new_state_is_returned(engine):
    """The weight is 0, -0.1, -0.2 at the three steps; the average halves its distance to each."""
    method = Average()
    runner = engine(program(method), initial_state(method))
    runner.run(3)
    expected = ((1.0 / 2 + 0.0) / 2 - 0.1 / 2) / 2 - 0.2 / 2
    torch.testing.assert_close(runner.state.buffers["average"], torch.full((3,), expected))
    assert not runner.state.buffers["average"].requires_grad
    assert torch.equal(method.average, torch.ones(3))


class Unowned(TwoPhases):
    players = {"a": ("a",)}
    phases = {}


class OwnedTwice(TwoPhases):
    players = {"a": ("a",), "b": ("a", "b")}
    phases = {}


def test_each_parameter_has_one_owner():
    with pytest.raises(TypeError, match="b .*Unowned"):
        initial_state(Unowned())
    with pytest.raises(TypeError, match="a .*b"):
        initial_state(OwnedTwice())


class SharedWeight(uw.Method):
    """One weight that two players update in different phases, one upwards and one downwards."""

    players = {"up": ("weight",), "down": ("weight",)}
    phases = {"rise": ("up",), "fall": ("down",)}

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(0.0))

    def forward(self, batch, noise, hyper, step, phase):
        loss = -self.weight if phase == "rise" else 2.0 * self.weight
        return uw.Out({"up" if phase == "rise" else "down": loss}, {phase: self.weight})


@pytest.mark.parametrize("engine", [LoopEngine, CompiledEngine])
def test_two_players_may_share_a_weight_in_different_phases(engine):
    """Each player has its own optimizer state, and each phase its log."""
    method = SharedWeight()
    prog = program(method)
    rates = {"up": prog.optimizers["up"], "down": prog.optimizers["down"]._replace(lr=schedule_row(0.03))}
    runner = engine(prog._replace(optimizers=rates), initial_state(method))
    logs = runner.run(1)
    assert logs == pytest.approx({"rise": 0.0, "fall": 0.1}, rel=1e-4)
    assert runner.state.params["weight"].item() == pytest.approx(0.07, rel=1e-4)
    means = {player: m.mean[0].item() for player, m in runner.state.moments.items()}
    assert means == pytest.approx({"up": -0.1, "down": 0.2})


def test_frozen_is_an_owner_and_does_not_move():
    method = Unowned()
    method.frozen = ("b",)
    runner = LoopEngine(program(method), initial_state(method))
    runner.run(2)
    assert runner.state.params["b"] == -5.0 and runner.state.params["a"] != 5.0


ADAMS = [("Adam", {"betas": betas}) for betas in ((0.9, 0.999), (0.5, 0.9))]
DESCENTS = [("SGD", {"momentum": momentum}) for momentum in (0.0, 0.9)]


@pytest.mark.parametrize(("kind", "options"), ADAMS + DESCENTS)
@pytest.mark.parametrize(("clip", "scale"), [(0.0, 1.0), (0.3, 1.0), (0.0, 1e-8)])
def test_an_optimizer_is_torchs(kind, options, clip, scale):
    """Also for gradients of the size of Adam's epsilon."""
    torch.manual_seed(0)
    start = [torch.randn(4, 3), torch.randn(5)]
    targets = [[torch.randn_like(p) for p in start] for _ in range(10)]

    def loss(params, target):
        return scale * sum((p - t).square().sum() for p, t in zip(params, target, strict=True))

    theirs = [p.clone().requires_grad_() for p in start]
    optimizer = getattr(torch.optim, kind)(theirs, lr=0.05, **options)
    ours, memory = start, Moments(*([torch.zeros_like(p) for p in start] for _ in range(2)), torch.zeros(()))
    for target in targets:
        optimizer.zero_grad()
        loss(theirs, target).backward()
        if clip:
            nn.utils.clip_grad_norm_(theirs, clip)
        optimizer.step()
        leaves = [p.clone().requires_grad_() for p in ours]
        grads = list(torch.autograd.grad(loss(leaves, target), leaves))
        ours, memory = update(
            Optimizer(torch.tensor(0.05), clip=torch.tensor(clip) if clip else None, **options),
            torch.tensor(0.05),
            ours,
            grads,
            memory,
        )
        torch.testing.assert_close(ours, [p.detach() for p in theirs], rtol=1e-4, atol=1e-5)


def test_clipping_is_by_the_joint_norm():
    grads = [torch.tensor([3.0, 0.0]), torch.tensor([0.0, 4.0])]
    half = clip_by_norm(grads, torch.tensor(2.5))
    torch.testing.assert_close(half, [torch.tensor([1.5, 0.0]), torch.tensor([0.0, 2.0])])
    torch.testing.assert_close(clip_by_norm(grads, torch.tensor(5.5)), grads)
    zeros = [torch.zeros(2)]
    assert torch.equal(clip_by_norm(zeros, torch.tensor(1.0))[0], zeros[0])


def test_each_player_is_clipped_by_itself():
    method = TwoPhases()
    method.phases = {}
    state, _ = train_step(program(method, clip=torch.tensor(1.0)), initial_state(method))
    norms = {player: m.mean[0].abs().item() / 0.1 for player, m in state.moments.items()}
    assert norms == pytest.approx({"a": 1.0, "b": 1.0}, rel=1e-4)


@pytest.mark.parametrize(
    ("text", "rates"),
    [
        ("linear(1, 0, 4, 2)", [1, 1, 1, 0.75, 0.5, 0.25, 0, 0]),
        ("linear(0, 0.2, 2)", [0, 0.1, 0.2, 0.2]),
        (0.3, [0.3] * 3),
    ],
)
def test_the_learning_rate_follows_its_schedule(text, rates):
    """With a constant gradient, the steps of Adam equal the learning rate."""
    method = Average()
    running, state = program(method, lr=parse_schedule("lr", text)), initial_state(method)
    for rate in rates:
        after, _ = train_step(running, state)
        moved = (state.params["weight"] - after.params["weight"]).mean().item()
        assert moved == pytest.approx(rate, rel=1e-4, abs=1e-6)
        state = after


class Scheduled(uw.Method):
    """A method that logs its hyperparameters."""

    class Hyper(NamedTuple):
        first: Annotated[Tensor, uw.HyperParam(1.0, "any")]
        second: Annotated[Tensor, uw.HyperParam(2.0, "any")]

    players = {"model": ("weight",)}

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, batch, noise, hyper, step):
        return uw.Out({"model": hyper.first * self.weight}, hyper._asdict())


def test_hyper_parameters_follow_their_schedules():
    method = Scheduled()
    rows = torch.stack([schedule_row((0.0, 8.0, 4.0, 0.0)), schedule_row(2.0)])
    running, state = program(method)._replace(hyper=rows), initial_state(method)
    seen = []
    for _ in range(6):
        state, logs = train_step(running, state)
        seen.append((logs["first"].item(), logs["second"].item()))
    assert seen == [(0.0, 2.0), (2.0, 2.0), (4.0, 2.0), (6.0, 2.0), (8.0, 2.0), (8.0, 2.0)]
    assert at_step(rows, torch.tensor(3)).tolist() == [6.0, 2.0]
