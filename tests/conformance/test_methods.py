"""Tests that every method passes, from what the method declares."""

from __future__ import annotations

import functools
import json
import math
import sys

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.config.settings import all_settings
from unweave.contract import Batch, all_phases, player_parameters, setting_help
from unweave.engine.compiled import CompiledEngine
from unweave.engine.loop import LoopEngine, compute_losses, train_step
from unweave.engine.program import draw_noise, initial_state
from unweave.engine.replicas import make_fleet
from unweave.methods import METHODS
from unweave.nn.conv import conv_implementation
from unweave.nn.discriminator import Discriminator
from unweave.training.build import build, build_program
from unweave.training.prepare import prepare

GRAPH = "q(z|x) q(y|z,x); p(x|y,z) p(z|y); labels: y; z: normal"  # the class depends on the other variable
# Settings that change the program of a method are tested as well.
VARIANTS = [
    *((name, {}) for name in METHODS),
    ("beta_tcvae", {"estimator": "mss", "alpha": 2.0, "gamma": 3.0}),
    ("factor_vae", {"one_batch": True}),
    ("info_vae", {"kernel": "rbf", "alpha": 0.5}),
    ("info_vae", {"divergence": "stein", "lambda_": 5.0}),
    ("info_vae", {"divergence": "adversarial", "lambda_": 2.0, "alpha": 0.5}),
    ("aae", {"encoder": "gaussian", "generator": "ratio"}),
    ("aae", {"prior": "mixture", "generator": "minimax"}),
    ("aae", {"prior": "swiss_roll"}),
    ("ada_gvae", {"known_k": True}),
    ("ada_gvae", {"symmetric": True}),
    ("ada_ml_vae", {"known_k": True}),
    ("ml_vae", {"content": 1, "per_member": True}),
    ("group_tcvae", {"content": 1, "level": "inter_intra_one", "beta": 20.0}),
    ("generalized_m2", {"graph": GRAPH, "discrete": "relaxed", "samples": 2}),
]
IDS = ["-".join([name, *map(str, settings)]) for name, settings in VARIANTS]
table = pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=IDS)
BATCH = 8


@pytest.fixture(autouse=True)
def small_discriminators(monkeypatch):
    """The 6 million weights of a discriminator would take most of the time of these tests."""
    for cls in METHODS.values():
        if hasattr(sys.modules[cls.__module__], "Discriminator"):
            monkeypatch.setattr(
                f"{cls.__module__}.Discriminator", lambda latents, **_: Discriminator(latents, width=64, depth=3)
            )


@functools.cache
def rooms(size):
    return uw.load_data(f"rooms(size={size})")


@pytest.fixture
def data(name):
    """The smallest images that the method accepts."""
    return rooms(METHODS[name].smallest_image)


def tiny_settings(name, settings):
    """Settings of a small model, as far as the method has them."""
    known = all_settings(METHODS[name])[0]
    return {**{key: value for key, value in {"net": "small", "latents": 4}.items() if key in known}, **settings}


def make(name, settings, data, *, seed=0, lr=1e-3, batch=BATCH):
    """Return a method and its program for a small problem."""
    options = {"seed": seed, "lr": lr, "batch": batch, "device": "cpu", **tiny_settings(name, settings)}
    run = prepare(name, data, supervision=METHODS[name].example_supervision, **options)
    method = build(run.cls, run.config, data)
    return method, build_program(run.config, method, data)


@table
def test_losses_are_finite_and_summed_over_pixels(name, settings, data):
    """An untrained decoder predicts about 1/2 everywhere: log 2 per pixel, in nats."""
    method, program = make(name, settings, data)
    logs = {}
    for phase, players in enumerate(all_phases(method).values()):
        out = compute_losses(program, initial_state(method), phase)
        assert set(out.losses) >= set(players)
        assert all(v.shape == () and math.isfinite(v) for v in [*out.losses.values(), *out.logs.values()])
        assert not logs.keys() & out.logs.keys(), "two phases log the same name"
        logs |= out.logs
    if "recon" in logs and METHODS[name].__init__.__kwdefaults__.get("likelihood") == "bernoulli":
        pixels = math.prod(data.shape)
        assert float(logs["recon"]) == pytest.approx(pixels * math.log(2.0), rel=0.2)
    if not method.phases and "model" in method.players:
        assert float(logs["loss"]) == pytest.approx(float(out.losses["model"]))


