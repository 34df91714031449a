"""The estimates of a graph's model against sums over every class and integrals over every Gaussian.

Shape letters: B batch, L labels, S samples, G points of a grid.
"""

import itertools
import math

import pytest
import torch
from raises import raises
from torch.distributions import Bernoulli, Categorical, Normal, kl_divergence

from unweave.nn.graphical_model import Conditional, GraphicalModel, GraphNoise, best_samples
from unweave.nn.graphical_spec import read_graph

PAIR = "q(i|x) q(l|i,x) q(z|i,l,x); p(x|i,l,z); labels: i, l; z: normal(2)"
AFTER = "q(z|x) q(y|z,x); p(x|y,z) p(z|y); labels: y; z: normal(1)"
CLASSES = "q(a|x) q(b|a,x); p(x|a,b) p(b|a); labels: b; a: classes(3)"


class Case:
    """A graph's model with weights at random on a few images, and its factors as distributions, one row at a time."""

    def __init__(self, text, labels, *, batch=2, discrete="enumerate"):
        self.generator = torch.Generator().manual_seed(3)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            graph = read_graph(text, labels, 2)
            self.model = GraphicalModel(graph, (1, 8, 8), "small", "bernoulli", discrete).double()
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter += 0.1 * self.draw(torch.randn, *parameter.shape)
            for parameter in self.model.q.parameters():
                parameter *= 2.0
        self.x = self.draw(torch.rand, batch, 1, 8, 8)

    def draw(self, kind, *shape):
        return kind(shape, generator=self.generator, dtype=torch.float64)

    def estimate(self, labels, samples=1, eps=None, pick=None):
        return self.model(self.x, torch.tensor(labels), samples, GraphNoise(eps, pick, torch.tensor(0.5)))

    def factor(self, side, name, row, **values):
        """q or p of this variable given numbers of classes, and vectors or grids of Gaussian values."""
        v = self.model.graph.variable(name)
        parents = v.encoder if side == "q" else v.decoder
        if not parents:
            zero = torch.zeros(v.size, dtype=torch.float64)
            return Categorical(logits=zero) if v.classes else Normal(zero, 1.0)
        inputs = [self.value(parent, row, values) for parent in parents]
        width = max(len(value) for value in inputs)
        network = getattr(self.model, side)[f"{side}_{name}"]
        weight = torch.cat([layer.weight for layer in network.inputs], 1)
        bias = sum(layer.bias for layer in network.inputs)
        hidden = torch.cat([value.expand(width, -1) for value in inputs], 1) @ weight.T + bias
        output = (network.output(hidden.relu())).squeeze(0)
        if v.classes:
            return Categorical(logits=output)
        mean, logvar = output.chunk(2, -1)
        return Normal(mean, (0.5 * logvar).exp())

    def value(self, name, row, values):
        if name == "x":
            return self.model.encoder(self.x[row : row + 1]).relu()
        v = self.model.graph.variable(name)
        if v.classes:
            return torch.eye(v.size, dtype=torch.float64)[values[name]][None]
        return values[name].reshape(-1, v.size)

    def nll(self, row, **values):
        inputs = [self.value(name, row, values) for name in self.model.graph.image]
        width = max(len(value) for value in inputs)
        output = self.model.decoder(torch.cat([value.expand(width, -1) for value in inputs], 1))
        return -Bernoulli(logits=output, validate_args=False).log_prob(self.x[row]).flatten(1).sum(1).squeeze(0)


def states(case, row, eps, i=None, l=None):  # noqa: E741
    """(q(i, l|x), terms of the bound) for every state of PAIR that agrees with what is given."""
    for first in range(2) if i is None else (i,):
        for second in range(3) if l is None else (l,):
            qi, ql = case.factor("q", "i", row), case.factor("q", "l", row, i=first)
            qz = case.factor("q", "z", row, i=first, l=second)
            nll = case.nll(row, i=first, l=second, z=qz.mean + qz.stddev * eps)
            log_qi, log_ql = qi.log_prob(torch.tensor(first)), ql.log_prob(torch.tensor(second))
            kl = kl_divergence(qz, Normal(0.0, 1.0)).sum() + log_qi + log_ql + math.log(2) + math.log(3)
            yield log_qi, log_ql, nll, kl


