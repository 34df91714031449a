"""Batches from a file equal those from memory, drawn directly or prefetched."""

import itertools
import sys

import numpy as np
import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

import unweave as uw
from unweave.data import Sampler
from unweave.data.prefetch import BatchPrefetcher, DeviceBuffer, device_cache, step_keys
from unweave.data.storage.memmap import MemmapWriter, open_memmap
from unweave.data.storage.progress import observe_progress
from unweave.data.user.arrays import Arrays
from unweave.data.views import noisy, split
from unweave.ops.noise import fold
from unweave.training.build import device_cache_bytes

PIXELS = np.random.default_rng(0).integers(0, 256, (300, 3, 16, 16), dtype=np.uint8)
FACTORS = np.stack([np.arange(300) % 5, np.arange(300) // 5 % 4], axis=1)


@pytest.fixture
def sets(tmp_path):
    """The same images in memory and in a file."""
    with MemmapWriter(tmp_path / "store.npy") as writer:
        writer.add(PIXELS[:100])
        writer.add(PIXELS[100:])
    store = open_memmap(tmp_path / "store.npy")
    return Arrays(PIXELS, FACTORS), Arrays(store, FACTORS, copy=False, resident=False)


def test_the_file_is_an_npy(tmp_path, sets):
    path = tmp_path / "store.npy"
    assert np.array_equal(np.load(path), PIXELS)
    store = open_memmap(path)
    store[0] = 0  # memory only
    assert np.array_equal(np.load(path), PIXELS)


@pytest.mark.parametrize("count", [1, 12345])
def test_the_number_of_rows_may_be_unknown(tmp_path, count):
    with MemmapWriter(tmp_path / "s.npy") as writer:
        for number in range(count):
            writer.add(np.full((1, 2), number % 256, np.uint8))
    assert np.load(tmp_path / "s.npy").shape == (count, 2)


def test_an_incomplete_file_is_deleted(tmp_path):
    with pytest.raises(KeyboardInterrupt), MemmapWriter(tmp_path / "s.npy") as writer:
        writer.add(np.zeros(3, np.uint8))
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_the_same_key_gives_the_same_batch(sets):
    resident, streamed = (Sampler(data, ("x", "x_other")) for data in sets)
    for key in range(5):
        one, other = (sampler(torch.tensor(key), 32) for sampler in (resident, streamed))
        assert torch.equal(one.x, other.x) and torch.equal(one.x_other, other.x_other)


@pytest.mark.parametrize(
    "needs, supervision",
    [
        (("x",), "none"),
        (("x", "x_other", "x_index"), "none"),
        (("x", "labelled", "labels"), "labels(n=50)"),
        (("groups", "group_id"), "groups(by=['factor0'], size=3)"),
    ],
)
def test_prefetched_batches_equal_those_of_the_sampler(sets, needs, supervision):
    resident, streamed = (Sampler(data, needs, supervision) for data in sets)
    stream = BatchPrefetcher(streamed, step_keys(seed=11, step=7, phases=2, block=4), 8)
    seed = torch.tensor(11)
    try:
        for step, phase in itertools.product(range(7, 13), range(2)):
            expected = resident(fold(fold(fold(seed, torch.tensor(step)), phase), "data"), 8)
            for name, field in stream.draw()[0]._asdict().items():
                wanted = getattr(expected, name)
                assert (field is None) == (wanted is None)
                if field is not None:
                    assert torch.equal(field / 255.0 if field.dtype == torch.uint8 else field, wanted), name
    finally:
        stream.close()


def test_errors_of_the_keys_are_passed_on(sets):
    def broken():
        raise OSError("the disk is gone")
        yield

    stream = BatchPrefetcher(Sampler(sets[1], ("x",)), broken(), 4)
    with pytest.raises(OSError, match="gone"):
        stream.draw()
    stream.close()


@pytest.mark.parametrize("held", [0, 1, 120, 300])
def test_the_device_buffer_has_constant_addresses(sets, held):
    """An engine that replays a recorded step reads the same memory, which is filled before every step."""
    resident, streamed = (Sampler(data, ("x", "x_index")) for data in sets)
    cached_M = device_cache(sets[1], held * 3 * 16 * 16 + 5, "cpu")
    assert cached_M is None if not held else torch.equal(cached_M, torch.from_numpy(PIXELS[:held]))
    stream = BatchPrefetcher(streamed, step_keys(0, 0, phases=2, block=8), 8, num_cached=held)
    staged = DeviceBuffer(stream, 2, "cpu", cached_M)
    key, addresses = torch.tensor(0), set()
    for step in range(21):
        staged.load_next()
        for phase in range(2):
            seen = staged(key, 8)
            addresses.add((phase, seen.x_index.data_ptr()))
            expected = resident(fold(fold(fold(key, torch.tensor(step)), phase), "data"), 8)
            assert torch.equal(seen.x, expected.x) and torch.equal(seen.x_index, expected.x_index)
    assert len(addresses) == 2
    stream.close()


@pytest.mark.parametrize("held", [0, 120])
def test_a_step_may_run_before_the_first_batch_is_loaded(sets, held):
    """Engines do so to record a step; uninitialised positions could be out of range."""
    resident, streamed = (Sampler(data, ("x", "x_index")) for data in sets)
    stream = BatchPrefetcher(streamed, step_keys(0, 0), 8, num_cached=held)
    staged = DeviceBuffer(stream, 1, "cpu", device_cache(sets[1], held * 3 * 16 * 16, "cpu"))
    seen, expected = staged(torch.tensor(0), 8), resident(next(step_keys(0, 0))[0], 8)
    stream.close()
    assert torch.equal(seen.x, expected.x) and torch.equal(seen.x_index, expected.x_index)


def test_progress_of_the_device_cache(sets, monkeypatch):
    monkeypatch.setattr(sys.modules["unweave.data.prefetch"], "BLOCK", 100 * 3 * 16 * 16)
    calls = []
    with observe_progress(lambda *call: calls.append(call)):
        cached_M = device_cache(sets[1], 10**9, "cpu")
    assert [done for _, done, _ in calls] == [100, 200, 300] and {total for _, _, total in calls} == {300}
    assert "cpu" in calls[0][0] and torch.equal(cached_M, torch.from_numpy(PIXELS))


def test_training_from_a_file_equals_training_from_memory(sets, tmp_path):
    options = dict(steps=4, batch=8, net="small", latents=3, device="cpu", engine="loop")
    runs = [uw.train("vae", data, out=tmp_path / str(number), **options) for number, data in enumerate(sets)]
    one, other = (run.method.state_dict() for run in runs)
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_drawing_from_a_file_can_be_traced(sets):
    sampler = Sampler(sets[1], ("x",))
    recorded = make_fx(lambda key: sampler(key, 8).x)(torch.tensor(1))
    for key in range(3):
        assert torch.equal(recorded(torch.tensor(key)), sampler(torch.tensor(key), 8).x)


def test_images_that_are_not_resident_stay_on_the_host(sets):
    resident, streamed = sets
    assert "pixels" in dict(resident.named_buffers()) and "pixels" not in dict(streamed.named_buffers())
    moved = streamed.to("meta")
    assert moved.pixels.device.type == "cpu" and moved.classes.device.type == "meta"


@pytest.mark.parametrize("limit", [0, 100_000])
def test_the_engine_reads_prefetched_batches(sets, tmp_path, monkeypatch, limit):
    """As on a GPU, where the host prefetches images that are not cached; also after an interruption."""
    monkeypatch.setattr("unweave.training.trainer.device_cache_bytes", lambda data, device: limit)
    options = dict(steps=6, batch=8, net="small", latents=3, device="cpu", engine="loop", log_every=2, lr=1e-3)
    whole = uw.train("factor_vae", sets[0], out=tmp_path / "memory", **options)

    def stop(progress):
        if progress.step == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        uw.train("factor_vae", sets[1], out=tmp_path / "file", observe=stop, checkpoint_every=2, **options)
    again = uw.resume(tmp_path / "file", data=sets[1])
    for name, value in whole.method.state_dict().items():
        assert torch.equal(value, again.method.state_dict()[name]), name


def test_cached_images_are_not_read(sets):
    """For fields of any shape: here groups, some of whose members are cached."""
    asked = []
    sampler = Sampler(sets[1], ("groups",), "groups(by=['factor0'], size=3)")
    stream = BatchPrefetcher(sampler, step_keys(0, 0), 8, num_cached=200, threads=1, prefetch_batches=1)
    rows, stream.raw_images = stream.raw_images, lambda index_B: asked.append(index_B) or rows(index_B)
    batch, places = stream.draw()
    stream.close()
    index = sampler.plan(next(step_keys(0, 0))[0], 8)["groups"]
    away, pixels = index >= 200, torch.from_numpy(PIXELS)
    assert all((index_B >= 200).all() for index_B in asked) and away.any() and not away.all()
    assert len(batch.groups) == away.sum() and torch.equal(places.groups[~away], index[~away])
    assert torch.equal(batch.groups[places.groups[away] - 200], pixels[index[away]])


def test_all_images_of_a_batch_may_be_cached(sets):
    """Also of a view that computes its images and does not support empty batches."""
    view = noisy(sets[1], sigma=0.1)
    stream = BatchPrefetcher(Sampler(view, ("x", "x_index")), step_keys(0, 0), 8, num_cached=view.size)
    staged = DeviceBuffer(stream, 1, "cpu", device_cache(view, 10**9, "cpu"))
    staged.load_next()
    seen = staged(torch.tensor(0), 8)
    stream.close()
    assert torch.equal(seen.x, view.images(seen.x_index))


def test_the_limit_of_the_device_cache(monkeypatch):
    monkeypatch.setattr(sys.modules["unweave.data.user.arrays"], "memory_limit", lambda: 100)
    monkeypatch.setattr(sys.modules["unweave.training.build"], "device_memory_limit", lambda device: 10_000)
    large, asked = Arrays(PIXELS), Arrays(PIXELS, resident=False)
    assert not large.resident and device_cache_bytes(large, "cuda") == 10_000 and device_cache_bytes(large, "cpu") == 0
    assert device_cache_bytes(split(large), "cuda") == 10_000
    assert not asked.resident and device_cache_bytes(asked, "cuda") == 0


def test_a_resumed_run_on_a_file_equals_a_run_in_memory(tmp_path):
    """Prefetched batches lead to the same weights, uninterrupted or resumed."""
    pixels = np.random.default_rng(0).integers(0, 256, (50, 1, 8, 8), dtype=np.uint8)
    options = dict(steps=6, batch=4, net="small", latents=2, log_every=2, checkpoint_every=2)
    there = uw.train("beta_tcvae", Arrays(pixels), out=tmp_path / "memory", **options)
    streamed = Arrays(pixels, copy=False, resident=False)
    here = uw.train("beta_tcvae", streamed, out=tmp_path / "file", **options)

    def kill(progress):
        if progress.step == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        uw.train("beta_tcvae", streamed, out=tmp_path / "cut", observe=kill, **options)
    resumed = uw.resume(tmp_path / "cut", data=streamed)
    for name, weights in there.method.state_dict().items():
        assert torch.equal(weights, here.method.state_dict()[name]), name
        assert torch.equal(weights, resumed.method.state_dict()[name]), name
