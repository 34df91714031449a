"""How likely a model finds images: -log p(x) of held-out ones, by annealed importance sampling from the encoder.

Shape letters: N observations, B chains, Z latents, C channels, H height, W width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unweave.contract import Representation
from unweave.data import Dataset
from unweave.errors import UserError
from unweave.evaluation.codes import sample_indices
from unweave.model import TrainedModel
from unweave.nn.autoencoder import AutoEncoder
from unweave.ops.annealed import annealed_log_weights
from unweave.ops.noise import fold

_CHUNK = 4096  # chains in one call of a network
_LEAST = 0.05  # deviation; an encoder surer than this of a latent is not taken at its word
_UNTOLD = 0.5  # where chains start if the encoder says no deviation


def marginal_nll(
    run: TrainedModel, data: Dataset, *, num_samples: int = 1000, chains: int = 4, steps: int = 100, seed: int = 0
) -> Tensor:
    """-log p(x) [N] in nats of `num_samples` observations of the data, which the model should not have been trained on.

    The chains of an image start around its code, twice as wide as the encoder says. Too high in expectation, by less
    the more chains and steps there are. A Bernoulli likelihood gives grey pixels no probability: black or white is
    drawn for each pixel, by the seed.
    """
    model = _autoencoder(run)
    device = next(model.parameters()).device
    data, key = data.to(device), fold(torch.tensor(seed, device=device), "evidence")
    found = []
    for part, index_B in enumerate(sample_indices(data, num_samples, seed).split(max(1, _CHUNK // chains))):
        images = model.likelihood.observed(data.images(index_B), fold(fold(key, "pixels"), part))
        mean_BZ, spread_BZ = _start(run.representation, images)
        found.append(_log_marginal_likelihood(model, images, mean_BZ, spread_BZ, fold(key, part), chains, steps))
    return -torch.cat(found)


def _autoencoder(run: TrainedModel) -> AutoEncoder:
    """Of methods whose codes are N(0, I) if drawn from the prior, and all that the decoder sees."""
    model, name = getattr(run.method, "autoencoder", None), run.config.method
    what, prior = run.representation, getattr(run.method, "prior", "normal")
    if isinstance(model, AutoEncoder) and not what.parts and what.from_prior is None and prior == "normal":
        return model
    raise UserError(f"method '{name}' has no normal prior over all of its code; accepted are VAEs without parts")


def _start(what: Representation, x_BCHW: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation [B, Z] of where the chains of each image start."""
    with torch.no_grad():
        if what.posterior is None:
            mean_BZ = what.require("encode")(x_BCHW)
            return mean_BZ, torch.full_like(mean_BZ, _UNTOLD)
        mean_BZ, logvar_BZ = what.posterior(x_BCHW)
    return mean_BZ, 2.0 * torch.exp(0.5 * logvar_BZ).clamp(_LEAST, 1.0)


def _log_marginal_likelihood(
    model: AutoEncoder, x_BCHW: Tensor, mean_BZ: Tensor, spread_BZ: Tensor, key: Tensor, chains: int, steps: int
) -> Tensor:
    """log p(x) [B]."""
    x_BCHW, mean_BZ, spread_BZ = (each.repeat_interleave(chains, 0) for each in (x_BCHW, mean_BZ, spread_BZ))

    def log_factor(u_BZ: Tensor) -> Tensor:
        """p(x, z) over the density of where chains start, with z = mean + spread u."""
        z_BZ = mean_BZ + spread_BZ * u_BZ
        apart_B = 0.5 * (u_BZ.square() - z_BZ.square()).sum(1) + spread_BZ.log().sum(1)
        return apart_B - model.nll(x_BCHW, z_BZ)

    weight_B = annealed_log_weights(log_factor, (len(mean_BZ), model.latents), key, steps=steps)
    return weight_B.view(-1, chains).logsumexp(1) - math.log(chains)
