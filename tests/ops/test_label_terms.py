import math

import pytest
import torch

from unweave.ops.label_terms import (
    LABEL_TERMS,
    between_0_and_1,
    cross_covariance,
    off_diagonal_squares,
    standardised,
)

SIZES = (3, 6, 2)
LATENTS, BATCH = 5, 7


@pytest.fixture
def table():
    """Means [B, Z] and labels [B, L], of which four are unknown, three of them in one row."""
    draw = torch.Generator().manual_seed(0)
    mean = 2.0 * torch.randn(BATCH, LATENTS, generator=draw, dtype=torch.float64)
    labels = torch.stack([torch.randint(n, (BATCH,), generator=draw) for n in SIZES], dim=1)
    labels[0, 1], labels[4] = -1, -1
    return mean, labels


def number(label, n, term):
    """Return the target of class `label` of n, from the moments of n equally likely classes."""
    if term == "xent":
        return label / (n - 1)
    middle = sum(range(n)) / n
    return (label - middle) / math.sqrt(sum((c - middle) ** 2 for c in range(n)) / n)


def by_hand(mean, labels, term):
    mean, labels = mean.tolist(), labels.tolist()
    known = [
        [(b, number(labels[b][i], n, term)) for b in range(BATCH) if labels[b][i] >= 0] for i, n in enumerate(SIZES)
    ]
    if term == "cov":
        total = 0.0
        for i, rows in enumerate(known):
            middle = sum(y for _, y in rows) / len(rows)
            for j in range(LATENTS):
                centre = sum(mean[b][j] for b, _ in rows) / len(rows)
                cov = sum((mean[b][j] - centre) * (y - middle) for b, y in rows) / len(rows)
                total += cov**2 if i != j else 0.0
        return total
    total = 0.0
    for i, rows in enumerate(known):
        for b, y in rows:
            m = mean[b][i]
            says = 1 / (1 + math.exp(-m))
            total += (m - y) ** 2 if term == "l2" else -y * math.log(says) - (1 - y) * math.log(1 - says)
    return total / BATCH


@pytest.mark.parametrize("term", list(LABEL_TERMS))
def test_term_against_loops(table, term):
    assert LABEL_TERMS[term](*table, SIZES).item() == pytest.approx(by_hand(*table, term), rel=1e-9)


def test_places_of_classes():
    labels = torch.tensor([[0, 0, 0], [1, 5, 0], [2, 3, 0]])
    torch.testing.assert_close(
        between_0_and_1(labels, (3, 6, 1)), torch.tensor([[0.0, 0.0, 0.5], [0.5, 1.0, 0.5], [1.0, 0.6, 0.5]])
    )
    every = standardised(torch.arange(6)[:, None], (6,))
    torch.testing.assert_close(every.mean(), torch.tensor(0.0))
    torch.testing.assert_close(every.square().mean(), torch.tensor(1.0))
    assert standardised(torch.zeros(2, 1), (1,)).tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize("term", list(LABEL_TERMS))
def test_only_known_labels_and_their_latents_count(table, term):
    """Unknown labels have no gradient; with xent and l2, latents without a factor have none."""
    mean, labels = table
    mean = mean.clone().requires_grad_()
    (grad,) = torch.autograd.grad(LABEL_TERMS[term](mean, labels, SIZES), mean)
    assert (grad[4] == 0).all() and grad[:4].abs().sum() > 0
    if term != "cov":
        assert grad[0, 1] == 0 and (grad[:, 3:] == 0).all()
    nothing = LABEL_TERMS[term](mean, torch.full_like(labels, -1), SIZES)
    assert nothing == 0 and not torch.autograd.grad(nothing, mean)[0].any()


def test_best_codes():
    """The minimum of each term: logits of the targets, the targets, one latent per factor."""
    every = torch.cartesian_prod(torch.arange(3), torch.arange(4))
    place = between_0_and_1(every.double(), (3, 4)).clamp(1e-9, 1 - 1e-9)
    least = sum(-y * math.log(y) - (1 - y) * math.log(1 - y) for row in place.tolist() for y in row) / 12
    assert LABEL_TERMS["xent"](place.logit(), every, (3, 4)).item() == pytest.approx(least, abs=1e-6)
    spread = standardised(every.double(), (3, 4))
    assert LABEL_TERMS["l2"](spread, every, (3, 4)).item() == 0.0
    # The diagonal is free, in size and sign, and so is where a code begins.
    assert LABEL_TERMS["cov"](spread * torch.tensor([-3.0, 0.1]) + 5.0, every, (3, 4)).item() < 1e-20
    swapped = LABEL_TERMS["cov"](spread.flip(1), every, (3, 4))
    assert swapped.item() == pytest.approx(2.0)  # two covariances of 1 in the wrong places


def test_covariance_is_torchs(table):
    mean, labels = table
    target = standardised(labels.double(), SIZES)
    cov = cross_covariance(mean, target, torch.ones_like(target))
    both = torch.cov(torch.cat([mean, target], 1).T, correction=0)
    torch.testing.assert_close(cov, both[:LATENTS, LATENTS:])
    left = cov.clone().fill_diagonal_(0.0)
    torch.testing.assert_close(off_diagonal_squares(cov), left.square().sum())


@pytest.mark.parametrize("term", list(LABEL_TERMS))
def test_many_at_once(table, term):
    """With vmap over replicas it is the term of each."""
    mean, labels = table
    means, many = torch.stack([mean, 2 * mean, -mean]), torch.stack([labels, labels.flip(0), labels])
    found = torch.func.vmap(lambda m, y: LABEL_TERMS[term](m, y, SIZES))(means, many)
    expected = [LABEL_TERMS[term](m, y, SIZES) for m, y in zip(means, many, strict=True)]
    torch.testing.assert_close(found, torch.stack(expected))
