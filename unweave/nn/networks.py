"""Published encoders and decoders, named after their authors.

An encoder maps images [B, C, H, W] to 2 Z numbers, a decoder maps codes [B, Z] to outputs of the shape of an image.
Initial weights are Glorot-uniform and biases zero, as in Locatello et al. 2019, unless `weight_init` is in effect.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from torch import nn

from unweave.errors import check_choice, check_integer, invalid, to_number
from unweave.nn.conv import ConvStack, DownConv2d, UpConv2d

Shape = tuple[int, int, int]


def _chain(sizes: Sequence[int], activation: Callable[[], nn.Module]) -> list[nn.Module]:
    """Return linear layers between the sizes, each followed by the activation."""
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), activation()]
    return layers


class Plan(NamedTuple):
    """A convolutional encoder and decoder."""

    channels: tuple[int, ...]  # of the encoder's stride-2 convolutions
    kernels: tuple[int, ...]
    up: tuple[int, ...]  # channels of the decoder's transposed convolutions, before the image
    dense: tuple[int, ...]  # hidden dense layers of the encoder, in reverse order those of the decoder
    dense_relu: bool = True  # ReLU after the encoder's dense layers


PLANS = {
    # Locatello et al. 2019, appendix: the most common network
    "locatello": Plan((32, 32, 64, 64), (4, 4, 2, 2), (64, 32, 32), (256,)),
    # Burgess et al. 2018: "Understanding disentangling in beta-VAE"
    "burgess": Plan((32, 32, 32, 32), (4, 4, 4, 4), (32, 32, 32), (256, 256)),
    # Kim & Mnih 2018, appendix; the dense layer of the encoder has no activation
    "kim": Plan((32, 32, 64, 64), (4, 4, 4, 4), (64, 32, 32), (128,), dense_relu=False),
    # ours, for experiments on a CPU
    "small": Plan((16, 32, 32), (4, 4, 4), (32, 16), (128,)),
}


def _conv(plan: Plan, shape: Shape, latents: int) -> tuple[nn.Module, nn.Module]:
    channels, height, width = shape
    halvings = len(plan.channels)
    side = (height >> halvings, width >> halvings)
    features = plan.channels[-1] * side[0] * side[1]
    down = ConvStack(
        *(
            DownConv2d(before, after, kernel, relu=True)
            for before, after, kernel in zip((channels, *plan.channels), plan.channels, plan.kernels, strict=False)
        )
    )
    inner = _chain((features, *plan.dense), nn.ReLU if plan.dense_relu else nn.Identity)
    encoder = [down, nn.Flatten(), *inner, nn.Linear(plan.dense[-1], 2 * latents)]
    widths = (plan.channels[-1], *plan.up)
    up = ConvStack(*(UpConv2d(*pair, relu=True) for pair in pairwise(widths)), UpConv2d(widths[-1], channels))
    dense = _chain((latents, *plan.dense[::-1], features), nn.ReLU)
    decoder = [*dense, nn.Unflatten(1, (plan.channels[-1], *side)), up]
    return nn.Sequential(*encoder), nn.Sequential(*decoder)


def _dense(
    shape: Shape, latents: int, *, width: int, activations: Sequence[Callable[[], nn.Module]], decoder_depth: int = 2
) -> tuple[nn.Module, nn.Module]:
    """Return an encoder with two hidden layers and a decoder, each with an activation of its own."""
    pixels = math.prod(shape)
    encoder = [nn.Flatten(), *_chain((pixels, width, width), activations[0]), nn.Linear(width, 2 * latents)]
    hidden = _chain((latents, *[width] * decoder_depth), activations[1])
    return nn.Sequential(*encoder), nn.Sequential(*hidden, nn.Linear(width, pixels), nn.Unflatten(1, shape))


DENSE: dict[str, Callable[[Shape, int], tuple[nn.Module, nn.Module]]] = {
    # Chen et al. 2018
    "mlp": partial(_dense, width=1200, activations=(nn.ReLU, nn.Tanh), decoder_depth=3),
    # After Makhzani et al. 2015
    "makhzani": partial(_dense, width=1000, activations=(nn.ReLU, nn.ReLU)),
    # Kingma et al. 2014, M1
    "kingma": partial(_dense, width=600, activations=(nn.Softplus, nn.Softplus)),
}
NETWORKS = (*PLANS, *DENSE)
GLOROT = "glorot"


@dataclass
class WeightInit:
    """Initial weights: normal with this standard deviation, or Glorot-uniform; and whether a module used it."""

    deviation: float | None = None
    used: bool = False


_MAX_DEVIATION = 1e30  # the weights are float32
_init: ContextVar[WeightInit | None] = ContextVar("init", default=None)


@contextmanager
def weight_init(init: str) -> Iterator[WeightInit]:
    """Initialise the weights of networks built in this block by glorot, or normal(S) with a standard deviation S."""
    chosen = WeightInit(None if init.strip() == GLOROT else _read_deviation(init))
    before = _init.set(chosen)
    try:
        yield chosen
    finally:
        _init.reset(before)


def _read_deviation(init: str) -> float:
    match = re.fullmatch(r"normal\(([^()]*)\)", init.strip())
    deviation = to_number(match[1]) if match else None
    if deviation is None or not 0 < deviation <= _MAX_DEVIATION:
        raise invalid("init", init, "glorot, or normal(S) with a standard deviation S > 0 such as normal(0.02)")
    return deviation


def init_weights(module: nn.Module) -> None:
    """Set the initial weights and zero biases of every linear and convolutional layer of the module."""
    init = _init.get() or WeightInit()
    init.used = True
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            if init.deviation is None:
                nn.init.xavier_uniform_(part.weight)
            else:
                nn.init.normal_(part.weight, std=init.deviation)
            if part.bias is not None:
                nn.init.zeros_(part.bias)


def build_networks(net: str, shape: Shape, latents: int) -> tuple[nn.Module, nn.Module]:
    """Return the encoder and the decoder of this name for images of this shape."""
    check_choice("net", net, NETWORKS)
    check_integer("latents", latents, 1)
    if net in PLANS:
        multiple = 2 ** len(PLANS[net].channels)
        if shape[1] % multiple or shape[2] % multiple:
            accepted = f"one of {', '.join(DENSE)} for images of {shape[1]}x{shape[2]} pixels"
            raise invalid("net", net, accepted, hint=f"it needs sides that are multiples of {multiple}")
    pair = _conv(PLANS[net], shape, latents) if net in PLANS else DENSE[net](shape, latents)
    for part in pair:
        init_weights(part)
    return pair
