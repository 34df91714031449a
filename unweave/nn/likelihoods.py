"""Likelihoods p(x|z): distributions of an image given the decoder's output, independent over pixels."""

import math
from typing import ClassVar, final

import torch.nn.functional as F
from torch import Tensor

from unweave.errors import check_choice
from unweave.nn.precision import at_least_float32
from unweave.ops.noise import random_uniform
from unweave.ops.partial_labels import binary_sample


class Likelihood:
    """Interface of all likelihoods: final classes derive from it and have no state."""

    help: ClassVar[str]  # for the help text of the setting `likelihood`
    low: ClassVar[float] = -math.inf  # smallest and largest value that an image may contain
    high: ClassVar[float] = math.inf

    def pixel_nll(self, x: Tensor, output: Tensor) -> Tensor:
        """Return -log p(x|output) of each pixel in nats."""
        raise NotImplementedError

    def nll(self, x: Tensor, output: Tensor) -> Tensor:
        """Return -log p(x|output) [B] in nats, summed over pixels and channels."""
        return self.pixel_nll(x, at_least_float32(output)).flatten(1).sum(1)

    def mean(self, output: Tensor) -> Tensor:
        """Return the mean image."""
        return at_least_float32(output)

    def observed(self, x: Tensor, key: Tensor) -> Tensor:
        """Return values that the distribution can produce, drawn by a random key if the image's own are not."""
        return x


@final
class Bernoulli(Likelihood):
    """The output is the logit of a white pixel. The loss also accepts grey values as probabilities of white."""

    help = "cross-entropy of values in 0..1"
    low, high = 0.0, 1.0

    def pixel_nll(self, x: Tensor, output: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(output, x, reduction="none")

    def mean(self, output: Tensor) -> Tensor:
        return at_least_float32(output).sigmoid()

    def observed(self, x: Tensor, key: Tensor) -> Tensor:
        return binary_sample(x, random_uniform(key, tuple(x.shape)))


@final
class Gaussian(Likelihood):
    """Normal distribution with standard deviation 1 around the output."""

    help = "squared error"

    def pixel_nll(self, x: Tensor, output: Tensor) -> Tensor:
        return 0.5 * (x - output).square() + 0.5 * math.log(2.0 * math.pi)


@final
class Laplace(Likelihood):
    """Laplace distribution with scale 1 around the output."""

    help = "absolute error"

    def pixel_nll(self, x: Tensor, output: Tensor) -> Tensor:
        return (x - output).abs() + math.log(2.0)


LIKELIHOODS: dict[str, type[Likelihood]] = {
    "bernoulli": Bernoulli,
    "gaussian": Gaussian,
    "laplace": Laplace,
}


def find_likelihood(name: str) -> Likelihood:
    """Return the likelihood of this name."""
    check_choice("likelihood", name, LIKELIHOODS)
    return LIKELIHOODS[name]()
