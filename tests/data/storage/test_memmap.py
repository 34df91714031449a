"""Rows of a memory-mapped file are read correctly with and without `madvise`."""

import numpy as np
import pytest
import torch

from unweave.data.storage import memmap
from unweave.data.storage.memmap import MemmapWriter, open_memmap


@pytest.fixture
def store(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (500, 3, 32, 32), dtype=np.uint8)
    with MemmapWriter(tmp_path / "store.npy") as writer:
        writer.add(pixels[:1])
        writer.add(pixels[1:])
    return pixels, torch.from_numpy(open_memmap(tmp_path / "store.npy"))


@pytest.mark.parametrize("rows", [0, 1, 64, 3000])
def test_rows_equal_those_of_the_file(store, rows):
    pixels, held = store
    index = torch.from_numpy(np.random.default_rng(1).integers(0, 500, rows))
    assert np.array_equal(memmap.select_rows(held, index, resident=False).numpy(), pixels[index.numpy()])


def test_a_system_without_madvise(store, monkeypatch):
    monkeypatch.setattr(memmap, "system_madvise", lambda: None)
    pixels, held = store
    assert np.array_equal(memmap.select_rows(held, torch.tensor([3, 1]), resident=False).numpy(), pixels[[3, 1]])


def test_rows_are_aligned_to_pages(store):
    assert store[1].data_ptr() % 4096 == 0


def test_a_vmapped_index(store):
    pixels, held = store
    found = torch.vmap(lambda index: memmap.select_rows(held, index, resident=False))(torch.tensor([[3, 1], [0, 499]]))
    assert np.array_equal(found.numpy(), pixels[[[3, 1], [0, 499]]])
