"""Train every method for a few steps with the loop and with the captured graph; compare the weights.

python benchmarks/reliability/parity.py --device cuda
"""

from __future__ import annotations

import argparse
import sys

import torch

from unweave.config import resolve_settings
from unweave.config.devices import find_device
from unweave.contract import is_supervised, stages, static_arguments
from unweave.data import Dataset, load_data
from unweave.data.supervision.parse import example_supervision
from unweave.engine.program import initial_state
from unweave.engine.replicas import make_engine
from unweave.methods import METHODS
from unweave.training.build import build, build_program
from unweave.training.prepare import prepare


def supervision(name: str, data: Dataset, **settings: object) -> str:
    """Return a supervision that the method accepts; labels are those of one factor, which every method accepts."""
    cls = METHODS[name]
    arguments = resolve_settings(cls, settings)[0]
    needs = tuple(field for stage in stages(cls) for field in stage.needs)
    if not is_supervised(needs):
        accepted = {name: arguments[name] for name in static_arguments(cls) if name in arguments}
        needs = cls(data.info, **accepted).needs  # type: ignore[call-arg]
    if "labels" in needs:
        return f"labels(n=100, factors=['{data.factor_names[0]}'])"
    return example_supervision(needs, data) if is_supervised(needs) else "none"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--methods", default=",".join(METHODS))
    options = parser.parse_args()
    device = find_device(options.device)
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    data = load_data("rooms(size=16)").to(device)
    worst = 0.0
    for name in options.methods.split(","):
        settings = {"net": "small", "latents": 4}
        text = supervision(name, data, **settings)
        run = prepare(name, data, **settings, device=device, batch=16, lr=1e-4, supervision=text)
        method = build(run.cls, run.config, data)
        program = build_program(run.config, method, data)
        runners = [make_engine(program, initial_state(method), engine) for engine in ("loop", "graph")]
        for runner in runners:
            runner.run(options.steps)
        a, b = (runner.state.params for runner in runners)
        gap = max(float((a[n] - b[n]).abs().max()) for n in a)
        worst = max(worst, gap)
        print(f"{name:14} largest difference of a weight after {options.steps} steps: {gap:.1e}", flush=True)
    print(f"largest of all: {worst:.1e} on {device}")
    sys.exit(worst > 1e-4)


if __name__ == "__main__":
    main()
