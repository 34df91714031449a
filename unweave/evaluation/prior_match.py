"""Match of the aggregate posterior with the prior, quality of samples, and classification from few labels.

The comparison of Zhao et al. 2019, for any Representation with a decoder and the prior N(0, I).

Shape letters: N observations, B batch, Z latents, Y classes, C channels, H height, W width.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from unweave.contract import Representation
from unweave.data import Dataset
from unweave.data.dataset import data_device, without_repetitions
from unweave.errors import check_choice, invalid, renamed_arguments
from unweave.evaluation.codes import EncodedDataset, encode_dataset, sample_indices
from unweave.metrics.aggregate_posterior import class_divergence, label_error, log_det_covariance, prior_mmd
from unweave.metrics.inputs import Floats, Indices
from unweave.nn.batch_size import images_per_call
from unweave.nn.networks import build_networks

MAX_TEST = 2000  # observations to test a classifier on, or a fifth of a smaller data set
_CHUNK = 512  # images in one call of a network, if they fit into memory


class Classifier(NamedTuple):
    """A classifier of one factor, trained on the images of the data set."""

    factor: int  # index of the factor
    classify: Callable[[Tensor], Tensor]  # images [B, C, H, W] -> classes [B]
    counts_Y: Indices  # number of observations of each class
    error: float  # test error


class AggregatePosteriorMetrics(NamedTuple):
    """Metrics of one model."""

    mmd: float  # unbiased squared MMD between sampled codes and samples of the prior
    log_det: float  # of the covariance of sampled codes; 0 for the prior
    squared_error: float  # of reconstructions from sampled codes, summed over pixels, mean over images
    class_divergence: float  # KL in nats between the classes of generated images and those of the data
    label_errors: dict[int, float]  # test error by the number of labels, from posterior means


def fit_classifier(
    data: Dataset, factor: str, *, net: str = "small", steps: int = 1000, batch: int = 128, seed: int = 0
) -> Classifier:
    """Train a small convolutional classifier of the factor on all observations but the test observations."""
    check_choice("factor", factor, data.factor_names)
    k = data.factor_names.index(factor)
    index_N = without_repetitions(data, sample_indices(data, None, 0))
    class_N = data.factors(index_N)[:, k]
    index_N, class_N = index_N[class_N >= 0], class_N[class_N >= 0]  # those with a known class
    count, num_test = data.factor_sizes[k], min(MAX_TEST, len(index_N) // 5)
    if not num_test:
        raise invalid("factor", factor, f"known for 5 observations or more, not {len(index_N)}")
    generator = torch.Generator().manual_seed(seed)
    order_N = torch.randperm(len(index_N), generator=generator).to(index_N.device)
    test, train = order_N[:num_test], order_N[num_test:]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = build_networks(net, data.shape, count)[0].to(index_N.device)

    def logits(images: Tensor) -> Tensor:
        return network(images)[:, :count]  # the second half, the variances of an encoder, is not used

    def classify(images: Tensor) -> Tensor:
        with torch.no_grad():
            return logits(images).argmax(1)

    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(steps):
        rows_B = train[torch.randint(len(train), (batch,), generator=generator).to(train.device)]
        optimizer.zero_grad()
        F.cross_entropy(logits(data.images(index_N[rows_B])), class_N[rows_B]).backward()
        optimizer.step()
    most = images_per_call(classify, data.shape, test.device, most=_CHUNK)
    predicted_N = torch.cat([classify(data.images(index_N[part])) for part in test.split(most)])
    wrong = (predicted_N != class_N[test]).float().mean()
    return Classifier(k, classify, class_N.bincount(minlength=count).cpu().numpy(), float(wrong))


@renamed_arguments(rows="num_samples")
def aggregate_posterior_metrics(
    representation: Representation,
    data: Dataset,
    classifier: Classifier,
    *,
    num_samples: int = 10_000,
    labels: Sequence[int] = (100, 1000),
    seed: int = 0,
) -> AggregatePosteriorMetrics:
    """Compute all metrics from `num_samples` random observations and as many samples of the prior.

    Numbers of labels that leave no test observations are left out.
    """
    if any(part.classes for part in representation.parts):
        accepted = "a code without categorical parts, whose prior is not normal"
        raise invalid("parts", [part.name for part in representation.parts], accepted)
    decode = representation.require("decode")
    table = encode_dataset(representation, data, num_samples=num_samples, seed=seed)
    rng = np.random.default_rng([seed, 1])  # independent of the samples of the prior
    z_NZ = sample_posterior_codes(table, rng)
    class_N = table.factors[:, classifier.factor]
    known_N = ~np.isnan(class_N)
    counts = [number for number in labels if number < known_N.sum()]
    device = data_device(data)
    return AggregatePosteriorMetrics(
        prior_mmd(z_NZ, seed=seed, device=str(device)),
        log_det_covariance(z_NZ),
        _squared_error(decode, data, table.indices.to(device), z_NZ),
        class_divergence(_sample_classes(decode, classifier, rng, z_NZ.shape, device), classifier.counts_Y),
        {number: label_error(table.codes[known_N], class_N[known_N], labels=number, seed=seed) for number in counts},
    )


def sample_posterior_codes(table: EncodedDataset, rng: np.random.Generator) -> Floats:
    """Return samples z ~ q(z|x) of all observations [N, Z], or the codes without a posterior."""
    codes_NZ = table.codes.astype(np.float64)
    if table.logvar is None:
        return codes_NZ
    return codes_NZ + np.exp(0.5 * table.logvar.astype(np.float64)) * rng.standard_normal(codes_NZ.shape)


def _decode_batches(decode: Callable[[Tensor], Tensor], z_NZ: Floats, device: torch.device) -> Iterator[Tensor]:
    """Yield the decoded images in batches."""
    most = images_per_call(decode, z_NZ.shape[1:], device, most=_CHUNK)
    with torch.no_grad():
        for part_BZ in torch.as_tensor(z_NZ, dtype=torch.float32).split(most):
            yield decode(part_BZ.to(device))


def _squared_error(decode: Callable[[Tensor], Tensor], data: Dataset, rows_N: Tensor, z_NZ: Floats) -> float:
    total = torch.zeros((), dtype=torch.float64, device=rows_N.device)
    done = 0
    for images in _decode_batches(decode, z_NZ, rows_N.device):
        part = rows_N[done : done + len(images)]
        total += (data.images(part) - images).square().sum(dtype=torch.float64)
        done += len(images)
    return float(total) / len(rows_N)


def _sample_classes(
    decode: Callable[[Tensor], Tensor],
    classifier: Classifier,
    rng: np.random.Generator,
    shape: tuple[int, ...],
    device: torch.device,
) -> Indices:
    """Return the number of images of each class [Y], among images decoded from samples [N, Z] of the prior."""
    counts_Y = np.zeros(len(classifier.counts_Y), dtype=np.int64)
    for images in _decode_batches(decode, rng.standard_normal(shape), device):
        counts_Y += classifier.classify(images).bincount(minlength=len(counts_Y)).cpu().numpy()
    return counts_Y
