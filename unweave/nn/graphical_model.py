"""A variational autoencoder with the variables and dependencies of a graphical model, some of them partly observed.

Every factor is a small network. The factors of q share the features of one image encoder. Values of variables have axes
[S, K, B, size]; axes along which a value is constant have length 1.

Shape letters: B batch, S samples, K joint states of the categorical variables (1 if they are sampled), L labels,
F features, D coordinates of all Gaussians, N of all categorical variables, C channels, H height, W width.
"""

import math
from collections.abc import Mapping
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor, nn

from unweave.contract import Part
from unweave.errors import UserError, check_choice
from unweave.nn.graphical_spec import IMAGE, GraphicalModelSpec, Variable
from unweave.nn.likelihoods import find_likelihood
from unweave.nn.networks import Shape, build_networks, init_weights
from unweave.nn.precision import at_least_float32
from unweave.ops.divergence import kl_gaussians, log_gaussian, reparametrize
from unweave.ops.partial_labels import one_hot
from unweave.ops.relaxed import straight_through

FEATURES, HIDDEN = 256, 128
MOST_STATES = 256  # the decoder runs once for each joint state


class GraphNoise(NamedTuple):
    """Random numbers of one pass."""

    eps_SBD: Tensor | None  # for Gaussian variables
    uniform_SBN: Tensor | None  # for sampled classes
    temperature: Tensor  # of the gradients of sampled classes


class Estimate(NamedTuple):
    """Result of one pass, averaged over q of the unobserved variables given the observed ones."""

    nll_B: Tensor  # -log p(x|variables) in nats, summed over pixels
    kl_B: Tensor  # log q(variables|x) - log p(variables)
    log_w_B: Tensor  # bound of log q(observed|x); 0 if nothing is observed
    predicted_BL: Tensor  # the most probable class of each labelled variable given the image


class _Drawn(NamedTuple):
    """A value of every variable, and the outputs of q."""

    values: dict[str, Tensor]
    outputs: dict[str, Tensor]  # of the factors of q
    known: dict[str, Tensor]  # labelled variable -> True for the observations that have its label [B, 1]
    log_state: Tensor  # log-probability of each joint state [S, K, B]; 0 if states are sampled
    log_w: Tensor  # log-probability of the observed variables given the others [S, K, B]


class Conditional(nn.Module):
    """One factor: maps the values of the parents to the parameters of the variable's distribution.

    Each parent has its own linear layer, and their outputs are added. This equals one layer of all parents, but is
    computed along the axes of each parent only.
    """

    def __init__(self, parents: Mapping[str, int], outputs: int) -> None:
        super().__init__()
        self.parents = tuple(parents)
        self.inputs = nn.ModuleList(nn.Linear(size, HIDDEN) for size in parents.values())
        self.output = nn.Linear(HIDDEN, outputs)
        init_weights(self)

    def forward(self, values: Mapping[str, Tensor]) -> Tensor:
        hidden = [_by_rows(layer, values[name]) for name, layer in zip(self.parents, self.inputs, strict=True)]
        return at_least_float32(_by_rows(self.output, sum(hidden[1:], hidden[0]).relu()))


def _by_rows(layer: nn.Module, values: Tensor) -> Tensor:
    """Apply the layer to the last axis as one product of two matrices; with more axes, weights would be copied."""
    if values.ndim == 2:
        return layer(values)
    return layer(values.flatten(0, -2)).unflatten(0, values.shape[:-1])


