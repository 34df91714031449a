import math

import numpy as np
import pytest
import torch
from raises import raises
from torch.distributions import Bernoulli, Categorical, Normal, kl_divergence

import unweave as uw
from unweave.contract import Batch, DataInfo
from unweave.data.user.arrays import Arrays
from unweave.methods.generalized_m2 import GeneralizedM2
from unweave.methods.m2 import M2

CLASSES, BATCH = 3, 4
AFTER = "q(z|x) q(y|z,x); p(x|y,z); labels: y; z: normal(2)"


class Case:
    """A small method in double precision with weights at random, a labelled and an unlabelled batch, and noise."""

    def __init__(self, labels=(CLASSES,), classes=None, **arguments):
        self.draw = torch.Generator().manual_seed(1)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            info = DataInfo((1, 8, 8), 1000, labels=labels, labelled=50)
            self.method_info = info
            self.method = GeneralizedM2(info, net="small", **{"latents": 2, **arguments}).double()
        with torch.no_grad():
            for parameter in self.method.parameters():
                parameter += 0.15 * self.random(torch.randn, *parameter.shape)
        x, labelled = self.random(torch.rand, BATCH, 1, 8, 8), self.random(torch.rand, BATCH, 1, 8, 8)
        chosen = torch.tensor(classes if classes is not None else [[0], [2], [1], [2]])
        self.batch = Batch(x=x, labelled=labelled, labels=chosen)
        kinds = {"normal": torch.randn, "uniform": torch.rand}
        self.noise = {
            name: self.random(kinds[n.kind], *(BATCH if d == "B" else d for d in n.dims))
            for name, n in self.method.noise.items()
        }

    def random(self, kind, *shape):
        return kind(shape, generator=self.draw, dtype=torch.float64)

    def out(self, gamma=1.0, alpha=2.0, temperature=0.5):
        hyper = (torch.tensor(v, dtype=torch.float64) for v in (gamma, alpha, temperature))
        return self.method(self.batch, self.noise, self.method.Hyper(*hyper), torch.tensor(0))


def m2_networks(model):
    """q(y|x), q(z|x,y) and p(x|y,z) from the weights of a model of that structure, with plain layers on vectors."""

    def dense(name, *inputs):
        network = model.q[name]
        weight = torch.cat([layer.weight for layer in network.inputs], 1)
        hidden = torch.cat(inputs) @ weight.T + sum(layer.bias for layer in network.inputs)
        return hidden.relu() @ network.output.weight.T + network.output.bias

    def q_y(image):
        return Categorical(logits=dense("q_y", model.encoder(image[None])[0].relu()))

    def q_z(image, y):
        mean, logvar = dense("q_z", model.encoder(image[None])[0].relu(), torch.eye(CLASSES).double()[y]).chunk(2)
        return Normal(mean, (0.5 * logvar).exp())

    def p_x(y, z):
        return Bernoulli(
            logits=model.decoder(torch.cat([torch.eye(CLASSES).double()[y], z])[None])[0], validate_args=False
        )

    return q_y, q_z, p_x


def m2_bound(networks, image, y, eps):
    """-L(x, y) of Kingma et al. 2014, eq. 6, with a uniform class and one sample of z."""
    _, q_z, p_x = networks
    q = q_z(image, y)
    nll = -p_x(y, q.mean + q.stddev * eps).log_prob(image).sum()
    return nll + math.log(CLASSES) + kl_divergence(q, Normal(0.0, 1.0)).sum()


@pytest.mark.parametrize("graph", ["q(y|x) q(z|x,y); p(x|y,z); labels: y; z: normal(2)", None])
def test_m2_is_a_special_case(graph):
    """Class by class and image by image: eqs. 6 to 8 of Kingma et al. 2014 plus the weighted cross-entropy (eq. 9)."""
    c = Case(**({} if graph is None else {"graph": graph}))
    networks = q_y, _, _ = m2_networks(c.method.autoencoder)
    unlabelled, labelled = [], []
    for image, eps in zip(c.batch.x, c.noise["eps"][0], strict=True):
        q = q_y(image)
        bounds = torch.stack([m2_bound(networks, image, y, eps) for y in range(CLASSES)])
        unlabelled.append((q.probs * bounds).sum() - q.entropy())
    for image, label, eps in zip(c.batch.labelled, c.batch.labels, c.noise["eps_labelled"][0], strict=True):
        labelled.append(m2_bound(networks, image, label.item(), eps) - 7.0 * q_y(image).log_prob(label[0]))
    expected = torch.stack(unlabelled).mean() + 3.0 * torch.stack(labelled).mean()
    assert c.method.samples == 1
    torch.testing.assert_close(c.out(gamma=3.0, alpha=7.0).losses["model"], expected)


