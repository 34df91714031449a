"""Divergences estimated by a discriminator of codes and prior samples.

Its output is the log-odds r = log q(z) / p(z) of being a code. Shape letter: B batch.
"""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor

# Losses of the encoder; the comments give their means at the optimal discriminator r = log q / p.
GENERATOR_LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "non_saturating": F.softplus,  # -log D(z), D the probability of being from the prior
    "minimax": F.logsigmoid,  # log(1 - D(z)): 2 JS(q || p) - log 4, up to a term independent of the encoder
    "ratio": lambda ratio_B: ratio_B,  # log q(z) / p(z): KL(q || p)
}


def discriminator_loss(code_B: Tensor, prior_B: Tensor) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy of classifying codes and prior samples, log 2 - JS at best, and the accuracy."""
    loss_B = 0.5 * (F.softplus(-code_B) + F.softplus(prior_B))
    correct_B = 0.5 * ((code_B > 0).float() + (prior_B < 0).float())
    return loss_B.mean(), correct_B.mean()
