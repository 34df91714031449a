"""An encoder whose layers are normalised over the batch: as it learns by the batch, later by running averages.

The running averages are returned, not written: a method gives them back as its new state.

Shape letters: B batch, F features.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unweave.nn.precision import at_least_single

MOMENTUM = 0.1  # the share of the newest batch in the running averages
SHARPNESS = 3.0  # of standardised logits at the start: 10 classes or more can then be told with p > 0.999
State = dict[str, Tensor]


class BatchNorm(nn.Module):
    """Features with mean 0 and variance 1 over the batch, then scaled and, with `shift`, shifted as learned."""

    def __init__(self, features: int, *, gain: float = 1.0, shift: bool = True) -> None:
        super().__init__()
        self.mean_F: Tensor
        self.var_F: Tensor
        self.register_buffer("mean_F", torch.zeros(features))
        self.register_buffer("var_F", torch.ones(features))
        self.gain_F = nn.Parameter(torch.full((features,), gain))
        self.shift_F = nn.Parameter(torch.zeros(features)) if shift else None

    def batch(self, x_BF: Tensor) -> tuple[Tensor, State]:
        """By the batch's own moments; and the new running averages."""
        x_BF = at_least_single(x_BF)
        mean_F, var_F = x_BF.mean(0), x_BF.var(0, correction=0)
        state = {"mean_F": self.mean_F.lerp(mean_F, MOMENTUM), "var_F": self.var_F.lerp(var_F, MOMENTUM)}
        return self._scaled(x_BF, mean_F, var_F), {name: value.detach() for name, value in state.items()}

    def forward(self, x_BF: Tensor) -> Tensor:
        """By the running averages: what is said of an image does not depend on the others."""
        return self._scaled(at_least_single(x_BF), self.mean_F, self.var_F)

    def _scaled(self, x_BF: Tensor, mean_F: Tensor, var_F: Tensor) -> Tensor:
        x_BF = (x_BF - mean_F) * (var_F + 1e-5).rsqrt() * self.gain_F
        return x_BF if self.shift_F is None else x_BF + self.shift_F


class BatchNormEncoder(nn.Module):
    """An encoder with every dense layer but the last normalised before its activation, if `hidden`.

    Of the last layer's outputs the logits of `classes`, the last of the first half, are, if there are any:
    standardised, no class can take, or lose, all images. With `style` so are the others of the first half.
    """

    def __init__(self, encoder: nn.Module, *, hidden: bool = True, classes: int = 0, style: bool = False) -> None:
        super().__init__()
        assert isinstance(encoder, nn.Sequential)
        self.layers, self.classes = encoder, classes
        inner = list(encoder)[:-1] if hidden else []
        dense = {n: layer for n, layer in enumerate(inner) if isinstance(layer, nn.Linear)}
        for layer in dense.values():
            layer.register_parameter("bias", None)  # it would be taken away again, and its gradient is rounding alone
        self.norms = nn.ModuleDict({str(n): BatchNorm(layer.out_features) for n, layer in dense.items()})
        self.last = BatchNorm(classes, gain=SHARPNESS, shift=False) if classes else None
        last = encoder[-1]
        assert isinstance(last, nn.Linear)
        self.style = BatchNorm(last.out_features // 2 - classes) if style else None

    def forward(self, x: Tensor) -> Tensor:
        return self._outputs(x, None)

    def batch(self, x: Tensor, name: str) -> tuple[Tensor, State]:
        """Outputs for a batch to learn from; and the new running averages, for a method that has this as `name`."""
        state: State = {}
        return self._outputs(x, state), {f"{name}.{key}": value for key, value in state.items()}

    def _outputs(self, x: Tensor, state: State | None) -> Tensor:
        for n, layer in enumerate(self.layers):
            x = layer(x)
            if str(n) in self.norms:
                x = _normed(self.norms[str(n)], f"norms.{n}", x, state)  # type: ignore[arg-type]
        if self.last is None and self.style is None:
            return x
        half = x.shape[1] // 2
        style, logits, rest = x.split([half - self.classes, self.classes, x.shape[1] - half], dim=1)
        parts = [_normed(self.style, "style", style, state), _normed(self.last, "last", logits, state), rest]
        return torch.cat([at_least_single(part) for part in parts], 1)


def _normed(norm: BatchNorm | None, name: str, x_BF: Tensor, state: State | None) -> Tensor:
    """By running averages where no state is asked for; as they are without a norm."""
    if norm is None:
        return x_BF
    if state is None:
        return norm(x_BF)
    x_BF, new = norm.batch(x_BF)
    state |= {f"{name}.{key}": value for key, value in new.items()}
    return x_BF
