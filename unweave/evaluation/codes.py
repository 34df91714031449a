"""Observations into codes, once: what a run has encoded is kept in its folder for every later evaluation.

Shape letters: N observations, Z latents, K factors.
"""

from __future__ import annotations

import hashlib
import json
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.contract import Method, Representation
from unweave.data import Dataset
from unweave.errors import UserError
from unweave.ops.divergence import kl_standard
from unweave.runs import RunFolder
from unweave.version import __version__

STORE = "codes.safetensors"


class EncodedDataset(NamedTuple):
    """Observations, encoded."""

    indices: Tensor  # which observations [N]
    codes: np.ndarray  # [N, Z]
    factors: np.ndarray  # [N, K], NaN where not known
    kl: np.ndarray  # [Z]
    logvar: np.ndarray | None = None  # of the posterior [N, Z]


def sample_indices(data: Dataset, num_samples: int | None, seed: int) -> Tensor:
    """Which observations to encode, on the data's device: `num_samples` drawn by the seed, or all in order."""
    if num_samples is None or num_samples >= data.size:
        index = torch.arange(data.size)
    else:
        index = torch.randperm(data.size, generator=torch.Generator().manual_seed(seed))[:num_samples]
    return index.to(next(data.buffers(), index).device)


def encode_dataset(
    what: Representation, data: Dataset, *, num_samples: int | None, seed: int, batch: int = 512
) -> EncodedDataset:
    """Codes and factors of `num_samples` different observations drawn by the seed, or of all with rows=None."""
    index = sample_indices(data, num_samples, seed)
    codes, logvars = [], []
    with torch.no_grad():
        for part in index.split(batch):
            images = data.images(part)
            if what.posterior is None:
                codes.append(what.require("encode")(images).float())
            else:  # its mean is the code: no need to encode twice
                mean, logvar = what.posterior(images)
                codes.append(mean.float())
                logvars.append(logvar.float())
    return make_encoded_dataset(data, index, torch.cat(codes), torch.cat(logvars) if logvars else None)


def make_encoded_dataset(data: Dataset, index: Tensor, codes: Tensor, logvar: Tensor | None) -> EncodedDataset:
    """The table of these observations, given their codes [N, Z] and, of a posterior, the log-variances."""
    spread = None if logvar is None else logvar.cpu()
    return _table(index.cpu(), codes.cpu(), factor_matrix(data, index).cpu(), spread)


def factor_matrix(data: Dataset, index_N: Tensor) -> Tensor:
    """Factors [N, K], float32: classes, or the values of a set that has continuous factors; NaN where not known."""
    if "continuous" in data.factor_types:
        return data.values(index_N)
    classes_NK = data.factors(index_N)
    return classes_NK.float().masked_fill(classes_NK < 0, torch.nan)


def _table(rows: Tensor, codes: Tensor, factors: Tensor, logvar: Tensor | None) -> EncodedDataset:
    kl = codes.new_full(codes.shape[1:], torch.nan) if logvar is None else kl_standard(codes, logvar).mean(0)
    return EncodedDataset(rows, codes.numpy(), factors.numpy(), kl.numpy(), None if logvar is None else logvar.numpy())


def sample_codes(table: EncodedDataset, seed: int) -> EncodedDataset:
    """The same observations, each with a code drawn from its posterior instead of the mean."""
    if table.logvar is None:
        raise UserError("codes 'sampled' need a posterior to draw from, which this model has not; use mean")
    noise = np.random.default_rng(seed).standard_normal(table.codes.shape, dtype=np.float32)
    return table._replace(codes=table.codes + np.exp(0.5 * table.logvar) * noise, logvar=None)


def fingerprint(method: Method, data: Dataset, seed: int) -> str:
    """A hash of the weights, of the data and of the seed: equal ones have equal codes."""
    told = hashlib.sha256(__version__.encode())
    for name, tensor in sorted(method.state_dict().items()):
        told.update(name.encode() + tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    told.update(json.dumps([data.name, data.options, data.size, data.factor_names, seed], default=str).encode())
    # A few images stand for the data, for options do not tell arrays apart that were handed over in memory.
    probe = torch.linspace(0, data.size - 1, 16).long().to(next(data.buffers(), torch.empty(0)).device)
    for values in (data.images(probe), factor_matrix(data, probe)):
        told.update(values.detach().float().cpu().numpy().tobytes())
    return told.hexdigest()


def encode_run(
    folder: RunFolder, method: Method, data: Dataset, *, num_samples: int | None, seed: int, save: bool
) -> tuple[EncodedDataset, str]:
    """The encoded observations of a run and their fingerprint: encoded the first time, read from its folder later."""
    mark = fingerprint(method, data, seed)
    table = load_codes(folder, mark, num_samples, data.size)
    if table is None:
        table = encode_dataset(method.representation(), data, num_samples=num_samples, seed=seed)
        if save:
            save_codes(folder, table, mark)
    return table, mark


def save_codes(folder: RunFolder, table: EncodedDataset, mark: str) -> None:
    """Keep the table in a run's folder under the fingerprint of what it was made from."""
    found = {"rows": table.indices, "codes": table.codes, "factors": table.factors, "logvar": table.logvar}
    tensors = {name: torch.as_tensor(values) for name, values in found.items() if values is not None}
    folder.save(STORE, tensors, fingerprint=mark)


def load_codes(folder: RunFolder, mark: str, num_samples: int | None, size: int) -> EncodedDataset | None:
    """The first `num_samples` of the stored observations, if of these weights and data (of `size`) and enough."""
    count = size if num_samples is None else min(num_samples, size)
    if not (folder.path / STORE).is_file():
        return None
    try:
        found, about = folder.read(STORE)
        stored = len(found["rows"])
        # A part is drawn in random order, all observations are in their own: one is not the beginning of the other.
        if about["fingerprint"] != mark or stored < count or (stored == size) != (count == size):
            return None
        logvar = found["logvar"][:count] if "logvar" in found else None
        return _table(found["rows"][:count], found["codes"][:count], found["factors"][:count], logvar)
    except (UserError, KeyError):  # a damaged copy is as good as none
        return None


def has_stored_codes(folder: RunFolder, mark: str, num_samples: int | None, size: int) -> bool:
    return load_codes(folder, mark, num_samples, size) is not None
