"""Encode observations. The codes of a run are stored in its folder for later evaluations.

Shape letters: N observations, Z latents, K factors.
"""

import hashlib
import warnings
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.contract import Method, Representation
from unweave.data import Dataset
from unweave.data.dataset import data_device
from unweave.data.storage.digest import SAMPLED_NOTE, is_sampled
from unweave.errors import UserError, UserNotice, invalid
from unweave.nn.batch_size import images_per_call
from unweave.ops.divergence import kl_standard
from unweave.runs import RunFolder
from unweave.version import __version__

STORE = "codes.safetensors"


class EncodedDataset(NamedTuple):
    """Codes and factors of observations."""

    indices: Tensor  # of the observations [N]
    codes: np.ndarray  # [N, Z]
    factors: np.ndarray  # [N, K], NaN if unknown
    kl: np.ndarray  # mean KL of each latent to the prior [Z]
    logvar: np.ndarray | None = None  # of the posterior [N, Z]


def sample_indices(data: Dataset, num_samples: int | None, seed: int) -> Tensor:
    """Return the indices of `num_samples` random observations, or of all in order, on the device of the data."""
    if num_samples is None or num_samples >= data.size:
        index = torch.arange(data.size)
    else:
        index = torch.randperm(data.size, generator=torch.Generator().manual_seed(seed))[:num_samples]
    return index.to(data_device(data))


def encode_dataset(
    representation: Representation, data: Dataset, *, num_samples: int | None, seed: int, batch: int = 512
) -> EncodedDataset:
    """Return codes and factors of `num_samples` random observations, or of all with None; `batch` is an upper limit."""
    index = sample_indices(data, num_samples, seed)
    encode, codes, logvars = representation.posterior or representation.require("encode"), [], []
    with torch.no_grad():
        for part in index.split(images_per_call(encode, data.shape, index.device, most=batch)):
            images = data.images(part)
            if representation.posterior is None:
                codes.append(representation.require("encode")(images).float())
            else:  # the mean is the code
                mean, logvar = representation.posterior(images)
                codes.append(mean.float())
                logvars.append(logvar.float())
    return make_encoded_dataset(data, index, torch.cat(codes), torch.cat(logvars) if logvars else None)


def make_encoded_dataset(data: Dataset, index: Tensor, codes: Tensor, logvar: Tensor | None) -> EncodedDataset:
    """Return the table of these observations from their codes [N, Z] and log-variances (None without a posterior)."""
    return _table(index.cpu(), codes.cpu(), factor_matrix(data, index).cpu(), None if logvar is None else logvar.cpu())


def factor_matrix(data: Dataset, index_N: Tensor) -> Tensor:
    """Return factors [N, K]: classes in float32, or values in float64 if any is continuous; NaN if unknown."""
    if "continuous" in data.factor_types:
        return data.exact_values(index_N)
    classes_NK = data.factors(index_N)
    return classes_NK.float().masked_fill(classes_NK < 0, torch.nan)


def _table(rows: Tensor, codes: Tensor, factors: Tensor, logvar: Tensor | None) -> EncodedDataset:
    kl = codes.new_full(codes.shape[1:], torch.nan) if logvar is None else kl_standard(codes, logvar).mean(0)
    return EncodedDataset(rows, codes.numpy(), factors.numpy(), kl.numpy(), None if logvar is None else logvar.numpy())


def sample_codes(table: EncodedDataset, seed: int) -> EncodedDataset:
    """Return the same observations with codes sampled from the posteriors."""
    if table.logvar is None:
        raise invalid("codes", "sampled", "mean for a model without posterior")
    noise = np.random.default_rng(seed).standard_normal(table.codes.shape, dtype=np.float32)
    return table._replace(codes=table.codes + np.exp(0.5 * table.logvar) * noise, logvar=None)


def fingerprint(method: Method, data: Dataset, seed: int) -> str:
    """Return a hash of the weights, the data and the seed, which determine codes and scores."""
    digest = hashlib.sha256(__version__.encode())
    for name, tensor in sorted(method.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    digest.update(f"{data.digest} {seed}".encode())
    return digest.hexdigest()


def warn_if_sampled(data: Dataset) -> None:
    """Give notice if a part of the data could differ from what a run or a store of codes was made of."""
    if is_sampled(data.digest):
        warnings.warn(SAMPLED_NOTE, UserNotice, stacklevel=3)


def encode_run(
    folder: RunFolder, method: Method, data: Dataset, *, num_samples: int | None, seed: int, save: bool
) -> tuple[EncodedDataset, str]:
    """Return the encoded observations of a run and their fingerprint, read from its folder if stored there."""
    warn_if_sampled(data)
    digest = fingerprint(method, data, seed)
    table = load_codes(folder, digest, num_samples, data)
    if table is None:
        table = encode_dataset(method.representation(), data, num_samples=num_samples, seed=seed)
        if save:
            save_codes(folder, table, digest)
    return table, digest


def save_codes(folder: RunFolder, table: EncodedDataset, digest: str) -> None:
    """Store the codes in a run folder, with their fingerprint; give notice if that fails, since they are not needed."""
    found = {"rows": table.indices, "codes": table.codes, "logvar": table.logvar}
    tensors = {name: torch.as_tensor(values) for name, values in found.items() if values is not None}
    try:
        folder.save(STORE, tensors, fingerprint=digest)
    except OSError as error:
        text = f"the codes cannot be stored ({error.strerror}) and are computed again by the next evaluation"
        warnings.warn(text, UserNotice, stacklevel=3)


def may_store(folder: RunFolder) -> bool:
    """Return True if codes and scores can be stored in a run folder; otherwise give notice."""
    if not folder.writable:
        text = "codes and scores are not stored in run folders that are read-only, and are computed again next time"
        warnings.warn(text, UserNotice, stacklevel=1)  # at one place, so that it is given once for many runs
    return folder.writable


def load_codes(folder: RunFolder, digest: str, num_samples: int | None, data: Dataset) -> EncodedDataset | None:
    """Return the first `num_samples` stored observations, or None if the stored ones are others or too few.

    Factors are always those of the data.
    """
    size = data.size
    count = size if num_samples is None else min(num_samples, size)
    if not (folder.path / STORE).is_file():
        return None
    try:
        found, metadata = folder.read(STORE)
        stored = len(found["rows"])
        # Random samples are not the beginning of the whole data set, which is stored in order.
        if metadata["fingerprint"] != digest or stored < count or (stored == size) != (count == size):
            return None
        index, logvar = found["rows"][:count], found["logvar"][:count] if "logvar" in found else None
        return make_encoded_dataset(data, index.to(data_device(data)), found["codes"][:count], logvar)
    except (UserError, KeyError):  # damaged
        return None
