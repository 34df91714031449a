"""A toy method and its program, for tests of the engines."""

import torch
from torch import nn

import unweave as uw
from unweave.contract import player_parameters
from unweave.engine.optim import Optimizer
from unweave.engine.program import Program, schedule_row
from unweave.ops.noise import random_uniform


def sample(key, batch):
    return uw.Batch(x=random_uniform(key, (batch,)))


def program(method, *, lr=0.1, batch=4, seed=0, **adam):
    optimizers = {player: Optimizer(schedule_row(lr), **adam) for player in method.players}
    key = torch.tensor(seed, dtype=torch.int64)
    return Program(method, sample, batch, key, torch.zeros(0, 4), optimizers, player_parameters(method))


class TwoPhases(uw.Method):
    """a follows the data in the first phase, b follows a in the second."""

    players = {"a": ("a",), "b": ("b",)}
    noise = {"eps": uw.normal("B")}
    phases = {"first": ("a",), "second": ("b",)}

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.tensor(5.0)), nn.Parameter(torch.tensor(-5.0))

    def forward(self, batch, noise, hyper, step, phase=""):
        losses = {"a": (self.a - batch.x.mean()).square(), "b": (self.b - self.a).square()}
        return uw.Out(losses, {"x": batch.x[0], "eps": noise["eps"][0], "a": self.a, "b": self.b})
