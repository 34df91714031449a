"""Data whose images contain their factors, and batches of them, for tests of supervision."""

import math

import torch
from scipy import stats

from unweave.data import Dataset, Sampler


class Codes(Dataset):
    """A grid whose images are its factor classes, so that a batch can be read back."""

    def __init__(self, sizes=(3, 1, 4, 5)):
        super().__init__()
        self.name, self.factor_sizes, self.size = "codes", tuple(sizes), math.prod(sizes)
        self.factor_names, self.shape = tuple("abcdef"[: len(sizes)]), (len(sizes), 1, 1)
        self.factor_values = tuple(tuple(map(float, range(size))) for size in sizes)
        self.options = {}

    def images(self, index_B):
        return self.factors(index_B).float()[..., None, None]


class Rows(Codes):
    """A list of factor classes, not a grid; -1 is unknown. Images contain the classes and the index of the row."""

    grid = False

    def __init__(self, rows, sizes):
        super().__init__(sizes)
        self.size, self.shape = len(rows), (len(sizes) + 1, 1, 1)
        self.register_buffer("rows_NK", torch.tensor(rows), persistent=False)

    def factors(self, index_B):
        return self.rows_NK[index_B]

    def images(self, index_B):
        return torch.cat([self.factors(index_B), index_B[:, None]], 1).float()[..., None, None]


# Groups of a: 0 has 1 row, 1 has 2, 2 has 3, 3 has 4; one row is in none.
UNEVEN = Rows([[a, i % 2] for a in range(4) for i in range(a + 1)] + [[-1, 0]], (4, 2))


class Film(Codes):
    """Three videos of six frames."""

    grid, frames = False, 6

    def __init__(self):
        super().__init__((3, 6))


def key(n=0):
    return torch.tensor(n)


def classes(x):
    return x[..., 0, 0].long()


def is_uniform(values, size):
    counts = torch.bincount(values.flatten(), minlength=size)
    assert len(counts) == size
    return size == 1 or stats.chisquare(counts.numpy()).pvalue > 1e-3


def draw(data, needs, supervision, count=20_000, n=1, seed=0):
    return Sampler(data, needs, supervision, seed=seed)(key(n), count)