class GraphicalModel(nn.Module):
    """The factors of q and p, an image encoder for q and an image decoder for p(x|...)."""

    def __init__(self, graph: GraphicalModelSpec, shape: Shape, net: str, likelihood: str, discrete: str) -> None:
        super().__init__()
        self.graph, self.likelihood, self.enumerated = graph, find_likelihood(likelihood), discrete == "enumerate"
        self.sizes = {v.name: v.size for v in graph.variables}
        self.normals = _slices([v for v in graph.variables if not v.classes])
        self.classes = _slices([v for v in graph.variables if v.classes])
        self.states = _count_states(graph, discrete)
        self.exact = {v.name: _has_exact_kl(graph, v) for v in graph.variables}
        self.encoder = build_networks(net, shape, FEATURES // 2)[0]
        self.decoder = build_networks(net, shape, sum(self.sizes[name] for name in graph.image))[1]
        sizes = {IMAGE: FEATURES, **self.sizes}
        outputs = {v.name: v.size if v.classes else 2 * v.size for v in graph.variables}
        parents = {v.name: {n: sizes[n] for n in v.encoder} for v in graph.variables}
        # A variable without parents in q has a constant input.
        self.q = nn.ModuleDict({f"q_{n}": Conditional(p or {"": 1}, outputs[n]) for n, p in parents.items()})
        priors = {v.name: {n: sizes[n] for n in v.decoder} for v in graph.variables if v.decoder}
        self.p = nn.ModuleDict({f"p_{n}": Conditional(p, outputs[n]) for n, p in priors.items()})

    def forward(self, x_BCHW: Tensor, labels_BL: Tensor, samples: int, noise: GraphNoise) -> Estimate:
        """Self-normalised importance sampling of q(unobserved|x, observed); a label of -1 is unobserved."""
        given = self._given(x_BCHW)
        drawn = self._draw(given, labels_BL, samples, noise)
        nll = self._nll(x_BCHW, drawn)
        kl = sum((self._kl(v, drawn) for v in self.graph.variables), torch.zeros_like(drawn.log_w))
        weight = (drawn.log_state + drawn.log_w).flatten(0, 1).softmax(0).view_as(drawn.log_w)
        log_w_B = (drawn.log_state.exp() * drawn.log_w).sum(1).mean(0)
        means = self._means(given)
        predicted = [means[v.name].argmax(1).expand(x_BCHW.shape[0]) for v in self.graph.labelled]
        return Estimate((weight * nll).sum((0, 1)), (weight * kl).sum((0, 1)), log_w_B, torch.stack(predicted, 1))

    def _draw(self, given: dict[str, Tensor], labels_BL: Tensor, samples: int, noise: GraphNoise) -> _Drawn:
        """Set every variable, after its parents: observed, enumerated, or drawn from q."""
        values = {name: value[None, None] for name, value in given.items()}
        zero = values[""].new_zeros(samples, self.states, len(labels_BL))
        drawn = _Drawn(values, {}, {}, zero, zero)
        for v in map(self.graph.variable, self.graph.order):
            drawn.outputs[v.name] = output = self.q[f"q_{v.name}"](values)
            if v.classes:
                drawn = self._draw_class(v, output.log_softmax(-1), labels_BL, noise, drawn)
            else:
                eps_SBD = noise.eps_SBD[..., self.normals[v.name]].unsqueeze(1)  # type: ignore[index]
                mean, logvar = output.chunk(2, -1)
                values[v.name] = reparametrize(mean, logvar, eps_SBD)
        return drawn

    def _draw_class(self, v: Variable, log_q: Tensor, labels_BL: Tensor, noise: GraphNoise, drawn: _Drawn) -> _Drawn:
        """Set a categorical variable. If it is observed, all its states are the label, with equal weights."""
        free = self._state(v, log_q) if self.enumerated else self._sample(v, log_q, noise)
        if v.label is None:
            drawn.values[v.name] = free
            is_known = log_q.new_zeros(())
        else:
            drawn.known[v.name] = known_B1 = labels_BL[:, v.label, None] >= 0
            label = one_hot(labels_BL[:, v.label], log_q[0, 0])
            drawn.values[v.name] = torch.where(known_B1, label, free)
            is_known = known_B1.squeeze(1).to(log_q.dtype)
        log_value = (drawn.values[v.name] * log_q).sum(-1)
        share = (1.0 - is_known) * log_value - is_known * math.log(v.size) if self.enumerated else 0.0
        return drawn._replace(log_state=drawn.log_state + share, log_w=drawn.log_w + is_known * log_value)

    def _state(self, v: Variable, log_q: Tensor) -> Tensor:
        """Return the class of this variable in each of the K joint states [1, K, 1, size]."""
        names = list(self.classes)
        step = math.prod(self.sizes[name] for name in names[names.index(v.name) + 1 :])
        class_K = torch.arange(self.states, device=log_q.device) // step % v.size
        return one_hot(class_K, log_q[0, 0])[None, :, None]

    def _sample(self, v: Variable, log_q: Tensor, noise: GraphNoise) -> Tensor:
        uniform_SBN = noise.uniform_SBN[..., self.classes[v.name]].unsqueeze(1)  # type: ignore[index]
        return straight_through(log_q, uniform_SBN, noise.temperature)

    def _kl(self, v: Variable, drawn: _Drawn) -> Tensor:
        """Return log q - log p of one variable, in closed form if possible, otherwise sampled."""
        q, value = drawn.outputs[v.name], drawn.values[v.name]
        p = self.p[f"p_{v.name}"](drawn.values) if v.decoder else torch.zeros_like(q)
        if not v.classes:
            q_pair, p_pair = q.chunk(2, -1), p.chunk(2, -1)
            if self.exact[v.name]:
                return kl_gaussians(*q_pair, *p_pair).sum(-1)
            return (log_gaussian(value, *q_pair) - log_gaussian(value, *p_pair)).sum(-1)
        log_ratio = q.log_softmax(-1) - p.log_softmax(-1)
        at_value = (value * log_ratio).sum(-1)
        if not self.exact[v.name]:
            return at_value
        expected = (q.softmax(-1) * log_ratio).sum(-1)
        return expected if v.label is None else torch.where(drawn.known[v.name].squeeze(1), at_value, expected)

    def _nll(self, x_BCHW: Tensor, drawn: _Drawn) -> Tensor:
        """Return -log p(x|...) [S, K, B]."""
        axes = drawn.log_w.shape
        code = torch.cat([drawn.values[name].expand(*axes, -1) for name in self.graph.image], -1).flatten(0, -2)
        rows = x_BCHW.expand(axes[0] * axes[1], *x_BCHW.shape).flatten(0, 1)
        return self.likelihood.nll(rows, self.decoder(code)).view(axes)

    def _given(self, x_BCHW: Tensor) -> dict[str, Tensor]:
        """Return the inputs of q: the features of the image, and a constant."""
        features_BF = at_least_float32(self.encoder(x_BCHW)).relu()
        return {IMAGE: features_BF, "": features_BF.new_ones(1, 1)}

    def encode(self, x_BCHW: Tensor, labels_BL: Tensor | None = None) -> Tensor:
        """Return means and class probabilities [B, all sizes], where those of parents replace their values.

        Labels of 0 or more replace the inferred probabilities, also as parents.
        """
        values = self._means(self._given(x_BCHW), labels_BL)
        return torch.cat([values[v.name].expand(x_BCHW.shape[0], -1) for v in self.graph.variables], 1)

    def _means(self, given: dict[str, Tensor], labels_BL: Tensor | None = None) -> dict[str, Tensor]:
        """Return the mean or the class probabilities of every variable; one row if it has no parents."""
        values = dict(given)
        for v in map(self.graph.variable, self.graph.order):
            output = self.q[f"q_{v.name}"](values)
            values[v.name] = output.softmax(-1) if v.classes else output.chunk(2, -1)[0]
            if v.label is not None and labels_BL is not None:
                label_B = labels_BL[:, v.label]
                values[v.name] = torch.where(label_B[:, None] >= 0, one_hot(label_B, output), values[v.name])
        return values

    def decode(self, code_BZ: Tensor) -> Tensor:
        """Return the mean image of p(x|...)."""
        parts = self.split(code_BZ)
        return self.likelihood.mean(self.decoder(torch.cat([parts[name] for name in self.graph.image], 1)))

    def split(self, code_BZ: Tensor) -> dict[str, Tensor]:
        """Return the coordinates of a code by variable."""
        return dict(zip(self.sizes, code_BZ.split(list(self.sizes.values()), 1), strict=True))

    def parts(self) -> tuple[Part, ...]:
        return tuple(Part(v.name, v.size, v.classes, v.label, _follows(v)) for v in self.graph.variables)

    def follow(self, code_BZ: Tensor) -> Tensor:
        """Return the code with every Gaussian whose parents in q are other variables recomputed from them."""
        values = self.split(code_BZ)
        for v in map(self.graph.variable, self.graph.order):
            if _follows(v):
                values[v.name] = self.q[f"q_{v.name}"](values).chunk(2, -1)[0]
        return torch.cat([values[v.name] for v in self.graph.variables], 1)

    @property
    def learned(self) -> list[Variable]:
        """The Gaussians with a learned prior, parents first."""
        return [v for v in map(self.graph.variable, self.graph.learned) if not v.classes]

    def from_prior(self, code_BZ: Tensor) -> Tensor:
        """Turn a code whose Gaussians are standard normal samples into a sample of p given its classes."""
        values = self.split(code_BZ)
        for v in self.learned:
            mean, logvar = self.p[f"p_{v.name}"](values).chunk(2, -1)
            values[v.name] = reparametrize(mean, logvar, values[v.name])
        return torch.cat([values[v.name] for v in self.graph.variables], 1)


def _slices(variables: list[Variable]) -> dict[str, slice]:
    """Return the slice of the noise that each variable uses."""
    ends = accumulate(v.size for v in variables)
    return {v.name: slice(end - v.size, end) for v, end in zip(variables, ends, strict=True)}


def _count_states(graph: GraphicalModelSpec, discrete: str) -> int:
    check_choice("discrete", discrete, ("enumerate", "relaxed"))
    sizes = {v.name: v.size for v in graph.variables if v.classes}
    count = math.prod(sizes.values())
    if discrete == "enumerate" and count > MOST_STATES:
        listed = ", ".join(f"{name} {size}" for name, size in sizes.items())
        message = f"discrete 'enumerate' needs {count} joint states ({listed}), more than {MOST_STATES}; use 'relaxed'"
        raise UserError(message, argument="discrete", value=discrete, accepted=("relaxed",))
    return count if discrete == "enumerate" else 1


def _follows(v: Variable) -> bool:
    """Return True if the variable is a Gaussian whose parents in q are other variables, not the image."""
    return not v.classes and bool(v.encoder) and IMAGE not in v.encoder


def _has_exact_kl(graph: GraphicalModelSpec, v: Variable) -> bool:
    """Return True if no descendant in q is labelled or a parent of the variable in p."""
    below = graph.descendants(v.name)
    labelled = {other.name for other in graph.labelled}
    return not below & (labelled | set(v.decoder))


def best_samples(graph: GraphicalModelSpec, discrete: str) -> int:
    """Return 1 if all samples have the same importance weight, otherwise 8.

    The weights are equal if no labelled variable depends on a sampled one. A labelled variable is sampled too, for
    observations without its label, unless its classes are enumerated.
    """
    labelled = {v.name for v in graph.labelled}
    drawn = [v.name for v in graph.variables if v.label is None or discrete == "relaxed"]
    return 8 if any(graph.descendants(name) & labelled for name in drawn) else 1
