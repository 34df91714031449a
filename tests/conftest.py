"""Tests run side by side, one to a core, so each keeps to one thread."""

import torch

torch.set_num_threads(1)
