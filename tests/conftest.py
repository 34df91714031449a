"""Tests run in parallel with one thread each; tests that the machine does not support are deselected."""

import sys

import torch

torch.set_num_threads(1)


def pytest_collection_modifyitems(config, items):
    supported = {"gpu": torch.cuda.is_available(), "triton": sys.platform.startswith("linux")}
    missing = [marker for marker, present in supported.items() if not present]
    deselected = [item for item in items if any(item.get_closest_marker(marker) for marker in missing)]
    config.hook.pytest_deselected(items=deselected)
    items[:] = [item for item in items if item not in deselected]
