"""The size of data that are held in memory depends on the limits of the process and of the device they move to."""

import numpy as np
import pytest
import torch

import unweave as uw

V1 = "memory.limit_in_bytes"  # the file of a group of version 1
PIXELS = np.random.default_rng(0).integers(0, 256, (40, 1, 8, 8), dtype=np.uint8)


@pytest.fixture
def gpu(monkeypatch):
    """A GPU with little memory; asking for its memory, which initialises CUDA, is recorded."""
    asked = []

    def mem_get_info(device=None):
        asked.append(device)
        return 1000, 2000

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", mem_get_info)
    return asked


def test_a_run_on_the_cpu_does_not_ask_a_gpu(gpu, tmp_path):
    """(A21)"""
    data = uw.load_data(PIXELS)
    uw.train("vae", data, steps=1, batch=4, net="small", latents=2, device="cpu", out=tmp_path / "run")
    assert data.resident and not gpu


def test_only_data_that_move_to_a_gpu_must_fit_into_its_memory(gpu):
    """(A21)"""
    from unweave.data.views import noisy, split

    data = uw.load_data(PIXELS)
    view = noisy(split(data), sigma=0.1)
    expected = view.images(torch.arange(view.size))
    view.fit_to(torch.device("cuda"))
    assert not view.resident and not data.resident and "pixels" not in dict(view.named_buffers()) and gpu
    assert torch.equal(view.images(torch.arange(view.size)), expected)


def groups(root, files, own):
    (root / "proc" / "self").mkdir(parents=True)
    (root / "proc" / "self" / "cgroup").write_text(own)
    for name, text in files.items():
        path = root / "sys" / "fs" / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    "own, files, limits",
    [
        ("0::/\n", {"memory.max": "max\n"}, []),
        ("0::/\n", {"memory.max": "5000\n"}, [5000]),
        ("0::/job/s\n", {"memory.max": "max\n", "job/memory.max": "30\n", "job/s/memory.max": "70\n"}, [70, 30]),
        ("4:memory:/a\n0::/\n", {f"memory/a/{V1}": "8000\n", f"memory/{V1}": "99999\n"}, [8000, 99999]),
        ("9:cpu,memory:/docker/x\n", {f"memory/{V1}": "600\n"}, [600]),  # seen inside of its container
        ("3:cpu:/a\n", {f"memory/a/{V1}": "8000\n"}, []),
        ("", {}, []),
    ],
)
def test_the_limits_of_control_groups(tmp_path, own, files, limits):
    """(A21)"""
    from unweave.data.storage.memory_limit import cgroup_limits

    groups(tmp_path, files, own)
    assert cgroup_limits(tmp_path) == limits


def test_the_least_limit_counts(monkeypatch):
    """(A21)"""
    from unweave.data.storage import memory_limit

    whole = memory_limit.memory_limit()
    monkeypatch.setattr(memory_limit, "cgroup_limits", lambda: [10**15, 4000])
    assert memory_limit.memory_limit() == 2000 < whole
    data = uw.load_data(PIXELS)  # 2,560 bytes
    assert not data.resident
