"""Matrix products written the way round they are read.

The gradient of a dense layer's weights is recorded as a product and a transpose. The optimizer, which comes next, would
read that one tensor across and all its others along. The product of the transposed factors, in the other order, is the
same matrix, written along.
"""

from __future__ import annotations

import torch
from torch import fx

aten = torch.ops.aten
_PRODUCTS = {aten.mm.default, aten.bmm.default}
_KEEPS_SHAPE = {aten.view.default, aten._unsafe_view.default, aten._to_copy.default}


def transpose_matmuls(module: fx.GraphModule) -> None:
    """Replace every transpose of a product that nothing else reads."""
    graph = module.graph
    for node in list(graph.nodes):
        if not _is_transpose(node):
            continue
        chain, source = [node], node.args[0]
        while source.target in _KEEPS_SHAPE and len(source.users) == 1 and _shape(source) == _shape(source.args[0]):
            chain.append(source)
            source = source.args[0]
        if source.target not in _PRODUCTS or len(source.users) != 1:
            continue
        left, right = source.args
        with graph.inserting_before(node):
            turned = [graph.call_function(aten.transpose.int, (factor, -2, -1)) for factor in (right, left)]
            made = [graph.call_function(source.target, tuple(turned))]
            for cast in reversed([link for link in chain if link.target is aten._to_copy.default]):
                made.append(graph.call_function(cast.target, (made[-1],), dict(cast.kwargs)))
        for new in made:
            new.meta["tensor_meta"] = node.meta["tensor_meta"]  # of which only the shape is asked
        node.replace_all_uses_with(made[-1])
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
