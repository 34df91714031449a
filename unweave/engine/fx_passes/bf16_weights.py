"""Keep a bfloat16 copy of each wide weight from step to step.

A step in bf16 reads every weight in float32 and rounds it before the product. With the wide layers of FactorVAE's
discriminator that took 7 of the 155 us of a step (benchmarks/speed/fleet_h200_2026-11-15.md). The optimizer writes the
rounded copy together with the new weight, and the next step reads the copy. The results are equal to the last bit.
"""

from typing import Any

import torch
from torch import Tensor, fx

from unweave.engine.torch_private import private_names

aten = torch.ops.aten
_WIDE = 1 << 18  # number of elements (of all replicas together) from which a weight has a copy
_VIEWS = (aten.detach.default, aten.transpose.int, aten.permute.default, aten.t.default, aten.alias.default)


def is_wide(tensor: Tensor) -> bool:
    """Return True if a bfloat16 copy of the tensor saves time."""
    return tensor.dtype == torch.float32 and tensor.numel() >= _WIDE


def update_copies(inputs: list[Tensor], copies: dict[int, int]) -> None:
    """Set the bfloat16 copies after the weights were set from outside."""
    for weight, copy in copies.items():
        inputs[copy].copy_(inputs[weight])


def carry_bf16_weights(module: fx.GraphModule, copies: dict[int, int]) -> None:
    """Let a recorded step read bfloat16 copies, and write them wherever it writes the weight.

    `copies` maps the index of a weight among the inputs to that of its copy.
    """
    to_copy = private_names().to_copy
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    by_weight = {inputs[weight]: inputs[copy] for weight, copy in copies.items()}
    for node in list(module.graph.nodes):
        if node.op != "call_function":
            continue
        if node.target is to_copy and node.kwargs.get("dtype") is torch.bfloat16:
            _read_copy(module.graph, node, by_weight)
        elif node.target is aten.copy_.default and node.args[0] in by_weight:
            with module.graph.inserting_before(node):
                rounded = module.graph.call_function(to_copy, (node.args[1],), {"dtype": torch.bfloat16})
                module.graph.call_function(aten.copy_.default, (by_weight[node.args[0]], rounded))
    module.graph.lint()
    module.recompile()


def _read_copy(graph: fx.Graph, cast: fx.Node, by_weight: dict[fx.Node, fx.Node]) -> None:
    """Replace the cast of a weight, or of a view of it, by the same view of its copy."""
    views: list[fx.Node] = []
    source: Any = cast.args[0]
    while source.target in _VIEWS:
        views.append(source)
        source = source.args[0]
    if source not in by_weight:
        return
    value = by_weight[source]
    with graph.inserting_before(cast):
        for view in reversed(views):
            value = graph.call_function(view.target, (value, *view.args[1:]), dict(view.kwargs))  # type: ignore[arg-type]
    cast.replace_all_uses_with(value)
    graph.erase_node(cast)
