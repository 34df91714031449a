"""Weights in half precision, kept beside the full ones from step to step.

A step in bf16 reads every weight in full and writes its half before it multiplies. With the wide layers of FactorVAE's
discriminator that was 7 of 155 us of a step (benchmarks/speed/fleet_h200_2026-11-15.md). The optimizer has the
new weight at hand when it moves it: the half is written there and then, and the next step starts from it. The numbers
are the same to the last bit.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, fx

aten = torch.ops.aten
_WIDE = 1 << 18  # numbers in a weight (of all replicas together) from which the half is kept
_VIEWS = (aten.detach.default, aten.transpose.int, aten.permute.default, aten.t.default, aten.alias.default)


def is_wide(tensor: Tensor) -> bool:
    """Whether the half is worth keeping."""
    return tensor.dtype == torch.float32 and tensor.numel() >= _WIDE


def refresh(inputs: list[Tensor], halves: dict[int, int]) -> None:
    """Make the halves those of the full weights, after these were set from outside."""
    for full, half in halves.items():
        inputs[half].copy_(inputs[full])


def carry_bf16_weights(module: fx.GraphModule, halves: dict[int, int]) -> None:
    """Let a recorded step read the half of input `full` from input `half`, and write it where it moves the full one.

    `halves` maps the number of each full input to that of its half.
    """
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    by_full = {inputs[full]: inputs[half] for full, half in halves.items()}
    for node in list(module.graph.nodes):
        if node.op != "call_function":
            continue
        if node.target is aten._to_copy.default and node.kwargs.get("dtype") is torch.bfloat16:
            _read(module.graph, node, by_full)
        elif node.target is aten.copy_.default and node.args[0] in by_full:
            with module.graph.inserting_before(node):
                half = module.graph.call_function(aten._to_copy.default, (node.args[1],), {"dtype": torch.bfloat16})
                module.graph.call_function(aten.copy_.default, (by_full[node.args[0]], half))
    module.graph.lint()
    module.recompile()


def _read(graph: fx.Graph, cast: fx.Node, by_full: dict[fx.Node, fx.Node]) -> None:
    """Replace a cast of a weight, seen from whichever side, by the same view of its half."""
    views: list[fx.Node] = []
    source: Any = cast.args[0]
    while source.target in _VIEWS:
        views.append(source)
        source = source.args[0]
    if source not in by_full:
        return
    value = by_full[source]
    with graph.inserting_before(cast):
        for view in reversed(views):
            value = graph.call_function(view.target, (value, *view.args[1:]), dict(view.kwargs))  # type: ignore[arg-type]
    cast.replace_all_uses_with(value)
    graph.erase_node(cast)
