"""Replace a transposed matrix product by the product of the transposed factors.

The gradient of a dense layer's weight is recorded as a product followed by a transpose. The optimizer would read that
one tensor column by column and all others row by row. The product of the transposed factors, in reverse order, is the
same matrix with its rows contiguous.
"""

import torch
from torch import fx

from unweave.engine.torch_private import private_names

aten = torch.ops.aten
_PRODUCTS = {aten.mm.default, aten.bmm.default}


def transpose_matmuls(module: fx.GraphModule) -> None:
    """Replace every transpose of a product that has no other use."""
    graph, to_copy = module.graph, private_names().to_copy
    keeps_shape = {aten.view.default, private_names().unsafe_view, to_copy}
    for node in list(graph.nodes):
        if not _is_transpose(node):
            continue
        chain, source = [node], node.args[0]
        while source.target in keeps_shape and len(source.users) == 1 and _shape(source) == _shape(source.args[0]):
            chain.append(source)
            source = source.args[0]
        if source.target not in _PRODUCTS or len(source.users) != 1:
            continue
        left, right = source.args
        with graph.inserting_before(node):
            factors = [graph.call_function(aten.transpose.int, (factor, -2, -1)) for factor in (right, left)]
            new = [graph.call_function(source.target, tuple(factors))]
            for cast in reversed([link for link in chain if link.target is to_copy]):
                new.append(graph.call_function(cast.target, (new[-1],), dict(cast.kwargs)))
        for replacement in new:
            replacement.meta["tensor_meta"] = node.meta["tensor_meta"]  # later passes read only its shape
        node.replace_all_uses_with(new[-1])
        for old in (*chain, source):
            graph.erase_node(old)
    module.recompile()


def _is_transpose(node: fx.Node) -> bool:
    if node.target is aten.t.default:
        return True
    if node.target is not aten.transpose.int:
        return False
    axes = {axis % len(_shape(node)) for axis in node.args[1:]}  # type: ignore[operator]
    return axes == {len(_shape(node)) - 1, len(_shape(node)) - 2}


def _shape(node: fx.Node) -> torch.Size:
    return node.meta["tensor_meta"].shape
