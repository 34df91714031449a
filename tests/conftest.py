"""Every test runs on two threads with its own cache folder shared by the session."""

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def _threads():
    torch.set_num_threads(2)
