"""Unweave: find the separate causes in your data. Train any disentangling method, score it, look at it."""

__version__ = "0.1.0"

from unweave.contract import Batch, Knob, Method, Out, Representation, UserError, normal, uniform
from unweave.data import load_data
from unweave.evaluate import Evaluation, Trained, evaluate, load
from unweave.train import resume, train

__all__ = [
    "Batch",
    "Evaluation",
    "Knob",
    "Method",
    "Out",
    "Representation",
    "Trained",
    "UserError",
    "evaluate",
    "load",
    "load_data",
    "normal",
    "resume",
    "train",
    "uniform",
]
