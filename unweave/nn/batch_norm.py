"""Batch normalisation with explicit state: new running averages are returned, and a method passes them on in `Out`.

Shape letters: B batch, F features.
"""

import torch
from torch import Tensor, nn

from unweave.nn.precision import at_least_float32

MOMENTUM = 0.1  # weight of the newest batch in the running averages
SHARPNESS = 3.0  # initial gain of standardised logits, with which probabilities above 0.999 are possible
State = dict[str, Tensor]


class BatchNorm(nn.Module):
    """Normalise features to mean 0 and variance 1 over the batch, then scale and, with `shift`, shift them."""

    def __init__(self, features: int, *, gain: float = 1.0, shift: bool = True) -> None:
        super().__init__()
        self.mean_F, self.var_F = nn.Buffer(torch.zeros(features)), nn.Buffer(torch.ones(features))
        self.gain_F = nn.Parameter(torch.full((features,), gain))
        self.shift_F = nn.Parameter(torch.zeros(features)) if shift else None

    def batch(self, x_BF: Tensor) -> tuple[Tensor, State]:
        """Normalise with the moments of the batch; return the features and the new running averages."""
        x_BF = at_least_float32(x_BF)
        mean_F, var_F = x_BF.mean(0), x_BF.var(0, correction=0)
        state = {"mean_F": self.mean_F.lerp(mean_F, MOMENTUM), "var_F": self.var_F.lerp(var_F, MOMENTUM)}
        return self._scaled(x_BF, mean_F, var_F), {name: value.detach() for name, value in state.items()}

    def forward(self, x_BF: Tensor) -> Tensor:
        """Normalise with the running averages, so that images do not depend on each other."""
        return self._scaled(at_least_float32(x_BF), self.mean_F, self.var_F)

    def _scaled(self, x_BF: Tensor, mean_F: Tensor, var_F: Tensor) -> Tensor:
        x_BF = (x_BF - mean_F) * (var_F + 1e-5).rsqrt() * self.gain_F
        return x_BF if self.shift_F is None else x_BF + self.shift_F


class BatchNormEncoder(nn.Module):
    """An encoder whose dense layers, except the last one, are normalised before their activation if `hidden`.

    The class logits, the last `classes` of the first half of the outputs, are normalised too: then no class can take or
    lose all images. With `style`, the rest of the first half is normalised.
    """

    def __init__(self, encoder: nn.Module, *, hidden: bool = True, classes: int = 0, style: bool = False) -> None:
        super().__init__()
        assert isinstance(encoder, nn.Sequential)
        self.layers, self.classes = encoder, classes
        inner = list(encoder)[:-1] if hidden else []
        dense = {n: layer for n, layer in enumerate(inner) if isinstance(layer, nn.Linear)}
        for layer in dense.values():
            layer.register_parameter("bias", None)  # the normalisation removes it
        self.norms = nn.ModuleDict({str(n): BatchNorm(layer.out_features) for n, layer in dense.items()})
        self.last = BatchNorm(classes, gain=SHARPNESS, shift=False) if classes else None
        last = encoder[-1]
        assert isinstance(last, nn.Linear)
        self.style = BatchNorm(last.out_features // 2 - classes) if style else None

    def forward(self, x: Tensor) -> Tensor:
        return self._outputs(x, None)

    def batch(self, x: Tensor, name: str) -> tuple[Tensor, State]:
        """Return the outputs of a training batch and the new running averages, for a method that has this as `name`."""
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
        return torch.cat([at_least_float32(part) for part in parts], 1)


def _normed(norm: BatchNorm | None, name: str, x_BF: Tensor, state: State | None) -> Tensor:
    """Normalise with running averages if `state` is None; return the values unchanged if there is no norm."""
    if norm is None:
        return x_BF
    if state is None:
        return norm(x_BF)
    x_BF, new = norm.batch(x_BF)
    state |= {f"{name}.{key}": value for key, value in new.items()}
    return x_BF
