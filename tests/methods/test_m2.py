"""Everything here is computed again in NumPy, one image and one class at a time."""

import math

import numpy as np
import pytest
import torch
from raises import raises

import unweave as uw
from unweave.contract import Batch, DataInfo, Part
from unweave.methods.m2 import M2

SHAPE, CLASSES, LATENTS, BATCH = (1, 4, 4), 3, 2, 4


def weights(method):
    """The parameters by name, as arrays."""
    return {name: parameter.detach().numpy() for name, parameter in method.named_parameters()}


def softplus(values):
    return np.log1p(np.exp(values))


def likelihood_loss(w, x, y, z):
    hidden = softplus(w["decoder.0.weight"] @ np.concatenate([z, y]) + w["decoder.0.bias"])
    chance = 1 / (1 + np.exp(-(w["decoder.2.weight"] @ hidden + w["decoder.2.bias"])))
    return -sum(p * math.log(c) + (1 - p) * math.log(1 - c) for p, c in zip(x.ravel(), chance, strict=True))


def posterior(w, x, y):
    joined = w["encoder.trunk.1.weight"] @ x.ravel() + w["encoder.trunk.1.bias"] + w["encoder.label.weight"] @ y
    out = w["encoder.head.weight"] @ softplus(joined) + w["encoder.head.bias"]
    return out[:LATENTS], np.exp(out[LATENTS:])


def bound(w, x, label, eps):
    """L(x, y) = E[-log p(x|y,z)] - log p(y) + KL, with this noise."""
    y = np.eye(CLASSES)[label]
    mean, var = posterior(w, x, y)
    kl = sum(0.5 * (v + m * m - 1 - math.log(v)) for m, v in zip(mean, var, strict=True))
    return likelihood_loss(w, x, y, mean + np.sqrt(var) * eps) - math.log(1 / CLASSES) + kl


def chances(w, x):
    """q(y|x)."""
    hidden = softplus(w["classifier.0.1.weight"] @ x.ravel() + w["classifier.0.1.bias"])
    logits = w["classifier.2.weight"] @ hidden + w["classifier.2.bias"]
    return np.exp(logits) / np.exp(logits).sum()


def unlabelled_bound(w, x, eps):
    q = chances(w, x)
    return sum(q[y] * bound(w, x, y, eps) for y in range(CLASSES)) + sum(p * math.log(p) for p in q)


class Case:
    def __init__(self, *, size=1000, labelled=40, **arguments):
        self.draw, self.size, self.labelled = torch.Generator().manual_seed(1), size, labelled
        with torch.random.fork_rng():
            torch.manual_seed(0)
            info = DataInfo(SHAPE, size, (CLASSES,), labelled)
            self.method = M2(info, latents=LATENTS, **arguments).double()
        with torch.no_grad():
            for parameter in self.method.parameters():
                parameter += 0.1 * self.random(torch.randn, *parameter.shape)
        x, labels = self.random(torch.rand, 2, BATCH, *SHAPE), torch.tensor([[0], [2], [1], [2]])
        self.batch = Batch(x=x[0], labelled=x[1], labels=labels)
        kinds = {"normal": torch.randn, "uniform": torch.rand}
        sizes = {"B": BATCH, "Z": LATENTS}
        self.noise = {
            name: self.random(kinds[n.kind], *(sizes.get(d, d) for d in n.dims))
            for name, n in self.method.noise.items()
        }
        self.w = {name.removeprefix("autoencoder."): value for name, value in weights(self.method).items()}

    def random(self, kind, *shape):
        return kind(shape, generator=self.draw, dtype=torch.float64)

    def out(self, alpha=0.1, decay=1.0, **batch):
        hyper = self.method.Hyper(*torch.tensor([alpha, decay], dtype=torch.float64))
        return self.method(self.batch._replace(**batch), self.noise, hyper, torch.tensor(0))

    def by_hand(self):
        """Means of L, U and -log q(y|x) over the batch."""
        rows = range(BATCH)
        known, x, labels = self.batch.labelled.numpy(), self.batch.x.numpy(), self.batch.labels[:, 0].tolist()
        eps_labelled, eps = self.noise["eps_labelled"].numpy(), self.noise["eps"].numpy()
        labelled = np.mean([bound(self.w, known[i], labels[i], eps_labelled[i]) for i in rows])
        unlabelled = np.mean([unlabelled_bound(self.w, x[i], eps[i]) for i in rows])
        return labelled, unlabelled, np.mean([-math.log(chances(self.w, known[i])[labels[i]]) for i in rows])


def test_both_bounds_class_by_class():
    case = Case()
    logs, (labelled, unlabelled, cross) = case.out().logs, case.by_hand()
    assert logs["labelled"].item() == pytest.approx(labelled, rel=1e-10)
    assert logs["unlabelled"].item() == pytest.approx(unlabelled, rel=1e-10)
    assert logs["cross_entropy"].item() == pytest.approx(cross, rel=1e-10)


