"""Time per model and training step of many runs trained together, for each number of runs and each strategy.

python benchmarks/speed/fleet.py --method beta_tcvae --device cuda --precision bf16 --replicas 1,4,16,64,256
python benchmarks/speed/fleet.py --parity --method all --precision float32     # accuracy instead of time

Compiling takes about a minute per line. With --lock FILE several processes compile at the same time, but tune their
kernels and are timed one at a time; with --wait N each waits until N processes have compiled.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from unweave.config.devices import find_device
from unweave.config.optimizers import resolve_optimizers
from unweave.data import load_data
from unweave.engine.program import State, initial_state
from unweave.engine.replicas import make_fleet
from unweave.methods import METHODS
from unweave.nn.conv import conv_implementation
from unweave.training.build import build, build_program
from unweave.training.prepare import prepare

sys.path.append(str(Path(__file__).parents[1] / "reliability"))
from parity import supervision

FLOOR = 20.0  # microseconds: lower bound of one step of beta_tcvae on an H200 (5.3 GFLOP, 80 MB of activations)


def replicas(method: str, data, count: int, arguments) -> tuple[list, list]:
    """Return the programs and states of `count` runs that differ in seed and learning rate."""
    given = {name: getattr(arguments, name) for name in ("net", "batch", "device", "precision")}
    run = prepare(method, data, **given, supervision=supervision(method, data, net=arguments.net))
    programs, states = [], []
    for seed in range(count):
        optimizers = resolve_optimizers(run.cls, 1e-4 * (1 + seed % 4))
        config = run.config.replace(seed=seed, optimizers=optimizers)
        built = build(run.cls, config, data)
        max_step = torch.tensor(10**9, device=arguments.device)
        programs.append(build_program(config, built, data)._replace(max_step=max_step))
        states.append(initial_state(built))
    return programs, states


@contextlib.contextmanager
def hold(lock: str) -> Iterator[None]:
    """Hold the lock, if one is given."""
    with open(lock or os.devnull, "a") as file:
        if lock:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def lock_autotuning(lock: str) -> None:
    """Make the compiler time its kernels only while it holds the lock."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    timed = CachingAutotuner.benchmark_all_configs

    def locked(self: CachingAutotuner, *args: object, **kwargs: object) -> object:
        with hold(lock):
            return timed(self, *args, **kwargs)

    CachingAutotuner.benchmark_all_configs = locked


def wait_for(lock: str, count: int) -> None:
    """Wait until `count` processes have called this function."""
    folder = Path(f"{lock}.ready")
    folder.mkdir(exist_ok=True)
    (folder / str(os.getpid())).touch()
    while len(list(folder.iterdir())) < count:
        time.sleep(0.2)


def measure(method: str, data, count: int, strategy: str, arguments) -> None:
    """Build one fleet and print its time per step and its memory."""
    cuda = arguments.device.startswith("cuda")
    if cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    engine = ("graph" if strategy != "loop" else "loop") if cuda else arguments.engine
    fleet = make_fleet(*replicas(method, data, count, arguments), strategy=strategy, engine=engine)
    ready = time.perf_counter() - began
    if arguments.wait:
        wait_for(arguments.lock, arguments.wait)
    with hold(arguments.lock):
        time_steps(fleet, method, count, strategy, ready, arguments)