@table
def test_every_parameter_has_one_player_in_a_phase(name, settings, data):
    method, _ = make(name, settings, data)
    parameter_names = player_parameters(method)
    assert {n for names in parameter_names.values() for n in names} == {n for n, _ in method.named_parameters()}
    for players in all_phases(method).values():
        names = [n for player in players for n in parameter_names[player]]
        assert len(names) == len(set(names)) and all(parameter_names[player] for player in players)


@table
def test_a_player_updates_only_its_own_parameters(name, settings, data):
    """With one player's learning rate at zero, exactly the parameters of the others change."""
    method, program = make(name, settings, data)
    for still in method.players:
        off = torch.tensor([0.0, 0.0, 1.0, 1.0])
        optimizers = {p: a._replace(lr=a.lr * off) if p == still else a for p, a in program.optimizers.items()}
        before = initial_state(method)
        after, _ = train_step(program._replace(optimizers=optimizers), before)
        expected = {n for player, names in program.parameter_names.items() for n in names if player != still}
        for player, names in program.parameter_names.items():
            changed = {n for n in names if not torch.equal(before.params[n], after.params[n])}
            assert changed <= expected, player
            assert bool(changed) == bool(expected & set(names)), player


@table
def test_each_gradient_is_of_the_players_own_loss(name, settings, data):
    """A player's first moment after one step is (1 - b1) times the gradient of its own loss."""
    method, program = make(name, settings, data)
    still = {p: a._replace(lr=a.lr * torch.tensor([0.0, 0.0, 1.0, 1.0])) for p, a in program.optimizers.items()}
    state = initial_state(method)
    after, _ = train_step(program._replace(optimizers=still), state)
    phases = {player: index for index, players in enumerate(all_phases(method).values()) for player in players}
    for player, names in program.parameter_names.items():
        params = {n: t.clone().requires_grad_() for n, t in state.params.items()}
        loss = compute_losses(program, state._replace(params=params), phases[player]).losses[player]
        grads = torch.autograd.grad(loss, [params[n] for n in names])
        first = 1.0 - program.optimizers[player].betas[0]
        for grad, mean in zip(grads, after.moments[player].mean, strict=True):
            torch.testing.assert_close(mean, first * grad, rtol=1e-4, atol=1e-6)


@table
def test_recorded_step_equals_loop(name, settings, data):
    """Compile up to code generation, which takes two minutes per method on a CPU; see the next test."""
    method, program = make(name, settings, data)
    assert_loop_equals_compiled(method, program, data, backend="aot_eager")


def test_compiled_step_equals_loop():
    """With code generation; `benchmarks/reliability/parity.py` tests every method."""
    data = uw.load_data("digits")
    method, program = make("vae", {"net": "mlp"}, data, batch=4)
    assert_loop_equals_compiled(method, program, data, backend="inductor")


def spread(method, state, data):
    """Scale the last layer of the encoder: comparing nearly equal codes of an untrained one would be arbitrary."""
    encode = method.representation().encode
    if encode is None:
        return state
    params = {n: p for n, p in method.named_parameters() if n.endswith("weight")}
    codes = encode(data.images(torch.arange(4)))
    grads = torch.autograd.grad(codes.square().sum(), list(params.values()), allow_unused=True)
    last = [n for n, grad in zip(params, grads, strict=True) if grad is not None][-1]
    state.params[last] *= 10.0
    return state


