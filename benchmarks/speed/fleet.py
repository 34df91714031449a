"""Many models at once: microseconds per model and step, for every number of models and every strategy, in one run.

python benchmarks/speed/fleet.py --method beta_tcvae --device cuda --precision bf16 --replicas 1,4,16,64,256
python benchmarks/speed/fleet.py --parity --precision float32     # run k alone against run k among others, every method

Compiling takes a minute a line. With --lock FILE several such processes compile side by side, and tune their kernels
and are timed one at a time; --wait N lets each wait until N have compiled.
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

from unweave.config import resolve
from unweave.data import load_data
from unweave.engine.program import State, initial_state
from unweave.engine.replicas import make_fleet
from unweave.methods import METHODS
from unweave.nn.conv import conv_implementation
from unweave.training.build import build, build_program, find_device, find_method, optimizer_settings

sys.path.append(str(Path(__file__).parents[1] / "reliability"))
from parity import supervision

FLOOR = 20.0  # microseconds: 5.3 GFLOP and 80 MB of activations moved once per pass, on one H200


def replicas(method: str, data, count: int, arguments) -> tuple[list, list]:
    """Programs and states of `count` runs that differ in seed and learning rate."""
    cls = find_method(method)
    fixed, hyper = resolve(cls, {"net": arguments.net})
    told = supervision(cls, fixed, data)
    programs, states = [], []
    for seed in range(count):
        config = {"arguments": fixed, "hyper": hyper, "seed": seed, "device": arguments.device}
        config |= {"batch": arguments.batch, "supervision": told, "precision": arguments.precision}
        config["optimizer"] = optimizer_settings(cls, 1e-4 * (1 + seed % 4), 0.0)
        built = build(cls, config, data)
        max_step = torch.tensor(10**9, device=arguments.device)
        programs.append(build_program(config, built, data)._replace(max_step=max_step))
        states.append(initial_state(built))
    return programs, states


@contextlib.contextmanager
def alone(lock: str) -> Iterator[None]:
    """One process at a time, if there is a lock."""
    with open(lock or os.devnull, "a") as file:
        if lock:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def tune_alone(lock: str) -> None:
    """Let the compiler time its kernels only while no other process does."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    timed = CachingAutotuner.benchmark_all_configs

    def locked(self: CachingAutotuner, *args: object, **kwargs: object) -> object:
        with alone(lock):
            return timed(self, *args, **kwargs)

    CachingAutotuner.benchmark_all_configs = locked


def meet(lock: str, count: int) -> None:
    """Wait until so many processes have come here."""
    folder = Path(f"{lock}.ready")
    folder.mkdir(exist_ok=True)
    (folder / str(os.getpid())).touch()
    while len(list(folder.iterdir())) < count:
        time.sleep(0.2)


def measure(method: str, data, count: int, strategy: str, arguments) -> None:
    """One line: how long a step takes, how much memory it needs."""
    cuda = arguments.device.startswith("cuda")
    if cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    engine = ("graph" if strategy != "loop" else "loop") if cuda else arguments.engine
    fleet = make_fleet(*replicas(method, data, count, arguments), strategy=strategy, engine=engine)
    ready = time.perf_counter() - began
    if arguments.wait:
        meet(arguments.lock, arguments.wait)
    with alone(arguments.lock):
        time_steps(fleet, method, count, strategy, ready, arguments)


def time_steps(fleet, method: str, count: int, strategy: str, ready: float, arguments) -> None:
    """The line itself, of a fleet that is ready to step."""
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
        f"  {method:12} {strategy:8} R={count:<4} {statistics.median(times):9.1f} us a model and step "
        f"({min(times):.1f} to {max(times):.1f}) {share} {memory} ready in {ready:.0f} s",
        flush=True,
    )
    if arguments.profile:
        profile(fleet)


def profile(fleet) -> None:
    """The kernels that take the most time."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as prof:
        fleet.run(5)
    rows = sorted(prof.key_averages(), key=lambda r: -r.device_time_total)
    total = sum(r.device_time_total for r in rows)
    for row in rows[:40]:
        time_us, share = row.device_time_total / 5, 100 * row.device_time_total / total
        print(f"    {time_us:9.1f} us {share:5.1f} %  x{row.count / 5:<4.0f} {row.key[:110]}")


def distance(one: State, other: State) -> float:
    """Norm of the difference of all parameters over their norm."""
    pairs = [(one.params[n].double(), other.params[n].double()) for n in one.params]
    return float(sum((a - b).square().sum() for a, b in pairs).sqrt() / sum(b.square().sum() for _, b in pairs).sqrt())


def parity(method: str, data, arguments) -> None:
    """After 20 steps: three replicas, trained among all, against each alone: as a fleet of one, and in the plain loop.

    Beside it what rounding alone does: the same run alone, its convolutions once as patches and once by the library.
    """
    programs, states = replicas(method, data, arguments.among, arguments)
    fleet = make_fleet(programs, states, strategy="batched", engine=arguments.engine)
    told = fleet.run(20)
    gaps, losses, matmul_precision, single = [], [], [], []
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
        matmul_precision.append(distance(ends[1], ends[0]))
        name = "loss" if "loss" in done.logs else next(iter(done.logs))
        losses.append(abs(told[k].logs[name] / done.logs[name] - 1))
    print(
        f"  {method:15} {arguments.precision} R={arguments.among}: fleet of one {max(single):.1e}, "
        f"loop {max(gaps):.1e} (its loss {max(losses):.1e}; rounding alone {max(matmul_precision):.1e})",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default="beta_tcvae")
    parser.add_argument("--data", default="sprites")
    parser.add_argument("--net", default="locatello")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--engine", default="", help="on a CPU loop or compiled; of parity loop, traced or compiled")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--replicas", default="1,4,16,64,256")
    parser.add_argument("--strategies", default="loop,batched")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--profile", action="store_true", help="list the kernels of a step")
    parser.add_argument("--parity", action="store_true", help="compare with runs trained alone instead of timing")
    parser.add_argument("--among", type=int, default=64)
    parser.add_argument("--lock", default="", help="a file that processes which are timed one at a time share")
    parser.add_argument("--wait", type=int, default=0, help="of how many processes all have to be compiled first")
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
        tune_alone(arguments.lock)
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
