"""Hashes of arrays and files: what they depend on, what is stored, and samples of large arrays."""

import json
import os

import numpy as np
import pytest
import torch

from unweave.data import load_data
from unweave.data.storage import digest
from unweave.data.storage.digest import Hash, changed_parts, hash_tensor, hash_text, join_digest, sampled_rows
from unweave.data.storage.memmap import open_memmap


@pytest.fixture
def counted(monkeypatch):
    """The number of blocks that were hashed."""
    blocks, hash_block = [], digest._hash_block

    def count(read, rows):
        blocks.append(rows)
        return hash_block(read, rows)

    monkeypatch.setattr(digest, "_hash_block", count)
    return blocks


def random_bytes(*shape):
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def test_a_hash_depends_on_shape_dtype_and_every_value():
    array = random_bytes(50, 3, 8, 8)
    first = hash_tensor(torch.from_numpy(array))
    assert first == hash_tensor(torch.from_numpy(array.copy())) and not first.sampled and len(first.text) == 32
    by_channel = np.ascontiguousarray(array.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)  # another layout in memory
    assert hash_tensor(torch.from_numpy(by_channel)) == first
    others = [array.reshape(50, 1, 24, 8), array.astype(np.int8), array[::-1].copy(), array[:-1]]
    changed = array.copy()
    changed[31, 2, 7, 0] ^= 1
    hashes = {hash_tensor(torch.from_numpy(other)).text for other in (*others, changed)}
    assert len(hashes) == 5 and first.text not in hashes


def test_large_arrays_are_hashed_in_blocks(monkeypatch, counted):
    """A block boundary does not hide a change, and the number of threads does not matter."""
    monkeypatch.setattr(digest, "_BLOCK", 1000)
    array = random_bytes(333, 10, 10)
    first = hash_tensor(torch.from_numpy(array))
    assert len(counted) == 34
    monkeypatch.setattr(digest, "_workers", lambda: 1)
    assert hash_tensor(torch.from_numpy(array)) == first
    for row in (9, 10, 332):
        changed = array.copy()
        changed[row, 9, 9] ^= 1
        assert hash_tensor(torch.from_numpy(changed)) != first


def test_a_slow_hash_is_one_of_a_sample(monkeypatch):
    """The number of rows is always part of it. A hash of all rows can be requested."""
    monkeypatch.setattr(digest, "_SAMPLE_ROWS", (4, 16))
    monkeypatch.setattr(digest, "TIME_LIMIT", 0.0)
    array = random_bytes(100, 8, 8)
    first = hash_tensor(torch.from_numpy(array))
    assert first.sampled and first == hash_tensor(torch.from_numpy(array), sampled=True)
    chosen = sampled_rows(100, 64)
    assert len(chosen) == 16 and chosen[0] == 0 and chosen[-1] == 99
    missed, met = array.copy(), array.copy()
    missed[1] ^= 1
    met[99, 7, 7] ^= 1
    assert hash_tensor(torch.from_numpy(missed)) == first != hash_tensor(torch.from_numpy(met))
    assert hash_tensor(torch.from_numpy(array[:50].repeat(3, 0))) != first
    whole = hash_tensor(torch.from_numpy(array), sampled=False)
    assert not whole.sampled and whole != hash_tensor(torch.from_numpy(missed), sampled=False)


@pytest.mark.parametrize("options", [{}, {"resident": False}])
def test_the_hash_of_a_file_is_stored_until_the_file_changes(tmp_path, own_cache, counted, options):
    path = tmp_path / "a.npy"
    np.save(path, random_bytes(20, 1, 16, 16))
    first = load_data(path, **options).digest
    assert counted and not (done := counted.clear())
    assert load_data(path, **options).digest == first and not counted
    assert load_data(path, layout="NCHW", **options).digest == first and not counted
    stat = path.stat()
    changed = random_bytes(20, 1, 16, 16)
    changed[7, 0, 0, 0] ^= 1
    np.save(path, changed)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert load_data(path, **options).digest != first and counted
    assert done is None and len(list((own_cache / "digests").iterdir())) == 1


def test_a_stored_hash_that_is_damaged_is_replaced(tmp_path, own_cache):
    np.save(tmp_path / "a.npy", random_bytes(20, 1, 16, 16))
    first = load_data(tmp_path / "a.npy").digest
    entry = next((own_cache / "digests").iterdir())
    for content in ("", "[]", '{"state": 1}', json.dumps({**json.loads(entry.read_text()), "state": [1, 2, 3, 4]})):
        entry.write_text(content)
        assert load_data(tmp_path / "a.npy").digest == first
        assert json.loads(entry.read_text())["state"][1] == (tmp_path / "a.npy").stat().st_size


def test_changes_in_memory_are_noticed_and_not_stored(tmp_path, own_cache):
    np.save(tmp_path / "a.npy", random_bytes(20, 1, 16, 16))
    data = load_data(tmp_path / "a.npy")
    first = data.digest
    data.pixels[3] = 0
    assert changed_parts(first, data.digest) == ("images",)
    assert load_data(tmp_path / "a.npy").digest == first
    data = load_data(random_bytes(20, 1, 16, 16), factors=np.arange(20) % 3)
    first = data.digest
    data.classes[3] = 0 if data.classes[3] else 1
    assert changed_parts(first, data.digest) == ("factors",)


def test_a_part_of_a_mapped_file_has_its_own_hash(tmp_path, own_cache):
    np.save(tmp_path / "a.npy", random_bytes(20, 2, 8, 8))
    mapped = open_memmap(tmp_path / "a.npy")
    for part in (mapped, mapped[:, :1], mapped[:, 1:], mapped[3:], mapped.transpose(0, 2, 3, 1)):
        expected = hash_tensor(torch.from_numpy(np.array(part)))
        assert hash_tensor(torch.from_numpy(part), file=digest.mapped_file(part)) == expected
    assert digest.mapped_file(np.array(mapped)) is None


def test_texts_of_equal_content_are_equal():
    assert hash_text({"a": 1, "b": (1, 2.5)}) == hash_text({"b": [1.0, np.float64(2.5)], "a": np.int64(1)})
    different = [{"a": 1}, {"a": "1"}, {"a": True}, {"a": None}, {"b": 1}, {"a": 1.5}, ["a", 1], {"a": np.arange(2000)}]
    different.append({"a": np.where(np.arange(2000) == 1000, 0, np.arange(2000))})
    assert len({hash_text(content) for content in different}) == len(different)


def test_the_differences_of_two_digests_are_named():
    images, factors = Hash("a"), Hash("b")
    first = join_digest(10, images, factors)
    assert first == "10-a-b" and join_digest(10, Hash("a", sampled=True), factors) == "10-a-b-sampled"
    assert changed_parts(first, first) == ()
    assert changed_parts(first, join_digest(10, images, Hash("c"))) == ("factors",)
    assert changed_parts(first, join_digest(10, Hash("c"), factors)) == ("images",)
    assert changed_parts(first, "9-c-d") == ("images", "factors")
