"""Sums that do not depend on who is trained beside a model.

A library or a compiler adds up in an order that suits the size of the whole fleet. In float32 that is a difference in
the last bit, of which ReLUs and Adam make one in the third digit within twenty steps. Added up in double precision and
rounded once, a model's sums are the same in every order.
"""

from __future__ import annotations

import torch
from torch import fx

aten = torch.ops.aten
_SUMS = {
    aten.sum.default,
    aten.sum.dim_IntList,
    aten.mean.default,
    aten.mean.dim,
    aten.var.correction,
    aten.logsumexp.default,
    aten.linalg_vector_norm.default,
}


def exact_sums(module: fx.GraphModule) -> None:
    """Let every sum of float32 numbers in a recorded step be made in double."""
    graph = module.graph
    for node in list(graph.nodes):
        if node.target not in _SUMS or node.meta["tensor_meta"].dtype != torch.float32:
            continue
        with graph.inserting_before(node):
            wide = graph.call_function(aten._to_copy.default, (node.args[0],), {"dtype": torch.float64})
        kept = {name: value for name, value in node.kwargs.items() if name != "dtype"}
        node.args, node.kwargs = (wide, *node.args[1:]), kept
        with graph.inserting_after(node):
            single = graph.call_function(aten._to_copy.default, (node,), {"dtype": torch.float32})
        node.replace_all_uses_with(single, delete_user_cb=lambda user, single=single: user is not single)
        single.meta["tensor_meta"] = node.meta["tensor_meta"]
    module.recompile()