@pytest.mark.parametrize("observed", [(-1, -1), (1, -1), (-1, 2), (0, 1)])
def test_partly_observed_rows_are_sums_over_the_rest(observed):
    """Any of two labels may be unknown: averages over q of the other given it, and a bound of what is observed."""
    c = Case(PAIR, (2, 3))
    eps = c.draw(torch.randn, 1, 2, 2)
    found = c.estimate([observed, observed], eps=eps)
    i, l = (None if label < 0 else label for label in observed)  # noqa: E741
    for row in range(2):
        log_qi, log_ql, nll, kl = (torch.stack(t) for t in zip(*states(c, row, eps[0, row], i, l), strict=True))
        joint = (log_qi + log_ql).softmax(0)  # of the unobserved given the observed
        proposal = (log_qi if i is None else 0.0) + (log_ql if l is None else 0.0) + torch.zeros(len(nll))
        log_w = (0.0 if i is None else log_qi) + (0.0 if l is None else log_ql) + torch.zeros(len(nll))
        assert proposal.exp().sum().item() == pytest.approx(1.0)
        torch.testing.assert_close(found.nll_B[row], joint @ nll)
        torch.testing.assert_close(found.kl_B[row], joint @ kl)
        torch.testing.assert_close(found.log_w_B[row], (proposal.exp() * log_w).sum())


FACES = "q(r|x) q(l|x) q(i|x) q(s|l,i); p(x|r,l,i,s); labels: i, l; r: normal(2), s: normal(3)"


def face_states(c, row, eps, observed):
    """(log q of what is unknown, -log p(x|...), log q/p) of FACES for every identity and light that agree."""
    standard, qi, ql, qr = Normal(0.0, 1.0), *(c.factor("q", name, row) for name in ("i", "l", "r"))
    for i, l in itertools.product(range(3), range(4)):  # noqa: E741
        if all(known in (-1, value) for known, value in zip(observed, (i, l), strict=True)):
            qs = c.factor("q", "s", row, i=i, l=l)
            r, s = qr.mean + qr.stddev * eps[:2], qs.mean + qs.stddev * eps[2:]
            log_q = qi.logits[i] + ql.logits[l]
            kl = kl_divergence(qr, standard).sum() + kl_divergence(qs, standard).sum() + log_q + math.log(12)
            yield log_q, c.nll(row, r=r, l=l, i=i, s=s), kl


def test_faces_of_which_some_is_known():
    """Rows with both labels, with either and with none: the sums over all identities and lights that are left."""
    c, observed = Case(FACES, (3, 4), batch=4), [[1, 2], [-1, 3], [0, -1], [-1, -1]]
    eps = c.draw(torch.randn, 1, 4, 5)
    found = c.estimate(observed, eps=eps)
    for row, (i, l) in enumerate(observed):  # noqa: E741
        log_q, nll, kl = (torch.stack(t) for t in zip(*face_states(c, row, eps[0, row], (i, l)), strict=True))
        chance = log_q.softmax(0)
        torch.testing.assert_close(found.nll_B[row], chance @ nll)
        torch.testing.assert_close(found.kl_B[row], chance @ kl)
        known = [c.factor("q", name, row).logits[v] for name, v in (("i", i), ("l", l)) if v >= 0]
        torch.testing.assert_close(found.log_w_B[row], sum(known, torch.zeros(()).double()))


