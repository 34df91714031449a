"""Time of one training step of a single run: loop, compiled step and captured graph.

python benchmarks/speed/step.py --method beta_tcvae --device cuda --precision bf16
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from unweave.config.devices import find_device
from unweave.data import load_data
from unweave.engine.program import initial_state
from unweave.engine.replicas import make_engine
from unweave.training.build import build, build_program
from unweave.training.prepare import prepare


def seconds_per_step(runner, steps: int, repeats: int) -> list[float]:
    """Return the seconds per step of `repeats` rounds after a warm-up; `run` waits for the device."""
    runner.run(max(3, steps // 10))
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        runner.run(steps)
        times.append((time.perf_counter() - began) / steps)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default="beta_tcvae")
    parser.add_argument("--data", default="sprites")
    parser.add_argument("--net", default="locatello")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="float32,tf32,bf16")
    parser.add_argument("--engines", default="loop,compiled,graph")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--profile", action="store_true", help="print the kernels of the captured graph")
    parser.add_argument("--share", action="store_true", help="measure the time spent on drawing the batch")
    arguments = parser.parse_args()
    device = find_device(arguments.device)
    if device.startswith("cuda"):
        print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    data = load_data(arguments.data).to(device)
    print(f"{arguments.method}, {arguments.net}, batch {arguments.batch}, {arguments.data} {data.shape}, {device}")
    supervision = "pairs(k=1)" if arguments.method.startswith("ada") else "none"
    given = {"net": arguments.net, "batch": arguments.batch, "supervision": supervision}
    run = prepare(arguments.method, data, **given, device=device)
    for precision in arguments.precision.split(","):
        config = run.config.replace(precision=precision)
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = precision != "float32"
        for engine in arguments.engines.split(","):
            method = build(run.cls, config, data)
            program = build_program(config, method, data)
            began = time.perf_counter()
            runner = make_engine(program, initial_state(method), engine)
            ready = time.perf_counter() - began
            steps = arguments.steps or (2000 if engine == "graph" else 200 if device != "cpu" else 10)
            times = seconds_per_step(runner, steps, arguments.repeats)
            print(
                f"  {precision:8} {engine:9} {1e3 * statistics.median(times):8.3f} ms per step "
                f"(fastest {1e3 * min(times):.3f}, slowest {1e3 * max(times):.3f}; ready in {ready:.1f} s)",
                flush=True,
            )
            if arguments.share:
                share(program, method, engine, steps, arguments.repeats, statistics.median(times))
            if arguments.profile and engine == "graph":
                profile(runner)


def share(program, method, engine: str, steps: int, repeats: int, whole: float) -> None:
    """Print the share of a step that is spent on drawing the batch, by timing the step with a fixed batch."""
    batch = program.sample(program.seed, program.batch, *([] if program.run_seed is None else [program.run_seed]))
    given = program._replace(sample=lambda *_: batch)
    times = seconds_per_step(make_engine(given, initial_state(method), engine), steps, repeats)
    rest = statistics.median(times)
    print(f"           with a fixed batch {1e3 * rest:.3f} ms: the batch costs {100 * (whole - rest) / whole:.1f} %")


def profile(runner) -> None:
    """Print the kernels of a step that take the most time."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as record:
        runner.run(20)
    rows = sorted(record.key_averages(), key=lambda e: -e.device_time_total)
    total, count = sum(e.device_time_total for e in rows) / 20, sum(e.count for e in rows) / 20
    print(f"    {count:.0f} kernels, {total:.0f} us of kernel time per step")
    for e in rows[:45]:
        print(f"    {e.device_time_total / 20:7.1f} us  {e.count / 20:5.1f} x  {e.key[:110]}")


if __name__ == "__main__":
    main()
