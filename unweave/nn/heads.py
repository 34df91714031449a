"""An encoder with two heads on one trunk: a class y by softmax and a style z, each held to a prior by its critic.

The heads are the first half of the encoder's outputs, style before class; the second half, where a variational
encoder has its variances, is not used.

Shape letters: B batch, Z style, Y classes, C channels, H height, W width.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from unweave.contract import Noise, normal, uniform
from unweave.errors import UserError
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.batch_norm import BatchNormEncoder, State
from unweave.nn.discriminator import adversarial_losses
from unweave.nn.precision import at_least_single
from unweave.ops.priors import one_hot_sample

HEAD_NOISE: dict[str, Noise] = {"prior": normal("B", "Z"), "place": uniform("B", 1)}


class Heads(NamedTuple):
    """What the encoder says of images."""

    style_BZ: Tensor
    logits_BY: Tensor  # of the class

    @property
    def class_BY(self) -> Tensor:
        return self.logits_BY.softmax(1)

    @property
    def code(self) -> Tensor:
        """Style, then the probabilities of the classes [B, Z + Y]."""
        return torch.cat([self.style_BZ, self.class_BY], 1)


def heads(autoencoder: AutoEncoder, x_BCHW: Tensor, classes: int) -> Heads:
    """Style and class of images, each for itself; the classes are the last coordinates."""
    return _split(autoencoder.posterior(x_BCHW)[0], classes)


def batch_heads(autoencoder: AutoEncoder, x_BCHW: Tensor, classes: int) -> tuple[Heads, State]:
    """Style and class of a batch to learn from, and the new running averages of its encoder, a NormedEncoder."""
    assert isinstance(autoencoder.encoder, BatchNormEncoder)
    outputs, state = autoencoder.encoder.batch(x_BCHW, "autoencoder.encoder")
    return _split(at_least_single(outputs).chunk(2, dim=1)[0], classes), state


def _split(both: Tensor, classes: int) -> Heads:
    return Heads(both[:, :-classes], both[:, -classes:])


class HeadsAdversarialLosses(NamedTuple):
    """Both critics against the encoder."""

    discriminators: Tensor
    generator: Tensor
    logs: dict[str, Tensor]


def heads_adversarial_losses(
    style_discriminator: nn.Module,
    class_discriminator: nn.Module,
    found: Heads,
    noise: dict[str, Tensor],
    class_weight: Tensor | float = 1.0,
) -> HeadsAdversarialLosses:
    """The style against the standard normal distribution, the class against one-hot vectors, all equally likely.

    `class_weight` is of the encoder's loss in the second; the critics do not know it.
    """
    style = adversarial_losses(style_discriminator, found.style_BZ, noise["prior"])
    one_hot_BY = one_hot_sample(noise["place"][:, 0], found.logits_BY.shape[1])
    classes = adversarial_losses(class_discriminator, found.class_BY, one_hot_BY)
    logs = {
        "style_generator": style.generator, "class_generator": classes.generator,
        "style_discriminator": style.discriminator, "class_discriminator": classes.discriminator,
        "style_discriminator_accuracy": style.accuracy, "class_discriminator_accuracy": classes.accuracy,
    }  # fmt: skip
    return HeadsAdversarialLosses(
        style.discriminator + classes.discriminator, style.generator + class_weight * classes.generator, logs
    )


def check_minimum(name: str, value: int, least: int) -> int:
    if value < least:
        raise UserError(f"{name} {value} is too small; use {least} or more")
    return value
