"""Any method as a scikit-learn transformer, for pipelines and grid search. Nothing is written to disk."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data
from torch import Tensor

from unweave.config import RunConfig, resolve_settings, split_options
from unweave.config.devices import find_device
from unweave.config.optimizers import resolve_optimizers
from unweave.contract import UNSUPERVISED_FIELDS, Method, stages, static_arguments
from unweave.data.supervision import NoSupervision
from unweave.data.user.arrays import Arrays
from unweave.errors import check_integer, invalid
from unweave.model import Diverged
from unweave.nn.likelihoods import LIKELIHOODS, Likelihood
from unweave.runs import MemoryRun
from unweave.training.build import find_method, probe_method
from unweave.training.cohort import Run
from unweave.training.trainer import train_all

Shape = tuple[int, int, int]
Record = dict[str, float]
_RECORDS = 100  # entries of losses_
_CHUNK = 128  # rows encoded at once


class Unweaver(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Learn disentangled codes of data with any method that needs no supervision.

    X is [n_samples, n_features], or images [n, C, H, W] or [n, H, W]. Rows are images too if `shape` is given,
    (C, H, W) or (H, W); otherwise they are vectors, which need net="mlp". Losses are sums in nats with unit variance
    about the output, so scale the features first, for instance with StandardScaler.

    Parameters
    ----------
    method : name such as "beta_vae" or "factor_vae", or a Method class
    latents : size of the code
    net : "mlp", or for images "locatello", "burgess", "kim", "small"
    likelihood : "gaussian", "laplace", or "bernoulli" for data in 0..1
    steps, batch : number of training steps, and observations in each
    lr : learning rate, a number or "linear(start, end, steps)"; None is the method's default
    shape : image shape of the rows of X; None leaves X as it is
    device : "auto", "cpu", "cuda", "cuda:N" or "mps"
    precision : "float32", "tf32" or "bf16"
    engine : "loop" starts at once; "graph" compiles first, then runs faster on a GPU
    settings : further settings of the method, such as {"beta": 4}
    random_state : seed of all random numbers

    Attributes
    ----------
    method_ : the trained module
    losses_ : log records; each has the means over the steps up to its "step"
    shape_ : image shape (C, H, W) of the method
    n_features_in_ : number of features of an observation
    """

    def __init__(
        self,
        *,
        method: str | type[Method] = "beta_vae",
        latents: int = 10,
        net: str = "mlp",
        likelihood: str = "gaussian",
        steps: int = 2000,
        batch: int = 64,
        lr: float | str | None = 1e-3,
        shape: tuple[int, ...] | None = None,
        device: str = "auto",
        precision: str = "float32",
        engine: str = "loop",
        settings: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.method = method
        self.latents = latents
        self.net = net
        self.likelihood = likelihood
        self.steps = steps
        self.batch = batch
        self.lr = lr
        self.shape = shape
        self.device = device
        self.precision = precision
        self.engine = engine
        self.settings = settings
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Unweaver:
        """Train on X; y is ignored. If this fails, the estimator keeps its previous state."""
        fitted = object.__new__(type(self))
        fitted.__dict__.update(self.__dict__)
        fitted._fit(X)
        self.__dict__ = fitted.__dict__  # all attributes at once
        return self

    def _fit(self, X: Any) -> None:
        """Train on X and set the attributes."""
        flat, image = _flatten(X)
        rows = validate_data(self, flat, dtype=np.float32)
        cls = find_method(self.method)
        shape = _image_shape(self.shape, image, rows.shape[1])
        data = Arrays(np.array(rows).reshape(len(rows), *shape), copy=False)
        config = self._config(cls, data)
        name = config.arguments.get("likelihood")
        accepted, low, high = LIKELIHOODS.get(str(name), Likelihood), float(rows.min()), float(rows.max())
        if low < accepted.low or high > accepted.high:
            wanted = f"in {accepted.low:g}..{accepted.high:g} for likelihood {name!r}"
            raise invalid("X", (low, high), wanted, hint="rescale X or use gaussian")
        self.method_, self.losses_ = self._train(cls, config, data)
        self.shape_ = shape
        self._sample_shape = tuple(np.shape(X)[1:]) if image else (rows.shape[1],)
        self._n_features_out = self.method_.representation().latents

    def _config(self, cls: type[Method], data: Arrays) -> RunConfig:
        """Check every parameter and return the configuration of the run."""
        own = {"latents": self.latents, "net": self.net, "likelihood": self.likelihood}
        further = dict(self.settings or {})
        if twice := sorted(set(own) & set(further)):
            name = twice[0]
            raise invalid("settings", name, f"without {name}", hint=f"use the parameter {name}={further[name]!r}")
        known = static_arguments(cls)
        arguments, hyper = resolve_settings(cls, {**{n: v for n, v in own.items() if n in known}, **further})
        steps = check_integer("steps", self.steps, 1)
        given = {"lr": self.lr, "batch": self.batch, "precision": self.precision, "engine": self.engine}
        options, _ = split_options({**given, "steps": steps, "seed": _seed(self.random_state), "supervision": "none"})
        return RunConfig(
            method=cls.__name__,
            arguments=arguments,
            hyper=hyper,
            data=data.name,
            data_options=data.options,
            optimizers=resolve_optimizers(cls, self.lr),
            **options | {"device": find_device(self.device, self.precision), "log_every": max(1, steps // _RECORDS)},
        )

    def _train(self, cls: type[Method], config: RunConfig, data: Arrays) -> tuple[Method, list[Record]]:
        """Return the trained method and its log records."""
        for stage in stages(cls):
            needs = stage.needs if stage is not cls else probe_method(cls, data.info, config.arguments).needs
            if missing := [field for field in needs if field not in UNSUPERVISED_FIELDS[:2]]:
                hint = f"this one needs {' and '.join(missing)}; use unweave.train on a data set"
                raise invalid("method", self.method, "a method that needs no supervision, such as beta_vae", hint=hint)
        folder = MemoryRun()
        (result,) = train_all([Run(folder, config, cls, data, NoSupervision(text="none"))])
        if isinstance(result, Diverged):
            context = f"training diverged: {result.quantity} is not finite by step {result.step}"
            raise invalid("lr", self.lr, "smaller", context=context)
        records = [{name: value for name, value in record.items() if name != "stage"} for record in folder.records]
        return result.method, records

    def transform(self, X: Any) -> np.ndarray:
        """Return the codes [n_samples, latents], float32."""
        check_is_fitted(self, "method_")
        flat, image = _flatten(X)
        if image and image != self.shape_:
            raise invalid("X", image, f"images of the fitted shape {self.shape_}")
        rows = validate_data(self, flat, dtype=np.float32, reset=False)
        return self._apply(self.method_.representation().require("encode"), rows.reshape(len(rows), *self.shape_))

    def inverse_transform(self, Z: Any) -> np.ndarray:
        """Return the decoded observations of codes [n_samples, latents], in the form of the fitted X."""
        check_is_fitted(self, "method_")
        codes = check_array(Z, dtype=np.float32, input_name="Z")
        if codes.shape[1] != self._n_features_out:
            raise invalid("Z", codes.shape, f"an array with {self._n_features_out} columns")
        decoded = self._apply(self.method_.representation().require("decode"), codes)
        return decoded.reshape(len(codes), *self._sample_shape)

    def _apply(self, function: Callable[[Tensor], Tensor], values: np.ndarray) -> np.ndarray:
        """Apply the function to chunks of equal size, so that the result of a row does not depend on other rows.

        Matrix products of different sizes round differently.
        """
        device = next(self.method_.parameters()).device
        parts = []
        for start in range(0, len(values), _CHUNK):
            part = torch.tensor(values[start : start + _CHUNK])
            padded = torch.zeros(_CHUNK, *part.shape[1:])
            padded[: len(part)] = part
            with torch.no_grad():
                parts.append(function(padded.to(device))[: len(part)].float().cpu())
        return torch.cat(parts).numpy()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """A pickle opens on machines without the device it was trained on."""
        state = dict(super().__getstate__())
        if "method_" in state:
            state["method_"] = copy.deepcopy(state["method_"]).cpu()
        return state


def _flatten(X: Any) -> tuple[Any, Shape | None]:
    """Return X as rows, and the shape of its images if it has any."""
    if isinstance(X, list | tuple):
        X = np.asarray(X)
    if getattr(X, "ndim", 2) <= 2:
        return X, None
    pixels = np.asarray(X)
    if pixels.ndim > 4:
        raise invalid("X", pixels.shape, "rows, or images [n, C, H, W] or [n, H, W]")
    image = (1, *pixels.shape[1:]) if pixels.ndim == 3 else pixels.shape[1:]
    if image[0] > 4 and image[2] in (1, 3, 4):
        raise invalid("X", pixels.shape, "images with channels first", hint="use X.transpose(0, 3, 1, 2)")
    return pixels.reshape(len(pixels), math.prod(image)), image


def _image_shape(wanted: tuple[int, ...] | None, image: Shape | None, features: int) -> Shape:
    """Return the image shape of the method: the one that was given, or that of X, or a vector."""
    if wanted is None:
        return image or (1, 1, features)
    content = f"images of shape {image}" if image else f"{features} features"
    try:
        shape = tuple(int(side) for side in wanted)
        shape = (1, *shape) if len(shape) == 2 else shape
        fits = len(shape) == 3 and math.prod(shape) == features and image in (None, shape)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise invalid("shape", wanted, f"(C, H, W) or (H, W) that fits X, which has {content}")
    return shape  # type: ignore[return-value]


def _seed(random_state: Any) -> int:
    """Return an integer unchanged; None or a RandomState draws a seed."""
    if isinstance(random_state, int | np.integer):
        return check_integer("random_state", random_state, 0)
    return int(check_random_state(random_state).randint(2**31 - 1))