def time_steps(fleet, method: str, count: int, strategy: str, ready: float, arguments) -> None:
    """Print the time per step of a compiled fleet."""
    cuda = arguments.device.startswith("cuda")
    steps = arguments.steps or max(5, 2000 // count if cuda and strategy != "loop" else 20 // count)
    fleet.run(max(2, steps // 10))
    times = []
    for _ in range(arguments.repeats):
        began = time.perf_counter()
        fleet.run(steps)
        times.append((time.perf_counter() - began) / steps / count * 1e6)
    memory = f"{torch.cuda.max_memory_allocated() / 2**30:6.1f} GiB" if cuda else ""
    share = f"{100 * FLOOR / statistics.median(times):4.0f} % of the floor" if cuda else ""
    print(
        f"  {method:12} {strategy:8} R={count:<4} {statistics.median(times):9.1f} us per model and step "
        f"({min(times):.1f} to {max(times):.1f}) {share} {memory} ready in {ready:.0f} s",
        flush=True,
    )
    if arguments.profile:
        profile(fleet)


def profile(fleet) -> None:
    """Print the kernels that take the most time."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as prof:
        fleet.run(5)
    rows = sorted(prof.key_averages(), key=lambda r: -r.device_time_total)
    total = sum(r.device_time_total for r in rows)
    for row in rows[:40]:
        time_us, share = row.device_time_total / 5, 100 * row.device_time_total / total
        print(f"    {time_us:9.1f} us {share:5.1f} %  x{row.count / 5:<4.0f} {row.key[:110]}")


def distance(one: State, other: State) -> float:
    """Return the norm of the difference of all parameters, relative to their norm."""
    pairs = [(one.params[n].double(), other.params[n].double()) for n in one.params]
    return float(sum((a - b).square().sum() for a, b in pairs).sqrt() / sum(b.square().sum() for _, b in pairs).sqrt())


def parity(method: str, data, arguments) -> None:
    """Print how far three replicas of a fleet are, after 20 steps, from the same runs trained alone.

    The runs are trained alone as a fleet of one and in the plain loop. The effect of rounding is given for comparison:
    the same run in the loop with two implementations of its convolutions.
    """
    programs, states = replicas(method, data, arguments.among, arguments)
    fleet = make_fleet(programs, states, strategy="batched", engine=arguments.engine)
    together = fleet.run(20)
    gaps, losses, rounding, single = [], [], [], []
    for k in sorted({0, arguments.among // 3, arguments.among - 1}):
        ends = []
        for implementation in ("library", "patches"):
            lone = make_fleet(programs[k : k + 1], states[k : k + 1], strategy="loop", engine="loop")
            with conv_implementation(implementation):
                done = lone.run(20)[0]
            ends.append(lone.states()[0])
        one = make_fleet(programs[k : k + 1], states[k : k + 1], strategy="batched", engine=arguments.engine)
        one.run(20)
        single.append(distance(fleet.states()[k], one.states()[0]))
        gaps.append(distance(fleet.states()[k], ends[0]))
        rounding.append(distance(ends[1], ends[0]))
        name = "loss" if "loss" in done.logs else next(iter(done.logs))
        losses.append(abs(together[k].logs[name] / done.logs[name] - 1))
    print(
        f"  {method:15} {arguments.precision} R={arguments.among}: fleet of one {max(single):.1e}, "
        f"loop {max(gaps):.1e} (its loss {max(losses):.1e}; rounding {max(rounding):.1e})",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default="beta_tcvae")
    parser.add_argument("--data", default="sprites")
    parser.add_argument("--net", default="locatello")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--engine", default="", help="on a CPU; loop, compiled or, with --parity, traced")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--replicas", default="1,4,16,64,256")
    parser.add_argument("--strategies", default="loop,batched")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--profile", action="store_true", help="print the kernels of a step")
    parser.add_argument("--parity", action="store_true", help="compare with runs trained alone, without timing")
    parser.add_argument("--among", type=int, default=64, help="number of runs of --parity")
    parser.add_argument("--lock", default="", help="file shared by processes that are timed one at a time")
    parser.add_argument("--wait", type=int, default=0, help="number of processes that must have compiled before timing")
    arguments = parser.parse_args()
    arguments.device = find_device(arguments.device, arguments.precision)
    arguments.engine = arguments.engine or ("traced" if arguments.parity else "loop")
    if arguments.device.startswith("cuda"):
        print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    torch.set_float32_matmul_precision("high" if arguments.precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = arguments.precision != "float32"
    if arguments.wait and not arguments.lock:
        parser.error("--wait needs --lock")
    if arguments.lock:
        lock_autotuning(arguments.lock)
    data = load_data(arguments.data).to(arguments.device)
    print(f"{arguments.net}, batch {arguments.batch}, {arguments.data} {data.shape}, {arguments.precision}")
    for method in METHODS if arguments.method == "all" else arguments.method.split(","):
        if arguments.parity:
            parity(method, data, arguments)
            continue
        for count in map(int, arguments.replicas.split(",")):
            for strategy in arguments.strategies.split(","):
                measure(method, data, count, strategy, arguments)


if __name__ == "__main__":
    main()