def assert_loop_equals_compiled(method, program, data, backend):
    state = spread(method, initial_state(method), data)
    loop, graph = LoopEngine(program, state.clone()), CompiledEngine(program, state, backend=backend)
    logs, same = loop.run(3), graph.run(3)
    assert logs == pytest.approx(same, rel=1e-4, abs=1e-4)
    for (tensor, a), (_, b) in zip(loop.state.tensors(), graph.state.tensors(), strict=True):
        # By norm: if a gradient is only rounding error, Adam changes that weight by the full rate in either direction.
        assert (a - b).double().norm() <= 1e-3 * a.double().norm() + 1e-6, tensor


SINGLE = [(name, settings, torch.float32) for name, settings in VARIANTS]
DOUBLE = [(name, settings, torch.float64) for name, settings in VARIANTS if not settings]


@pytest.mark.parametrize(
    ("name", "settings", "dtype"),
    SINGLE + DOUBLE,
    ids=[*(f"single-{name}" for name in IDS), *(f"double-{name}" for name, *_ in DOUBLE)],
)
def test_a_replica_equals_a_single_run(name, settings, dtype, monkeypatch):
    """Twenty steps, by the norm of all weights; `benchmarks/speed/fleet.py --parity` compares 64 replicas.

    The tolerance is 1e-10 in float64, and in float32 1e-5 or the effect of rounding errors: see `rounding_effect`.
    """
    data = rooms(max(16, METHODS[name].smallest_image))  # in smaller images too many pairs are equal
    made = [make(name, settings, data, seed=seed, lr=(1 + seed) * 1e-4) for seed in range(2)]
    programs = [in_precision(program._replace(max_step=torch.tensor(20)), dtype) for _, program in made]
    states = [spread(method, initial_state(method), data) for method, _ in made]
    states = [state.filled(cast(t, dtype) for _, t in state.tensors()) for state in states]
    monkeypatch.setattr(
        "unweave.engine.loop.draw_noise", lambda *a: {n: cast(t, dtype) for n, t in draw_noise(*a).items()}
    )
    together = make_fleet(programs, states, strategy="batched", engine="loop")
    alone = make_fleet(programs, states, strategy="loop", engine="loop")
    done = list(zip(together.run(20), alone.run(20), strict=True))
    gaps = distances(together.states(), alone.states())
    allowed, close = ([1e-10] * 2, 1e-8) if dtype == torch.float64 else ([1e-5] * 2, 1e-3)
    if max(gaps) > allowed[0] and dtype == torch.float32:
        allowed = [1e-5 + 4 * gap for gap in rounding_effect(programs, states, alone.states())]
        close = 3e-2  # the accuracy of 160 predictions changes in steps of 0.006
    assert all(gap < most for gap, most in zip(gaps, allowed, strict=True)), (gaps, allowed)
    for one, other in done:
        assert one.step == other.step == 20
        assert one.logs == pytest.approx(other.logs, rel=close, abs=close)


def rounding_effect(programs, states, reference):
    """Return how far runs diverge with convolutions as patches, and with the last digit of all weights changed."""
    found = []
    for implementation, start in [("patches", states), *(("library", perturbed(states, seed)) for seed in range(6))]:
        again = make_fleet(programs, start, strategy="loop", engine="loop")
        with conv_implementation(implementation):
            again.run(20)
        found.append(distances(again.states(), reference))
    return [max(gaps) for gaps in zip(*found, strict=True)]


def perturbed(states, seed):
    """Return the states with the last digit of every weight changed at random."""
    drawn = torch.Generator().manual_seed(seed)

    def perturb(t):
        return t * (1.0 + 2.0**-23 * (2 * torch.randint(2, t.shape, generator=drawn) - 1))

    return [s._replace(params={n: perturb(t) for n, t in s.params.items()}) for s in states]


def cast(tensor, dtype):
    return tensor.to(dtype) if tensor is not None and tensor.is_floating_point() else tensor


