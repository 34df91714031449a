"""An encoder with two heads: a class y by softmax and a style z, each matched with a prior by its own discriminator.

The heads are the first half of the encoder's outputs, style before class. The second half, which contains the variances
of a variational encoder, is not used.

Shape letters: B batch, Z style, Y classes, C channels, H height, W width.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from unweave.contract import Noise, Out, normal, uniform
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.batch_norm import BatchNormEncoder, State
from unweave.nn.discriminator import adversarial_losses
from unweave.nn.precision import at_least_float32
from unweave.ops.partial_labels import cross_entropy, zero_one_loss
from unweave.ops.priors import one_hot_sample

HEAD_NOISE: dict[str, Noise] = {"prior": normal("B", "Z"), "place": uniform("B", 1)}


class Heads(NamedTuple):
    """Outputs of the encoder."""

    style_BZ: Tensor
    logits_BY: Tensor  # of the class

    @property
    def class_BY(self) -> Tensor:
        return self.logits_BY.softmax(1)

    @property
    def code(self) -> Tensor:
        """The style and the class probabilities [B, Z + Y]."""
        return torch.cat([self.style_BZ, self.class_BY], 1)


def heads(autoencoder: AutoEncoder, x_BCHW: Tensor, classes: int) -> Heads:
    """Return style and class of images; batch normalisation uses its running averages."""
    return _split(autoencoder.posterior(x_BCHW)[0], classes)


def batch_heads(autoencoder: AutoEncoder, x_BCHW: Tensor, classes: int) -> tuple[Heads, State]:
    """Return style and class of a training batch, and the new running averages of its encoder."""
    assert isinstance(autoencoder.encoder, BatchNormEncoder)
    outputs, state = autoencoder.encoder.batch(x_BCHW, "autoencoder.encoder")
    return _split(at_least_float32(outputs).chunk(2, dim=1)[0], classes), state


def _split(both: Tensor, classes: int) -> Heads:
    return Heads(both[:, :-classes], both[:, -classes:])


def heads_adversarial_losses(
    discriminators: tuple[nn.Module, nn.Module],
    found: Heads,
    noise: dict[str, Tensor],
    class_weight: Tensor | float = 1.0,
) -> Out:
    """Return the losses of the players "discriminators" and "encoder".

    The style is compared with N(0, I), the class with uniformly drawn one-hot vectors. `class_weight` is the weight of
    the encoder's loss against the class discriminator.
    """
    style = adversarial_losses(discriminators[0], found.style_BZ, noise["prior"])
    one_hot_BY = one_hot_sample(noise["place"][:, 0], found.logits_BY.shape[1])
    classes = adversarial_losses(discriminators[1], found.class_BY, one_hot_BY)
    logs = {
        "style_generator": style.generator, "class_generator": classes.generator,
        "style_discriminator": style.discriminator, "class_discriminator": classes.discriminator,
        "style_discriminator_accuracy": style.accuracy, "class_discriminator_accuracy": classes.accuracy,
    }  # fmt: skip
    generator = style.generator + class_weight * classes.generator
    return Out({"discriminators": style.discriminator + classes.discriminator, "encoder": generator}, logs)


def classification_loss(found: Heads, labels_BL: Tensor) -> Out:
    """Return the loss of the player "classifier" on labelled images with one label each."""
    entropy = cross_entropy(found.logits_BY, labels_BL[:, 0]).mean()
    accuracy = 1.0 - zero_one_loss(found.logits_BY, labels_BL[:, 0]).mean()
    return Out({"classifier": entropy}, {"cross_entropy": entropy, "accuracy": accuracy})
