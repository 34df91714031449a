"""Mutual information in nats from joint histograms of codes and factors.

Codes and continuous factors are divided into equal-width bins; probabilities are relative frequencies. Counting runs
on the requested device; the counts are numpy arrays.

Shape letters: N rows, D codes, K factors, B bins of a code, V values of one factor.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unweave.errors import UserError, invalid, renamed_arguments
from unweave.metrics.inputs import (
    BINS,
    Array,
    FactorTypes,
    Floats,
    Indices,
    MetricInputs,
    as_matrix,
    bin_edges,
    check_at_least,
    classes,
    read_table,
    varying_factors,
)


class Counts(NamedTuple):
    """The joint counts of every code with every factor that varies, one array [D, B, V] per factor."""

    tables: tuple[Floats, ...]
    factors: tuple[int, ...]  # columns of the table


class Information(NamedTuple):
    """Input of the scores of information.py, in nats, for the factors that vary."""

    mutual: Floats  # I(code; factor) [D, K]
    joint: Floats  # H(code, factor) [D, K]
    entropy: Floats  # H(factor) [K]
    bins: int
    factors: tuple[int, ...]


class Binned(NamedTuple):
    """A binned table, which can be counted repeatedly with other weights of its rows."""

    bins_DN: Indices
    rows: tuple[Indices, ...]  # for each factor the rows with a value [n]
    classes: tuple[Indices, ...]  # for each factor the classes of these rows [n]
    factors: tuple[int, ...]
    bins: int


def discretize(codes: Array, bins: int = BINS) -> Indices:
    """Return the number, 1..bins, of the equal-width bin of each code, over the range of that code, [N, D].

    A constant code is in a single bin.
    """
    check_at_least("bins", bins, 1)
    codes_ND = as_matrix(codes, "codes").astype(np.float64, copy=False)
    binned_DN = np.empty(codes_ND.shape[::-1], np.int64)
    for d, column in enumerate(codes_ND.T):
        binned_DN[d] = np.digitize(column, bin_edges(column, bins))
    return binned_DN.T


def contingency_table(left_N: Indices, right_N: Indices) -> Indices:
    """Return how often each pair of non-negative integers occurs, [max(left) + 1, max(right) + 1]."""
    rows, columns = int(left_N.max()) + 1, int(right_N.max()) + 1
    counts = np.bincount(left_N * columns + right_N, minlength=rows * columns)
    return counts.reshape(rows, columns)


def table_information(counts: NDArray[np.int64] | Floats) -> float:
    """Return the mutual information, in nats, between the rows and the columns of a contingency table."""
    return float(informations(counts[None])[0])


def informations(counts_DBV: NDArray[np.int64] | Floats) -> Floats:
    """Return the mutual information, in nats, between the last two axes of each table, [D]."""
    joint = counts_DBV.astype(np.float64)
    total = joint.sum(axis=(1, 2), keepdims=True)
    expected = joint.sum(axis=2, keepdims=True) * joint.sum(axis=1, keepdims=True)
    # Ratios of products of integers: independence gives log(1), exactly 0.
    ratio = np.divide(joint * total, expected, out=np.ones_like(joint), where=joint > 0)
    share = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)
    return np.maximum((share * np.log(ratio)).sum(axis=(1, 2)), 0.0)


def joint_entropies(counts_DBV: Floats) -> Floats:
    """Return the entropy of the cells of each table in nats, [D]."""
    share = counts_DBV / counts_DBV.sum(axis=(1, 2), keepdims=True)
    return -(share * np.log(np.where(share > 0, share, 1.0))).sum(axis=(1, 2))


def information_from_counts(counts: Counts) -> Information:
    return Information(
        np.stack([informations(table) for table in counts.tables], axis=1),
        np.stack([joint_entropies(table) for table in counts.tables], axis=1),
        np.array([joint_entropies(table[:1].sum(axis=1, keepdims=True))[0] for table in counts.tables]),
        counts.tables[0].shape[1],
        counts.factors,
    )


def bin_table(table: MetricInputs, *, bins: int = BINS) -> Binned:
    """Return the bins of the codes and the classes of the factors that vary."""
    chosen = varying_factors(table)
    rows, labels = zip(*(classes(table, k) for k in chosen), strict=True)
    bins_DN = discretize(table.codes, bins).T - 1
    return Binned(bins_DN, rows, labels, tuple(chosen), bins)


def count(binned: Binned, weights_N: Floats | None = None) -> Counts:
    """Return the joint counts, in which each row counts 1 or its weight."""
    tables = []
    for rows, labels in zip(binned.rows, binned.classes, strict=True):
        complete, values = len(rows) == binned.bins_DN.shape[1], int(labels.max(initial=0)) + 1
        weights_n = weights_N if weights_N is None or complete else weights_N[rows]
        cells = (bins_N * values + labels for bins_N in (binned.bins_DN if complete else binned.bins_DN[:, rows]))
        counts = [np.bincount(c, weights=weights_n, minlength=binned.bins * values) for c in cells]
        tables.append(np.stack(counts).reshape(-1, binned.bins, values).astype(np.float64, copy=False))
    return Counts(tuple(tables), binned.factors)


def count_table(
    table: MetricInputs, *, bins: int = BINS, factors: list[int] | None = None, device: str | torch.device | None = None
) -> Counts:
    """Return the joint counts of a table, computed on the device one code at a time to save memory."""
    check_at_least("bins", bins, 1)
    chosen = varying_factors(table) if factors is None else factors
    target = "cpu" if torch.device(device or "cpu").type != "cuda" else device
    found = [tuple(torch.as_tensor(values, device=target) for values in classes(table, k)) for k in chosen]
    sizes = [int(labels.max()) + 1 if len(labels) else 1 for _, labels in found]
    tables = [np.empty((table.codes.shape[1], bins, values)) for values in sizes]
    for d, column in enumerate(table.codes.T):
        code_N = torch.as_tensor(np.ascontiguousarray(column), device=target)
        bins_N = torch.bucketize(code_N, torch.as_tensor(bin_edges(column, bins), device=target), right=True) - 1
        for (rows, labels), values, table_DBV in zip(found, sizes, tables, strict=True):
            cells = (bins_N if len(rows) == len(bins_N) else bins_N[rows]) * values + labels
            table_DBV[d] = torch.bincount(cells, minlength=bins * values).reshape(bins, values).cpu().numpy()
    return Counts(tuple(tables), tuple(chosen))


def device_of(codes: Array, device: str | torch.device | None) -> str | torch.device | None:
    """Return the device to compute on: the given one, or that of the codes."""
    if device is None:
        return codes.device if isinstance(codes, Tensor) else None
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise invalid("device", device, "cpu, cuda, cuda:N or mps") from error
    if found.type == "cuda" and not torch.cuda.is_available():
        message = f"device '{device}' is not available on this machine; available: cpu"
        raise UserError(message, argument="device", value=device, accepted="cpu")
    return found


@renamed_arguments(kinds="factor_types")
def mutual_information_matrix(
    codes: Array, factors: Array, *, bins: int = BINS, factor_types: FactorTypes = None, device: str | None = None
) -> Floats:
    """Return I(binned code; factor) in nats, [D, K]; 0 for a factor with a single value."""
    table = read_table(codes, factors, factor_types=factor_types)
    everything = list(range(len(table.factor_types)))
    counts = count_table(table, bins=bins, factors=everything, device=device_of(codes, device))
    return np.stack([informations(table_DBV) for table_DBV in counts.tables], axis=1)


@renamed_arguments(kinds="factor_types")
def entropies(factors: Array, *, factor_types: FactorTypes = None) -> Floats:
    """Return H(factor) in nats, [K]; 0 for a factor with a single value."""
    table = read_table(
        np.zeros((len(as_matrix(factors, "factors", missing=True)), 1)), factors, factor_types=factor_types
    )
    found = [np.bincount(classes(table, k)[1], minlength=1) for k in range(len(table.factor_types))]
    return np.array([table_information(np.diag(counts)) for counts in found])
