"""Train one run, or resume it: `unweave.train` and `unweave.resume`."""

import inspect
from pathlib import Path
from typing import Any

from unweave.config import format_value, train_parameters
from unweave.contract import Method
from unweave.data import Dataset
from unweave.errors import UserError
from unweave.model import Diverged, TrainedModel
from unweave.training.prepare import dry_run, prepare
from unweave.training.progress import ProgressCallback
from unweave.training.sweep import reopen
from unweave.training.trainer import Result, train_all


def train(
    method: str | type[Method],
    data: str | Dataset = "sprites",
    *,
    out: str | Path | None = None,
    observe: ProgressCallback | None = None,
    **options: Any,
) -> TrainedModel:
    """Train a method on a data set into a run folder and return the model.

    `options` are the fields of `RunConfig` that are declared as options, such as steps=20_000, and the settings of the
    method, such as beta=4. `observe` is called with a `Progress` after each log record.
    """
    run = prepare(method, data, out=out, **options)
    dry_run(run)
    return _raise_if_diverged(train_all([run], observe=observe)[0])


def resume(
    path: str | Path,
    *,
    method: type[Method] | None = None,
    data: Dataset | None = None,
    device: str | None = None,
    steps: int | None = None,
    observe: ProgressCallback | None = None,
) -> TrainedModel:
    """Continue an interrupted run, or extend one that kept its state to `steps`; return a finished one unchanged."""
    run = reopen(path, method=method, data=data, device=device, steps=steps)
    return _raise_if_diverged(train_all([run], observe=observe)[0])


def _raise_if_diverged(result: Result) -> TrainedModel:
    if isinstance(result, Diverged):
        lr, where = result.config.lr, f"by step {result.step} of run '{result.folder.path}'"
        shown = "the default" if lr is None else format_value(lr) if isinstance(lr, tuple) else lr
        accepted = f"smaller than {shown}, or clip given, such as clip=10"
        message = f"training diverged: {result.quantity} is not finite {where}; lr must be {accepted}"
        raise UserError(message, argument="lr", value=lr, accepted=accepted)
    return result


def _signature() -> inspect.Signature:
    """Return the signature of `train` with its options and their defaults."""
    own = list(inspect.signature(train).parameters.values())
    settings = inspect.Parameter("settings", inspect.Parameter.VAR_KEYWORD, annotation=Any)
    return inspect.Signature([*own[:-1], *train_parameters(), settings], return_annotation=TrainedModel)


train.__signature__ = _signature()  # type: ignore[attr-defined]
