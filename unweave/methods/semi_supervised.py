"""A label term for unsupervised methods (Locatello et al. 2020, *Disentangling Factors of Variation Using Few Labels*).

It is not a method but adds two settings to a method: with `semi_supervised`, `gamma_sup` times a distance between the
first latents of labelled images and their labels is added to the loss.
"""

import inspect
from collections.abc import Container
from typing import Annotated, Any, NamedTuple, get_type_hints

import torch
from torch import Tensor

from unweave.contract import DataInfo, HyperParam, Method, Out, all_phases, hyper_params, is_supervised
from unweave.errors import UserError, check_choice, invalid
from unweave.ops.label_terms import LABEL_TERMS

# The published weights multiply sums over the 64 labelled images of a batch, but our terms are means: with this factor
# a gamma_sup has the published effect for every batch size. Covariances are means in the paper too.
SUM_FACTORS = {"xent": 64.0, "l2": 64.0, "cov": 1.0}
GAMMA_SUP = HyperParam(4.0, "weight of the label term", paper="1, 2, 4, 6, 8, 16")
SEMI_SUPERVISED = inspect.Parameter("semi_supervised", inspect.Parameter.KEYWORD_ONLY, default="xent")


class LabelTerm(NamedTuple):
    """Forward hook of a method that adds the term to the loss of its player "model"."""

    name: str
    sizes: tuple[int, ...]  # number of classes of each labelled factor
    phase: str  # the phase whose loss it is added to

    def __call__(self, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Out) -> Out:
        batch, _, hyper, _ = args
        if kwargs.get("phase", "") != self.phase:
            return out
        mean_BZ, _ = method.representation().require("posterior")(batch.labelled)
        term = LABEL_TERMS[self.name](mean_BZ, batch.labels, self.sizes)
        weighted = SUM_FACTORS[self.name] * hyper.gamma_sup * term
        logs = {name: value + weighted if name == "loss" else value for name, value in out.logs.items()}
        losses = {**out.losses, "model": out.losses["model"] + weighted}
        return out._replace(losses=losses, logs={**logs, "label_loss": term})


def add_label_term(method: Method, name: str, data: DataInfo) -> None:
    """Add the label term of this name to the loss of a method, and what it needs to its batch."""
    check_choice("semi_supervised", name, LABEL_TERMS)
    if reason := _obstacle(method):
        context = f"{type(method).__name__} {reason}"
        raise invalid("semi_supervised", name, "used with a method like beta_vae", context=context)
    if len(data.labels) > method.latents:
        accepted = f"at least {len(data.labels)}, the number of labelled factors"
        raise invalid("latents", method.latents, accepted, hint="or choose factors with labels(factors=[...])")
    fields = get_type_hints(method.Hyper, include_extras=True) | {"gamma_sup": Annotated[Tensor, GAMMA_SUP]}
    method.Hyper = NamedTuple("Hyper", list(fields.items()))  # type: ignore[misc, assignment]
    method.needs = (*method.needs, "labelled", "labels")
    phase = next(phase for phase, players in all_phases(method).items() if "model" in players)
    method.register_forward_hook(LabelTerm(name, data.labels, phase), with_kwargs=True)  # type: ignore[arg-type]


def label_term_settings(
    cls: type[Method], given: Container[str]
) -> tuple[dict[str, inspect.Parameter], dict[str, HyperParam]]:
    """Return the constructor arguments and hyperparameters that the label term adds, if it is among the settings."""
    if "semi_supervised" in given:
        return {"semi_supervised": SEMI_SUPERVISED}, {"gamma_sup": GAMMA_SUP}
    if "gamma_sup" in given and "gamma_sup" not in hyper_params(cls):
        message = "gamma_sup is the weight of the label term; set semi_supervised=xent, l2 or cov too"
        raise UserError(message, argument="semi_supervised", accepted=tuple(LABEL_TERMS))
    return {}, {}


def accepts_label_term(cls: type[Method]) -> bool:
    """Return True if the method can be trained with `semi_supervised`."""
    try:
        with torch.device("meta"):
            return not _obstacle(cls(DataInfo((1, 64, 64), 1000)))  # type: ignore[call-arg]
    except UserError:  # it needs supervision, or does not define a representation
        return False


def _obstacle(method: Method) -> str:
    """Return why the label term cannot be added to this method, or ""."""
    if is_supervised(method.needs):
        return f"already needs {', '.join(field for field in method.needs if is_supervised([field]))}"
    if method.representation().posterior is None:
        return "has no posterior whose mean is the code"
    return "" if "model" in method.players else "has no player 'model'"
