"""The triplet loss by its definition; its margin and sphere; and that it learns."""

import pytest
import torch

import unweave as uw
from unweave.contract import Batch, DataInfo
from unweave.data import load_data
from unweave.methods.triplet import Triplet
from unweave.metrics import recall_at_1


def make(**arguments):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        method = Triplet(DataInfo((1, 8, 8), 100), latents=4, net="small", **arguments).double()
        images = torch.rand(3, 5, 1, 8, 8, dtype=torch.float64)
    return method, Batch(x=images[0], positive=images[1], negative=images[2])


def out(method, batch, margin):
    return method(batch, {}, Triplet.Hyper(torch.tensor(margin, dtype=torch.float64)), torch.tensor(0))


@pytest.mark.parametrize(("sphere", "margin"), [(True, 0.05), (False, 0.0)])
@torch.no_grad()
def test_loss_by_its_definition(sphere, margin):
    method, batch = make(sphere=sphere)
    points = []
    for images in (batch.x, batch.positive, batch.negative):
        z = method.embedding.encoder(images)
        points.append(z / z.norm(dim=1, keepdim=True) if sphere else z)
    terms = []
    for x, positive, negative in zip(*points):
        terms.append(max(0.0, float(((x - positive) ** 2).sum() - ((x - negative) ** 2).sum()) + margin))
    assert 0 < sum(term > 0 for term in terms) < 5  # on both sides of the hinge
    found = out(method, batch, margin)
    assert found.losses["model"].item() == pytest.approx(sum(terms) / 5)
    assert found.logs["active"].item() == pytest.approx(sum(term > 0 for term in terms) / 5)
    assert torch.allclose(method.representation().encode(batch.x), points[0])


def test_negatives_beyond_the_margin_have_no_gradient():
    method, batch = make()
    far = out(method, batch._replace(positive=batch.x), margin=0.0)
    (grad,) = torch.autograd.grad(far.losses["model"], [method.embedding.encoder[-1].weight])
    assert far.losses["model"] == 0 and far.logs["near"] == 0 and not grad.any()
    assert out(method, batch._replace(negative=batch.positive), margin=0.3).losses["model"].item() == pytest.approx(0.3)


def test_it_learns_to_find_the_same_digit(tmp_path):
    data = load_data("digits")
    index, recalls = torch.arange(data.size), []
    for steps in (1, 120):
        options = dict(steps=steps, batch=36, lr=1e-3, net="small", latents=3, device="cpu", out=tmp_path / str(steps))
        run = uw.train("triplet", data, supervision="triplets(by=['digit'])", **options)
        codes = run.encode(data.images(index))
        recalls.append(recall_at_1(codes, data.factors(index)[:, 0]))
        assert run.representation.decode is None and abs((codes**2).sum(1) - 1.0).max() < 1e-5
    assert recalls[0] < 0.6 and recalls[1] > 0.7, recalls