def test_rows_are_independent_of_each_other():
    """The estimate of a row does not depend on the other rows."""
    c = Case(PAIR, (2, 3))
    eps = c.draw(torch.randn, 1, 2, 2)
    mixed = c.estimate([[1, -1], [-1, 2]], eps=eps)
    for row, observed in enumerate([[1, -1], [-1, 2]]):
        same = c.estimate([observed, observed], eps=eps)
        for a, b in zip(mixed, same, strict=True):
            torch.testing.assert_close(a[row], b[row])


def integrals(c, row, y):
    """Of AFTER over a grid of z: means under q(z|x,y) of -log p(x|y,z) and of log q/p, under q(z|x) of log q(y|z,x)."""
    qz = c.factor("q", "z", row)
    z_G = qz.mean + qz.stddev * torch.linspace(-9.0, 9.0, 1801, dtype=torch.float64)
    proposal_G = qz.log_prob(z_G).softmax(0)
    log_y_G = c.factor("q", "y", row, z=z_G).log_prob(torch.tensor(y))
    posterior_G = (qz.log_prob(z_G) + log_y_G).softmax(0)
    log_prior_G = c.factor("p", "z", row, y=y).log_prob(z_G) - math.log(3)
    kl_G = qz.log_prob(z_G) + log_y_G - log_prior_G
    nll_G = c.nll(row, y=y, z=z_G)
    return (posterior_G * nll_G).sum(), (posterior_G * kl_G).sum(), (proposal_G * log_y_G).sum()


def spread(samples):
    """Evenly spread normal noise [S, 2, 1], with which a sum over samples is a good integral."""
    quantile = (torch.arange(samples, dtype=torch.float64) + 0.5) / samples
    return Normal(0.0, 1.0).icdf(quantile)[:, None, None].expand(-1, 2, 1)


def test_importance_sampling_converges():
    """If the label depends on a Gaussian, the labelled term is an integral, which more samples approximate better."""
    c = Case(AFTER, (3,))
    with torch.no_grad():
        exact = torch.stack([torch.stack(integrals(c, row, y)) for row, y in enumerate((0, 2))], 1)
        errors = {}
        for samples, times in ((1, 64), (16, 32), (256, 8)):
            draws = [c.draw(torch.randn, samples, 2, 1) for _ in range(times)]
            found = [torch.stack(c.estimate([[0], [2]], samples, eps)[:3]) for eps in draws]
            errors[samples] = (torch.stack(found) - exact).abs().mean(0)
        finest = torch.stack(c.estimate([[0], [2]], 1024, spread(1024))[:3])
    assert (errors[16] < 0.5 * errors[1]).all() and (errors[256] < 0.7 * errors[16]).all(), errors
    torch.testing.assert_close(finest, exact, atol=0.03, rtol=0.0)


def test_unobserved_rows_integrate_too():
    """The bound without labels, with a prior that depends on what the variable causes: sums over y of integrals."""
    c = Case(AFTER, (3,))
    assert c.model.exact == {"z": False, "y": True}
    with torch.no_grad():
        found = c.estimate([[-1], [-1]], 1024, spread(1024))
        for row in range(2):
            qz = c.factor("q", "z", row)
            z_G = qz.mean + qz.stddev * torch.linspace(-9.0, 9.0, 901, dtype=torch.float64)
            nll = kl = 0.0
            for y in range(3):
                log_y_G = c.factor("q", "y", row, z=z_G).log_prob(torch.tensor(y))
                weight_G = qz.log_prob(z_G).softmax(0) * log_y_G.exp()
                prior_G = c.factor("p", "z", row, y=y).log_prob(z_G) - math.log(3)
                nll += (weight_G * c.nll(row, y=y, z=z_G)).sum()
                kl += (weight_G * (qz.log_prob(z_G) + log_y_G - prior_G)).sum()
            assert found.nll_B[row].item() == pytest.approx(nll.item(), abs=0.01)
            assert found.kl_B[row].item() == pytest.approx(kl.item(), abs=0.05)
    assert (found.log_w_B == 0).all()