@pytest.mark.parametrize(("size", "labelled"), [(1000, 40), (60, 20), (50, 50)])
def test_the_loss_is_equation_9_over_the_number_of_images(size, labelled):
    """N_l times the mean of L, N_u times that of U, 0.1 N times that of the classifier's loss, the weights' prior."""
    case = Case(size=size, labelled=labelled)
    known, other, cross = case.by_hand()
    prior = 0.5 * sum((w**2).sum() for w in case.w.values())
    whole = labelled * known + (size - labelled) * other + 0.1 * size * cross + prior
    assert case.out().losses["model"].item() == pytest.approx(whole / size, rel=1e-10)


def test_alpha_and_decay_weigh_their_terms():
    case = Case()
    loss = case.out(alpha=0.0, decay=0.0).losses["model"]
    cross, prior = case.by_hand()[2], 0.5 * sum((w**2).sum() for w in case.w.values())
    assert (case.out(alpha=0.3, decay=0.0).losses["model"] - loss).item() == pytest.approx(0.3 * cross)
    assert (case.out(alpha=0.0, decay=2.0).losses["model"] - loss).item() == pytest.approx(2.0 * prior / case.size)


def test_unlabelled_images_have_no_weight_if_all_are_labelled():
    case = Case(size=50, labelled=50)
    assert case.out().losses["model"] == case.out(x=torch.zeros_like(case.batch.x)).losses["model"]


def test_the_batchs_expectation_is_the_mean_over_the_data():
    """Five images, two of them labelled: batches of one, averaged over every draw."""
    case = Case(size=5, labelled=2)
    images, eps = case.random(torch.rand, 5, *SHAPE), np.zeros(LATENTS)
    case.noise = {name: torch.zeros(1, LATENTS, dtype=torch.float64) for name in case.noise}
    found = []
    for i in range(2):
        for j in range(5):
            fields = dict(labelled=images[i, None], labels=torch.tensor([[i]]), x=images[j, None])
            found.append(case.out(alpha=0.0, decay=0.0, **fields).losses["model"].item())
    known = sum(bound(case.w, images[i].numpy(), i, eps) for i in range(2))
    other = np.mean([unlabelled_bound(case.w, image.numpy(), eps) for image in images])
    assert np.mean(found) == pytest.approx((known + 3 * other) / 5)


def test_the_code_is_the_expected_style_and_the_chances():
    case = Case()
    found, x = case.method.representation(), case.batch.x
    assert found.latents == LATENTS + CLASSES and found.posterior is None
    assert found.parts == (Part("style", LATENTS), Part("class", CLASSES, classes=True))
    codes, image = found.encode(x).detach().numpy(), x[1].numpy()
    q = chances(case.w, image)
    style = sum(q[y] * posterior(case.w, image, np.eye(CLASSES)[y])[0] for y in range(CLASSES))
    np.testing.assert_allclose(codes[1], np.concatenate([style, q]))
    (probability,) = found.classify(x)
    np.testing.assert_allclose(probability[1].detach().numpy(), q)


def test_a_one_among_zeros_decodes_as_that_class():
    case = Case()
    z, y = np.array([0.5, -1.0]), np.eye(CLASSES)[2]
    image = case.method.representation().decode(torch.tensor(np.concatenate([z, y]))[None])[0].detach().numpy()
    assert image.shape == SHAPE
    expected = -sum(math.log(c) for c in image.ravel())
    assert likelihood_loss(case.w, np.ones(SHAPE), y, z) == pytest.approx(expected)


def test_binary_images_are_drawn_with_the_grey_value_as_chance():
    case, grey = Case(binarize=True), Case()
    assert set(case.noise) == {"eps", "eps_labelled", "pixels", "pixels_labelled"}
    sure = {"x": case.batch.x.round(), "labelled": case.batch.labelled.round()}  # 0 and 1 are certain
    grey.noise = {name: case.noise[name] for name in grey.noise}
    assert case.out(**sure).losses["model"].item() == pytest.approx(grey.out(**sure).losses["model"].item())
    assert case.out().losses["model"] != grey.out(**{n: getattr(case.batch, n) for n in sure}).losses["model"]


def test_few_labels_are_enough_to_classify_the_digits(tmp_path):
    digits = uw.load_data("digits")
    options = dict(steps=250, batch=32, lr=2e-3, latents=10, out=tmp_path / "run", device="cpu")
    run = uw.train("m2", digits, supervision="labels(n=100, balanced=True)", **options)
    index = torch.arange(digits.size)
    (chance,) = run.representation.classify(digits.images(index))
    wrong = (chance.argmax(1) != digits.factors(index)[:, 0]).float().mean().item()
    assert wrong < 0.25  # 0.9 by guessing


def test_user_errors():
    one = DataInfo((1, 8, 8), 100, (10,), 50)
    with raises("supervision"):
        M2(one._replace(labels=()))
    with raises("supervision"):
        M2(one._replace(labels=(3, 4)))
    for latents in (0, -20):
        with raises("latents", value=latents):
            M2(one, latents=latents)
    with raises("net", value="other", accepted=["kingma"]):
        M2(one, net="other")
    with raises("likelihood", value="other", accepted=["bernoulli", "gaussian", "laplace"]):
        M2(one, likelihood="other")
