"""Unweave: find the separate causes in your data. Train any disentangling method, score it, look at it."""

from unweave.contract import Batch, DataInfo, Knob, Method, Out, Representation, UserError, normal, uniform
from unweave.data import load_data
from unweave.estimator import Unweaver
from unweave.evaluate import Evaluation, Trained, evaluate, load
from unweave.train import resume, train
from unweave.version import __version__

__all__ = [
    "Batch",
    "DataInfo",
    "Evaluation",
    "Knob",
    "Method",
    "Out",
    "Representation",
    "Trained",
    "Unweaver",
    "UserError",
    "__version__",
    "evaluate",
    "load",
    "load_data",
    "normal",
    "resume",
    "train",
    "uniform",
]
