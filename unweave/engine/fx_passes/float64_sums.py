"""Compute sums in float64, so that a model does not depend on the models it is trained with.

A library or a compiler chooses the order of a sum by the size of the whole fleet. In float32 this changes the last
bit, which ReLUs and Adam amplify to the third digit within twenty steps. A sum in float64, rounded once, is the same in
every order.
"""

import torch
from torch import fx

from unweave.engine.torch_private import private_names

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


def sum_in_float64(module: fx.GraphModule) -> None:
    """Compute every sum of float32 numbers in a recorded step in float64."""
    graph, to_copy = module.graph, private_names().to_copy
    for node in list(graph.nodes):
        if node.target not in _SUMS or node.meta["tensor_meta"].dtype != torch.float32:
            continue
        with graph.inserting_before(node):
            wide = graph.call_function(to_copy, (node.args[0],), {"dtype": torch.float64})
        kept = {name: value for name, value in node.kwargs.items() if name != "dtype"}
        node.args, node.kwargs = (wide, *node.args[1:]), kept
        with graph.inserting_after(node):
            single = graph.call_function(to_copy, (node,), {"dtype": torch.float32})
        node.replace_all_uses_with(single, delete_user_cb=lambda user, single=single: user is not single)
        single.meta["tensor_meta"] = node.meta["tensor_meta"]
    module.recompile()
