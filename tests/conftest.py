"""Tests run side by side, one to a core, so each keeps to one thread. Those marked gpu are for machines with one."""

import torch

torch.set_num_threads(1)


def pytest_collection_modifyitems(config, items):
    if not torch.cuda.is_available():
        left = [item for item in items if item.get_closest_marker("gpu")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]
