"""Unweave: find the separate causes in your data. Train any disentangling method, score it, look at it.

Names are imported on first use: `import unweave` alone does not import torch.
"""

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from unweave.old_paths import OldPathFinder
from unweave.version import __version__

if TYPE_CHECKING:
    from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, Representation, normal, uniform
    from unweave.contract import HyperParam as Knob
    from unweave.data import load_data
    from unweave.errors import UserError
    from unweave.evaluation.classification import class_error, predict
    from unweave.evaluation.compare import score_runs
    from unweave.evaluation.evaluate import Evaluation, evaluate, evaluate_arrays
    from unweave.integrations.sklearn import Unweaver
    from unweave.model import Diverged, TrainedModel, load
    from unweave.model import TrainedModel as Trained
    from unweave.training.sweep import expand, fit, resume_all
    from unweave.training.train import resume, train
else:
    _NAMES = {
        "contract": "Batch DataInfo HyperParam Method Out Representation normal uniform",
        "data": "load_data",
        "errors": "UserError",
        "evaluation.compare": "score_runs",
        "evaluation.evaluate": "Evaluation evaluate evaluate_arrays",
        "evaluation.classification": "class_error predict",
        "integrations.sklearn": "Unweaver",
        "model": "Diverged TrainedModel load",
        "training.sweep": "expand fit resume_all",
        "training.train": "resume train",
    }
    _SOURCES = {name: (module, name) for module, names in _NAMES.items() for name in names.split()}
    _SOURCES |= {"Knob": ("contract", "HyperParam"), "Trained": ("model", "TrainedModel")}  # older names

    def __getattr__(name: str) -> object:
        if name in _SOURCES:
            module, attribute = _SOURCES[name]
            globals()[name] = value = getattr(import_module(f"unweave.{module}"), attribute)
            return value
        if not name.startswith("_") and find_spec(f"unweave.{name}"):
            return import_module(f"unweave.{name}")
        raise AttributeError(f"module 'unweave' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*__all__, *(module.name for module in iter_modules(__path__))})


OldPathFinder.install()

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
    "resume_all",
    "score_runs",
    "train",
    "uniform",
]