@pytest.mark.parametrize("label", [-1, 1])
def test_sampled_classes_have_the_enumerated_value(label):
    """Only gradients are relaxed: the terms, averaged over samples, equal the sum over all states."""
    observed = [[label]] * 2
    exact = Case(CLASSES, (2,)).estimate(observed)
    c = Case(CLASSES, (2,), discrete="relaxed")
    with torch.no_grad():
        found = c.estimate(observed, 4096, pick=c.draw(torch.rand, 4096, 2, 5))
    for a, b in zip(found, exact, strict=True):
        torch.testing.assert_close(a, b.detach(), atol=0.05, rtol=0.0)


def test_sampled_classes_pass_gradients_on():
    """The image's likelihood has a gradient for the factor of every sampled class."""
    c = Case(CLASSES, (2,), discrete="relaxed")
    nll = c.estimate([[-1], [-1]], pick=c.draw(torch.rand, 1, 2, 5)).nll_B.sum()
    for name in ("q_a", "q_b"):
        grad = torch.autograd.grad(nll, c.model.q[name].output.weight, retain_graph=True)[0]
        assert grad.isfinite().all() and grad.abs().sum() > 0


def test_closed_form_divergences():
    assert all(Case(FACES, (2, 3)).model.exact.values())
    assert Case(PAIR, (2, 3)).model.exact == {"i": False, "l": True, "z": True}
    assert Case("q(z|x) q(c|z); p(x|z) p(z|c); labels: c; z: normal", (2,)).model.exact == {"z": False, "c": True}


def test_the_best_number_of_samples_depends_on_the_graph():
    apart = read_graph("q(i|x) q(l|x) q(s|l,i); p(x|i,l,s); labels: i, l; s: normal", (2, 3), 2)
    for discrete, pair in (("enumerate", 1), ("relaxed", 8)):  # a label that is unknown is drawn only if relaxed
        assert best_samples(read_graph(PAIR, (2, 3), 2), discrete) == pair
        assert best_samples(read_graph(AFTER, (3,), 2), discrete) == 8
        assert best_samples(read_graph(CLASSES, (2,), 2), discrete) == 8
        assert best_samples(apart, discrete) == 1


def test_a_label_below_one_that_is_drawn_needs_samples():
    """With one sample of i the weight is one; with more samples, the mean approaches the sum."""
    summed, c = Case(PAIR, (2, 3), batch=1), Case(PAIR, (2, 3), batch=1, discrete="relaxed")
    exact, image, errors = summed.estimate([[-1, 2]], eps=torch.zeros(1, 1, 2).double()).kl_B.item(), c.x, {}
    with torch.no_grad():
        for samples, rows in ((1, 1500), (8, 200), (64, 25)):
            c.x = image.expand(rows, 1, 8, 8)
            eps, pick = c.draw(torch.randn, samples, rows, 2), c.draw(torch.rand, samples, rows, 5)
            found = c.estimate([[-1, 2]] * rows, samples, eps, pick).kl_B
            errors[samples] = abs(found.mean().item() - exact)
    assert errors[8] < 0.5 * errors[1] and errors[64] < 0.2 * errors[1], errors


def test_code_and_labels_in_its_place():
    """Labels replace inferred classes, also as parents of other variables."""
    c = Case("q(s|l,i) q(r|x) q(l|x) q(i|x); p(x|r,l,i,s); labels: i, l; r: normal(2), s: normal(3)", (2, 4))
    code = c.model.encode(c.x)
    parts = c.model.split(code)
    assert [tuple(part) for part in c.model.parts()] == [
        ("s", 3, False, None, True), ("r", 2, False, None, False), ("l", 4, True, 1, False), ("i", 2, True, 0, False),
    ]  # fmt: skip
    assert code.shape == (2, 11) and torch.equal(torch.cat(list(parts.values()), 1), code)
    torch.testing.assert_close(parts["l"].sum(1), torch.ones(2).double())
    observed = c.model.split(c.model.encode(c.x, torch.tensor([[-1, 3], [-1, 3]])))
    assert torch.equal(observed["l"], torch.eye(4).double()[[3, 3]])
    assert torch.equal(observed["r"], parts["r"]) and torch.equal(observed["i"], parts["i"])
    assert not torch.equal(observed["s"], parts["s"])
    images = c.model.decode(code)
    assert images.shape == c.x.shape and images.min() >= 0 and images.max() <= 1


