"""Divergences by a critic that tells codes from samples of the prior.

The critic's answer is the log-odds r = log q(z) / p(z) of being a code. Shape letter: B batch.
"""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor

# What the maker of the codes minimises, by name, and what its mean is at r = log q / p.
GENERATOR_LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "non_saturating": F.softplus,  # -log D(z), D the chance of being from the prior: strong where the critic is sure
    "minimax": F.logsigmoid,  # log(1 - D(z)): 2 JS(q || p) - log 4, less a part that does not depend on the encoder
    "ratio": lambda ratio_B: ratio_B,  # log q(z) / p(z): KL(q || p)
}


def discriminator_loss(code_B: Tensor, prior_B: Tensor) -> tuple[Tensor, Tensor]:
    """Cross-entropy of telling codes from prior samples, log 2 - JS at best, and the share that is told rightly."""
    loss_B = 0.5 * (F.softplus(-code_B) + F.softplus(prior_B))
    right_B = 0.5 * ((code_B > 0).float() + (prior_B < 0).float())
    return loss_B.mean(), right_B.mean()
