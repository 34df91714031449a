"""Few labels: any unsupervised VAE with its first latents tied to labelled factors.

Not a method but a term that is added to one (Locatello et al. 2020, *Disentangling Factors of Variation Using Few
Labels*, ICLR): `few_labels(BetaVAE)` is beta-VAE with two more settings, `semi_supervised` and `gamma_sup`.
"""

from __future__ import annotations

import functools
import inspect
from typing import Annotated, Any, NamedTuple, get_type_hints

import torch
from torch import Tensor

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, all_phases, is_supervised, static_arguments
from unweave.errors import UserError, check_choice
from unweave.nn.autoencoder import AutoEncoder
from unweave.ops.label_terms import LABEL_TERMS

# The published weights multiply sums over the 64 labelled observations of a step where ours are means: with this
# factor the same gamma_sup says the same, and says it for every batch size. Covariances are means there too.
SUMMED = {"xent": 64.0, "l2": 64.0, "cov": 1.0}
GAMMA_SUP = HyperParam(4.0, "weight of the distance of codes to labels", paper="1, 2, 4, 6, 8, 16")


@functools.cache
def few_labels(cls: type[Method]) -> type[Method]:
    """A class of the same name: the method, and gamma_sup times a distance of labelled codes to their labels."""
    if "semi_supervised" in static_arguments(cls):
        return cls

    class WithLabels(cls):  # type: ignore[misc, valid-type]
        __doc__ = f"{cls.__doc__} With labels of some observations: Locatello et al. 2020."
        Hyper = _hyper(cls)  # type: ignore[assignment]
        equation = f"{cls.equation} + gamma_sup R(mu(x_labelled), y)"
        needs: tuple[str, ...]

        def __init__(self, data: DataInfo, *, semi_supervised: str = "xent", **arguments: Any) -> None:
            super().__init__(data, **arguments)
            _check(self, semi_supervised, data)
            self.semi_supervised, self.label_sizes = semi_supervised, data.labels
            self.needs = (*self.needs, "labelled", "labels")
            # A model that moves in several phases is told in the first of them, once a step.
            self.label_phase = next(phase for phase, movers in all_phases(self).items() if "model" in movers)

        def forward(self, batch: Batch, noise: Any, hyper: Any, step: Tensor, **named: str) -> Out:
            out = super().forward(batch, noise, hyper, step, **named)
            if named.get("phase", "") != self.label_phase:
                return out
            mean_BZ, _ = self.autoencoder.posterior(batch.labelled)
            term = LABEL_TERMS[self.semi_supervised](mean_BZ, batch.labels, self.label_sizes)  # type: ignore[arg-type]
            weighted = SUMMED[self.semi_supervised] * hyper.gamma_sup * term
            logs = {name: value + weighted if name == "loss" else value for name, value in out.logs.items()}
            losses = {**out.losses, "model": out.losses["model"] + weighted}
            return out._replace(losses=losses, logs={**logs, "label_loss": term})

    WithLabels.__name__, WithLabels.__qualname__, WithLabels.__module__ = cls.__name__, cls.__qualname__, cls.__module__
    WithLabels.__init__.__signature__ = _signature(cls, WithLabels)  # type: ignore[attr-defined]
    return WithLabels


def accepts_labels(cls: type[Method]) -> bool:
    """Whether `few_labels` of this method can be trained."""
    try:
        with torch.device("meta"):
            return not _refusal(cls(DataInfo((1, 64, 64), 1000)))  # type: ignore[call-arg]
    except UserError:  # it is told something else already
        return False


def _hyper(cls: type[Method]) -> type:
    """The method's hyper-parameters and one more."""
    fields = get_type_hints(cls.Hyper, include_extras=True) | {"gamma_sup": Annotated[Tensor, GAMMA_SUP]}
    return NamedTuple("Hyper", list(fields.items()))  # type: ignore[misc, return-value]


def _signature(cls: type[Method], told: type[Method]) -> inspect.Signature:
    """Of the constructor: the method's own, and `semi_supervised`."""
    own = inspect.signature(cls.__init__)
    more = inspect.signature(told.__init__).parameters["semi_supervised"]
    return own.replace(parameters=[*own.parameters.values(), more])


def _refusal(method: Method) -> str:
    """Why this method cannot be told labels of a few observations, if so."""
    if is_supervised(method.needs):
        return f"it needs {', '.join(field for field in method.needs if is_supervised([field]))} already"
    encoder = getattr(method, "autoencoder", None)
    if not isinstance(encoder, AutoEncoder) or method.representation().posterior != encoder.posterior:
        return "its code is not the mean of a posterior"
    if "model" not in method.players:
        return "it has no player 'model'"
    return ""


def _check(method: Method, semi_supervised: str, data: DataInfo) -> None:
    check_choice("semi_supervised", semi_supervised, LABEL_TERMS)
    if why := _refusal(method):
        name = type(method).__name__
        raise UserError(
            f"semi_supervised '{semi_supervised}' does not go with {name}: {why}; use it with a method like beta_vae"
        )
    if len(data.labels) > method.latents:
        raise UserError(
            f"latents {method.latents} are fewer than the {len(data.labels)} labelled factors; "
            f"use latents={len(data.labels)} or more, or name fewer in labels(factors=[...])"
        )
