"""Marginal likelihood of held-out images, by annealed importance sampling that starts at the posterior.

Shape letters: N observations, B chains, Z latents, C channels, H height, W width.
"""

import math

import torch
from torch import Tensor

from unweave.contract import Representation
from unweave.data import Dataset
from unweave.errors import invalid, renamed_arguments
from unweave.evaluation.codes import sample_indices
from unweave.model import TrainedModel
from unweave.nn.autoencoder import AutoEncoder
from unweave.ops.annealed import annealed_log_weights
from unweave.ops.noise import fold

_CHUNK = 4096  # chains in one call of a network
_MIN_DEVIATION = 0.05  # smallest standard deviation of the starting points
_DEVIATION = 0.5  # standard deviation of the starting points without a posterior


@renamed_arguments(rows="num_samples")
def marginal_nll(
    run: TrainedModel, data: Dataset, *, num_samples: int = 1000, chains: int = 4, steps: int = 100, seed: int = 0
) -> Tensor:
    """Return -log p(x) [N] in nats for `num_samples` observations, which should not be training data.

    The chains of an image start around its code, with twice the standard deviation of the posterior. The estimate is an
    upper bound in expectation, which decreases with the number of chains and steps. For a Bernoulli likelihood, grey
    pixels are binarised at random with the seed.
    """
    model = _autoencoder(run)
    device = next(model.parameters()).device
    data, key = data.to(device), fold(torch.tensor(seed, device=device), "evidence")
    found = []
    for part, index_B in enumerate(sample_indices(data, num_samples, seed).split(max(1, _CHUNK // chains))):
        images = model.likelihood.observed(data.images(index_B), fold(fold(key, "pixels"), part))
        mean_BZ, spread_BZ = _initial_distribution(run.representation, images)
        found.append(_log_marginal_likelihood(model, images, mean_BZ, spread_BZ, fold(key, part), chains, steps))
    return -torch.cat(found)


def _autoencoder(run: TrainedModel) -> AutoEncoder:
    """Return the autoencoder of a method with the prior N(0, I) over the whole code."""
    model, representation = dict(run.method.named_children()).get("autoencoder"), run.representation
    normal = run.method.prior == "normal" and representation.from_prior is None
    if isinstance(model, AutoEncoder) and not representation.parts and normal:
        return model
    raise invalid("method", run.config.method, "a VAE with a normal prior and without parts")


def _initial_distribution(representation: Representation, x_BCHW: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation [B, Z] of the starting points of each image."""
    with torch.no_grad():
        if representation.posterior is None:
            mean_BZ = representation.require("encode")(x_BCHW)
            return mean_BZ, torch.full_like(mean_BZ, _DEVIATION)
        mean_BZ, logvar_BZ = representation.posterior(x_BCHW)
    return mean_BZ, 2.0 * torch.exp(0.5 * logvar_BZ).clamp(_MIN_DEVIATION, 1.0)


def _log_marginal_likelihood(
    model: AutoEncoder, x_BCHW: Tensor, mean_BZ: Tensor, spread_BZ: Tensor, key: Tensor, chains: int, steps: int
) -> Tensor:
    """Return the estimate of log p(x) [B]."""
    x_BCHW, mean_BZ, spread_BZ = (each.repeat_interleave(chains, 0) for each in (x_BCHW, mean_BZ, spread_BZ))

    def log_factor(u_BZ: Tensor) -> Tensor:
        """Return log p(x, z) minus the log-density of the starting points, with z = mean + spread u."""
        z_BZ = mean_BZ + spread_BZ * u_BZ
        correction_B = 0.5 * (u_BZ.square() - z_BZ.square()).sum(1) + spread_BZ.log().sum(1)
        return correction_B - model.nll(x_BCHW, z_BZ)

    weight_B = annealed_log_weights(log_factor, (len(mean_BZ), model.latents), key, steps=steps)
    return weight_B.view(-1, chains).logsumexp(1) - math.log(chains)