def in_precision(program, dtype):
    return program._replace(sample=lambda *a: Batch(*(cast(t, dtype) for t in program.sample(*a))))


def distances(states, others):
    """Return the norm of the difference of all weights, relative to their norm, for each run."""
    found = []
    for one, other in zip(states, others, strict=True):
        a, b = (torch.cat([p.flatten() for p in state.params.values()]).double() for state in (one, other))
        found.append(float((a - b).norm() / b.norm()))
    return found


@table
def test_killed_and_resumed_equals_uninterrupted(name, settings, data, tmp_path):
    class Killed(Exception):
        pass

    def kill(progress):
        if progress.step == 8:
            raise Killed

    options = dict(steps=12, batch=4, log_every=2, checkpoint_every=4, lr=1e-3, **tiny_settings(name, settings))
    options["supervision"] = METHODS[name].example_supervision
    whole = uw.train(name, data, out=tmp_path / "whole", **options)
    with pytest.raises(Killed):
        uw.train(name, data, out=tmp_path / "cut", observe=kill, **options)
    resumed = uw.resume(tmp_path / "cut")
    for (n, a), b in zip(whole.method.state_dict().items(), resumed.method.state_dict().values(), strict=True):
        assert torch.equal(a, b), n
    assert whole.folder.logs() == resumed.folder.logs()


@table
def test_save_and_load(name, settings, data, tmp_path):
    options = dict(steps=2, batch=4, supervision=METHODS[name].example_supervision, **tiny_settings(name, settings))
    trained = uw.train(name, data, out=tmp_path / "run", **options)
    loaded = uw.load(tmp_path / "run")
    found, images = loaded.representation, data.images(torch.arange(5))
    assert found.encode is not None or found.decode is not None
    codes = np.zeros((5, found.latents))
    if found.encode is not None:
        codes = trained.encode(images)
        assert codes.shape == (5, found.latents) and (codes == loaded.encode(images)).all()
    if found.decode is not None:
        decoded = loaded.decode(codes)
        assert decoded.shape == images.shape and decoded.min() >= 0 and decoded.max() <= 1
    assert not found.parts or sum(part.size for part in found.parts) == found.latents
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["method"] == name
    assert set(config["hyper"]) == set(all_settings(METHODS[name])[1])


WITH_OBJECTIVE = {n: variant for n, variant in zip(IDS, VARIANTS, strict=True) if METHODS[variant[0]].objective}


@pytest.mark.parametrize(("name", "settings"), WITH_OBJECTIVE.values(), ids=WITH_OBJECTIVE)
def test_the_objective_falls(name, settings, data):
    method, program = make(name, settings, data, lr=3e-3, batch=16)
    engine, objective = LoopEngine(program, initial_state(method)), METHODS[name].objective
    first = engine.run(5)[objective]
    engine.run(90)
    assert engine.run(5)[objective] < first - 0.03 * abs(first)


@table
def test_a_batch_and_its_noise_are_functions_of_seed_and_step(name, settings, data):
    method, program = make(name, settings, data)
    state = initial_state(method)
    player = next(iter(all_phases(method).values()))[0]
    a, b = (compute_losses(program, state, 0).losses[player] for _ in range(2))
    other = compute_losses(program._replace(seed=program.seed + 1), state, 0).losses[player]
    later = compute_losses(program, state._replace(step=state.step + 1), 0).losses[player]
    assert a == b and a != other and a != later


@pytest.mark.parametrize("name", METHODS)
def test_declarations(name):
    cls = METHODS[name]
    assert cls.paper and cls.equation and cls.__doc__
    assert cls.__name__.lower() == name.replace("_", "") and cls.__module__ == f"unweave.methods.{name}"
    assert cls.__bases__ == (uw.Method,), "methods are final classes"
    assert set(cls.optimizer_defaults) == set(cls.players)
    assert [setting for setting, about in setting_help(cls).items() if not about] == [], "settings without help"