def test_what_follows_from_a_changed_code():
    """Changing a class in a code updates the variables that depend on it and not on the image."""
    text = "q(s|l,i) q(t|s) q(r|x) q(l|x) q(i|x); p(x|r,l,i,t); labels: i, l; r: normal(2), s: normal(3), t: normal(1)"
    c = Case(text, (2, 4))
    code = c.model.encode(c.x)
    torch.testing.assert_close(c.model.follow(code), code)
    changed = code.clone()
    changed[:, 6:10] = torch.eye(4).double()[[3, 0]]
    torch.testing.assert_close(c.model.follow(changed), c.model.encode(c.x, torch.tensor([[-1, 3], [-1, 0]])))
    kept = Case("q(y|x) q(z|x,y) q(k) q(w|k); p(x|y,z,w); labels: y; k: classes(2), z: normal(1), w: normal(1)", (3,))
    assert [part.name for part in kept.model.parts() if part.follows] == ["w"]
    changed = kept.model.encode(kept.x)
    changed[:, :3] = torch.eye(3).double()[2]
    torch.testing.assert_close(kept.model.follow(changed), changed)  # the style stays


def test_draws_from_a_learned_prior():
    """Standard normal samples become samples of p given the class and earlier variables; the others are unchanged."""
    text = "q(w|x) q(y|x) q(z|x) q(r|x); p(x|r,w) p(w|z) p(z|y); labels: y; w: normal(1), z: normal(2), r: normal(2)"
    c = Case(text, (3,))
    code = torch.cat([c.draw(torch.randn, 2, 1), torch.eye(3).double()[[2, 0]], c.draw(torch.randn, 2, 4)], 1)
    found = c.model.from_prior(code)
    for row, y in enumerate((2, 0)):
        pz = c.factor("p", "z", row, y=y)
        z = pz.mean + pz.stddev * code[row, 4:6]
        pw = c.factor("p", "w", row, z=z)
        w = pw.mean + pw.stddev * code[row, :1]
        torch.testing.assert_close(found[row], torch.cat([w, code[row, 1:4], z, code[row, 6:]]))
    kept = Case(CLASSES, (2,)).model  # classes are chosen, not drawn
    assert kept.learned == [] and torch.equal(kept.from_prior(code[:, :5]), code[:, :5])


def test_a_variable_without_parents():
    c = Case("q(c) q(z|x,c); p(x|c,z); labels: c; z: normal(1)", (3,))
    assert c.estimate([[-1], [0]], eps=c.draw(torch.randn, 1, 2, 1)).kl_B.isfinite().all()
    assert c.model.encode(c.x).shape == (2, 4)


def test_parents_add_up_as_one_layer():
    network = Conditional({"a": 2, "b": 3}, 4)
    a, b = torch.randn(5, 1, 2), torch.randn(1, 6, 3)
    both = torch.cat([a.expand(5, 6, 2), b.expand(5, 6, 3)], -1)
    weight = torch.cat([layer.weight for layer in network.inputs], 1)
    expected = network.output((both @ weight.T + sum(layer.bias for layer in network.inputs)).relu())
    torch.testing.assert_close(network({"a": a, "b": b}), expected)


def test_user_errors():
    with raises("discrete", value="enumerate", accepted=["relaxed"]):
        Case(PAIR, (38, 64))
    with raises("discrete", value="sampled", accepted=["enumerate", "relaxed"]):
        Case(PAIR, (2, 3), discrete="sampled")