class Plain(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.forward = function


def test_it_is_the_method_m2():
    """With equal networks, the losses of both methods differ only in the weights of the two batches."""
    c, share, alpha = Case(), 50 / 1000, 0.3
    model, m2 = c.method.autoencoder, M2(c.method_info, net="small", latents=2).double()
    m2.autoencoder.classifier = Plain(lambda x: model.q["q_y"](model._given(x)))
    m2.autoencoder.encoder = Plain(
        lambda x, y_BNY: model.q["q_z"]({"x": model._given(x)["x"][:, None], "y": y_BNY}).chunk(2, 2)
    )
    m2.autoencoder.decoder = Plain(lambda zy: model.decoder(torch.cat([zy[:, 2:], zy[:, :2]], 1)))
    noise = {name: drawn[0] for name, drawn in c.noise.items()}
    hyper = m2.Hyper(*(torch.tensor(v, dtype=torch.float64) for v in (alpha, 0.0)))
    theirs = m2(c.batch, noise, hyper, torch.tensor(0)).losses["model"]
    ours = c.out(gamma=share / (1 - share), alpha=alpha / share).losses["model"]
    torch.testing.assert_close((1 - share) * ours, theirs)


def test_loss_is_the_weighted_sum_over_samples():
    """Labels after z: the estimate of the paper written out sample by sample, each weight q(y|z_s, x)."""
    c = Case(graph=AFTER, samples=5)
    model, labelled = c.method.autoencoder, []
    for row, (image, label) in enumerate(zip(c.batch.labelled, c.batch.labels[:, 0], strict=True)):
        values = model._given(image[None])
        mean, logvar = model.q["q_z"](values).flatten().chunk(2)
        q, weights, logs, ratios = Normal(mean, (0.5 * logvar).exp()), [], [], []
        for eps in c.noise["eps_labelled"][:, row]:
            z = mean + q.stddev * eps
            log_w = model.q["q_y"]({**values, "z": z[None]}).flatten().log_softmax(0)[label]
            code = torch.cat([torch.eye(CLASSES).double()[label], z])
            log_x = Bernoulli(logits=model.decoder(code[None])[0], validate_args=False).log_prob(image).sum()
            log_p = log_x + Normal(0.0, 1.0).log_prob(z).sum() - math.log(CLASSES)
            weights.append(log_w.exp()), logs.append(log_w), ratios.append(log_p - log_w - q.log_prob(z).sum())
        first = sum(w * r for w, r in zip(weights, ratios, strict=True)) / sum(weights)
        labelled.append(-first - (1.0 + 2.0) * sum(logs) / 5)
    torch.testing.assert_close(c.out().logs["labelled"], torch.stack(labelled).mean())


def test_the_default_number_of_samples_depends_on_the_graph():
    assert Case().method.samples == 1 and Case(graph=AFTER).method.samples == 8
    pair = {"graph": "q(i|x) q(y|x,i); p(x|i,y); labels: i, y", "labels": (2, CLASSES), "classes": [[-1, 0]] * BATCH}
    assert Case(**pair).method.samples == 1 and Case(**pair, discrete="relaxed").method.samples == 8
    assert Case(samples=4).noise["eps_labelled"].shape == (4, BATCH, 2)


def test_equal_samples_count_as_one():
    """In M2 all importance weights are equal: the mean over samples of what each one gives."""
    c = Case(samples=3)
    whole, alone = c.out().logs["labelled"], []
    for eps in c.noise["eps_labelled"]:
        one = Case(samples=1)
        one.noise = {**c.noise, "eps_labelled": eps[None]}
        alone.append(one.out().logs["labelled"])
    torch.testing.assert_close(whole, torch.stack(alone).mean())


def test_unknown_labels_make_a_row_unlabelled():
    """Without known labels the labelled term is the bound of the unlabelled one."""
    c = Case(classes=[[-1]] * BATCH)
    c.batch = c.batch._replace(labelled=c.batch.x)
    c.noise["eps_labelled"] = c.noise["eps"]
    logs = c.out(alpha=1000.0).logs
    torch.testing.assert_close(logs["labelled"], logs["recon"] + logs["kl"])
    assert logs["cross_entropy"].item() == 0.0 and logs["accuracy"].item() == 1.0


def test_accuracy_is_of_the_labels_that_are_known():
    """The accuracy over all labels is that of `classify`, which does not use the other label."""
    graph = "q(i|x) q(l|i,x) q(z|x); p(x|i,l,z); labels: i, l; z: normal"
    c = Case(labels=(2, 5), classes=[[0, 4]] * BATCH, graph=graph)
    guess = torch.stack([p.argmax(1) for p in c.method.classify(c.batch.labelled)], 1)
    known = guess.clone()
    known[0, 0], known[1, 1], known[2], known[3, 1] = 1 - known[0, 0], (known[1, 1] + 1) % 5, -1, -1
    c.batch = c.batch._replace(labels=known)
    assert c.out().logs["accuracy"].item() == pytest.approx(1 - 2 / 5)


def test_classify_in_the_order_of_the_labels():
    graph = "q(l|x) q(z|x) q(i|l,x); p(x|i,l,z); labels: i, l; z: normal"
    c = Case(labels=(2, 5), classes=[[0, 4]] * BATCH, graph=graph)
    found = c.method.representation()
    code = found.encode(c.batch.x)
    assert code.shape == (BATCH, found.latents) == (BATCH, 9)
    assert [(part.name, part.classes) for part in found.parts] == [("l", True), ("z", False), ("i", True)]
    i, l = found.classify(c.batch.x)  # noqa: E741
    assert torch.equal(i, code[:, 7:]) and torch.equal(l, code[:, :5])
    torch.testing.assert_close(i.sum(1), torch.ones(BATCH).double())
    assert found.decode(code).shape == c.batch.x.shape


def test_only_a_learned_prior_is_declared():
    assert Case().method.representation().from_prior is None
    learned = Case(graph="q(y|x) q(z|x,y); p(x|y,z) p(z|y); labels: y; z: normal(2)").method
    code = torch.eye(5).double()[:3]  # every class, and the middle of its prior
    means = learned.autoencoder.p["p_z"]({"y": code[:, :3]})[:, :2]
    torch.testing.assert_close(learned.representation().from_prior(code), torch.cat([code[:, :3], means], 1))


class Encoder(torch.nn.Module):
    def __init__(self, method):
        super().__init__()
        self.method = method

    def forward(self, x):
        return self.method.representation().encode(x)


def test_an_exported_encoder_takes_any_number_of_images():
    c = Case(graph="q(c) q(z|x,c) q(y|z,x); p(x|c,y,z); labels: y; c: classes(2), z: normal(2)")
    sizes = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(Encoder(c.method), (c.batch.x[:2],), dynamic_shapes=sizes).module()
    torch.testing.assert_close(program(c.batch.x), c.method.representation().encode(c.batch.x))


INVALID = [
    ({"samples": -1}, "samples"),
    ({"latents": 0}, "latents"),
    ({"labels": (3, 2)}, "graph"),
    ({"graph": "q(y|x)"}, "graph"),
    ({"discrete": "some"}, "discrete"),
    ({"likelihood": "poisson"}, "likelihood"),
]


@pytest.mark.parametrize(("arguments", "argument"), INVALID)
def test_user_errors(arguments, argument):
    with raises(argument):
        Case(**arguments)


def test_labels_are_required():
    with pytest.raises(uw.UserError):
        uw.train(GeneralizedM2, "rooms(size=8)", net="small", steps=1, out="never")


def bars():
    """8 x 8 images of a bar in one of four places (labelled) and of one of ten strengths (not)."""
    place, strength = (a.ravel() for a in np.meshgrid(np.arange(4), np.arange(10), indexing="ij"))
    images = np.zeros((40, 1, 8, 8), np.float32)
    for row, (p, s) in enumerate(zip(place, strength, strict=True)):
        images[row, :, 2 * p : 2 * p + 2] = 0.4 + 0.06 * s
    return Arrays(images, np.stack([place, strength], 1), names=["place", "strength"])


@pytest.mark.parametrize("discrete", ["enumerate", "relaxed"])
def test_learns_the_class_from_few_labels(discrete, tmp_path):
    """From ten labels it predicts the other classes, and the class determines the place of the decoded bar."""
    data = bars()
    settings = {"net": "small", "latents": 2, "discrete": discrete, "lr": 3e-3, "batch": 16, "steps": 120}
    words = "labels(n=10, factors=['place'], seed=2)"
    model = uw.train(GeneralizedM2, data, supervision=words, out=tmp_path / "run", **settings).method
    images, place = data.images(torch.arange(40)), data.factors(torch.arange(40))[:, 0]
    with torch.no_grad():
        right = (model.classify(images)[0].argmax(1) == place).float().mean()
        codes = model.autoencoder.encode(images[:4], torch.arange(4)[:, None])
        brightest = model.autoencoder.decode(codes).mean(3).squeeze(1).unflatten(1, (4, 2)).mean(2).argmax(1)
    assert right > 0.9 and brightest.tolist() == [0, 1, 2, 3]
