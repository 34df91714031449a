"""Every method for a few steps by the loop and by the captured graph: do they end in the same weights?

python benchmarks/reliability/parity.py --device cuda
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import torch

from unweave.config import resolve
from unweave.contract import Method, is_supervised, select_arguments, stages
from unweave.data import Dataset, load_data
from unweave.data.supervision.specs import example_supervision
from unweave.engine.program import initial_state
from unweave.methods import METHODS
from unweave.training.build import build, build_program, find_device, make_engine, optimizer_settings


def supervision(cls: type[Method], fixed: dict[str, Any], data: Dataset) -> str:
    """What the method has to be told; of labels those of one factor, which every such method takes."""
    needs = tuple(field for stage in stages(cls) for field in stage.needs)
    if not is_supervised(needs):
        needs = cls(data.info, **select_arguments(cls, fixed)).needs  # type: ignore[call-arg]
    if "labels" in needs:
        return f"labels(n=100, factors=['{data.factor_names[0]}'])"
    return example_supervision(needs, data) if is_supervised(needs) else "none"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--methods", default=",".join(METHODS))
    arguments = parser.parse_args()
    device = find_device(arguments.device)
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    data = load_data("rooms(size=16)").to(device)
    worst = 0.0
    for name, cls in ((name, METHODS[name]) for name in arguments.methods.split(",")):
        fixed, hyper = resolve(cls, {"net": "small", "latents": 4})
        config = {"arguments": fixed, "hyper": hyper, "seed": 0, "device": device, "batch": 16, "precision": "float32"}
        config |= {"optimizer": optimizer_settings(cls, 1e-4, 0.0)}
        config["supervision"] = supervision(cls, fixed, data)
        method = build(cls, config, data)
        program = build_program(config, method, data)
        runners = [make_engine(program, initial_state(method), engine) for engine in ("loop", "graph")]
        for runner in runners:
            runner.run(arguments.steps)
        a, b = (runner.state.params for runner in runners)
        gap = max(float((a[n] - b[n]).abs().max()) for n in a)
        worst = max(worst, gap)
        print(f"{name:14} largest difference of a weight after {arguments.steps} steps: {gap:.1e}", flush=True)
    print(f"largest of all: {worst:.1e} on {device}")
    sys.exit(worst > 1e-4)


if __name__ == "__main__":
    main()
