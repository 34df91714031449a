"""An encoder with two heads on one trunk: a class y by softmax and a style z, each held to a prior by its critic.

The heads are the first half of the encoder's outputs, style before class; the second half, where a variational
encoder has its variances, is not used.

Shape letters: B batch, Z style, Y classes, C channels, H height, W width.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from unweave.contract import Noise, UserError, normal, uniform
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.critic import contest
from unweave.ops.priors import one_hot_sample

SHARPNESS = 3.0  # by which standardised logits are multiplied: 10 classes or more can then be told with p > 0.999
MOMENTUM = 0.1  # the share of the newest batch in the running averages
HEAD_NOISE: dict[str, Noise] = {"prior": normal("B", "Z"), "place": uniform("B", 1)}
State = dict[str, Tensor]


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


class Standardised(nn.Module):
    """Logits standardised over the batch: no class can take, or lose, all images. Later by running averages."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.mean_Y: Tensor
        self.var_Y: Tensor
        self.register_buffer("mean_Y", torch.zeros(classes))
        self.register_buffer("var_Y", torch.ones(classes))

    def forward(self, logits_BY: Tensor, name: str) -> tuple[Tensor, State]:
        """By the batch's own moments; and the new running averages, for a method that has this as `name`."""
        mean_Y, var_Y = logits_BY.mean(0), logits_BY.var(0, correction=0)
        state = {
            f"{name}.mean_Y": self.mean_Y.lerp(mean_Y, MOMENTUM),
            f"{name}.var_Y": self.var_Y.lerp(var_Y, MOMENTUM),
        }
        return _standardised(logits_BY, mean_Y, var_Y), state

    def fixed(self, logits_BY: Tensor) -> Tensor:
        """By the running averages: what is said of an image does not depend on the others."""
        return _standardised(logits_BY, self.mean_Y, self.var_Y)


def _standardised(logits_BY: Tensor, mean_Y: Tensor, var_Y: Tensor) -> Tensor:
    return SHARPNESS * (logits_BY - mean_Y) * (var_Y + 1e-5).rsqrt()


def heads(autoencoder: AutoEncoder, x_BCHW: Tensor, classes: int, norm: Standardised | None = None) -> Heads:
    """Style and class of images, each for itself; the classes are the last coordinates."""
    both = autoencoder.posterior(x_BCHW)[0]
    style_BZ, logits_BY = both[:, :-classes], both[:, -classes:]
    return Heads(style_BZ, logits_BY if norm is None else norm.fixed(logits_BY))


def batch_heads(autoencoder: AutoEncoder, x_BCHW: Tensor, classes: int, norm: Standardised) -> tuple[Heads, State]:
    """Style and class of a batch to learn from, and the state of what a method has as `norm`."""
    found = heads(autoencoder, x_BCHW, classes)
    logits_BY, state = norm(found.logits_BY, "norm")
    return Heads(found.style_BZ, logits_BY), state


class HeadsContest(NamedTuple):
    """Both critics against the encoder."""

    critics: Tensor
    generator: Tensor
    logs: dict[str, Tensor]


def heads_contest(
    style_critic: nn.Module, class_critic: nn.Module, found: Heads, noise: dict[str, Tensor]
) -> HeadsContest:
    """The style against the standard normal distribution, the class against one-hot vectors, all equally likely."""
    style = contest(style_critic, found.style_BZ, noise["prior"])
    one_hot_BY = one_hot_sample(noise["place"][:, 0], found.logits_BY.shape[1])
    classes = contest(class_critic, found.class_BY, one_hot_BY)
    logs = {
        "style_generator": style.generator, "class_generator": classes.generator,
        "style_critic": style.critic, "class_critic": classes.critic,
        "style_critic_accuracy": style.accuracy, "class_critic_accuracy": classes.accuracy,
    }  # fmt: skip
    return HeadsContest(style.critic + classes.critic, style.generator + classes.generator, logs)


def at_least(name: str, value: int, least: int) -> int:
    if value < least:
        raise UserError(f"{name} {value} is too small; use {least} or more")
    return value
