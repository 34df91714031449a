"""Unweave: find the separate causes in your data. Train any disentangling method, score it, look at it."""

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, Representation, normal, uniform
from unweave.data import load_data
from unweave.errors import UserError
from unweave.evaluation.compare import score_runs
from unweave.evaluation.evaluate import Evaluation, evaluate, evaluate_arrays
from unweave.evaluation.predict import class_error, predict
from unweave.integrations.sklearn import Unweaver
from unweave.model import Diverged, TrainedModel, load
from unweave.training.sweep import expand, fit
from unweave.training.trainer import resume, train
from unweave.version import __version__

Knob = HyperParam
Trained = TrainedModel

__all__ = [
    "Batch",
    "DataInfo",
    "Diverged",
    "Evaluation",
    "HyperParam",
    "Knob",
    "Method",
    "Out",
    "Representation",
    "Trained",
    "TrainedModel",
    "Unweaver",
    "UserError",
    "__version__",
    "class_error",
    "evaluate",
    "evaluate_arrays",
    "expand",
    "fit",
    "load",
    "load_data",
    "normal",
    "predict",
    "resume",
    "score_runs",
    "train",
    "uniform",
]
