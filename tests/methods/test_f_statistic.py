"""The F-statistic loss by comparison with scipy; what does not change it; and a short training."""

import itertools

import numpy as np
import pytest
import torch
from raises import raises
from scipy import stats

import unweave as uw
from unweave.contract import Batch, DataInfo
from unweave.data import load_data
from unweave.methods.f_statistic import FStatistic
from unweave.metrics import recall_at_1

CLASSES, MEMBERS, LATENTS = 4, 3, 5


def make(d=2, latents=LATENTS):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        method = FStatistic(DataInfo((1, 8, 8), 100, members=MEMBERS), latents=latents, net="small", d=d).double()
    groups = torch.rand(CLASSES, MEMBERS, 1, 8, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return method, groups


def loss(method, groups, ids):
    return method(Batch(groups=groups, group_id=torch.tensor(ids)), {}, (), torch.tensor(0))


def by_scipy(z_BGZ, ids, d):
    """-log P(F < F_k) of the d largest, summed, mean over pairs of different classes."""
    losses = []
    for i, j in itertools.combinations(range(len(ids)), 2):
        if ids[i] != ids[j]:
            f = [stats.f_oneway(z_BGZ[i, :, k], z_BGZ[j, :, k])[0] for k in range(z_BGZ.shape[2])]
            chances = np.sort(stats.f.cdf(f, 1, 2 * z_BGZ.shape[1] - 2))
            losses.append(-np.log(chances[-d:]).sum())
    return np.mean(losses)


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("ids", [[0, 1, 2, 3], [0, 1, 0, 3]], ids=["distinct", "one twice"])
def test_loss_is_scipys(d, ids):
    method, groups = make(d)
    z_BGZ = method.embedding(groups.flatten(0, 1)).unflatten(0, (CLASSES, MEMBERS)).detach().numpy()
    out = loss(method, groups, ids)
    assert out.losses["model"].item() == pytest.approx(by_scipy(z_BGZ, ids, d), rel=1e-7)
    assert 0 < out.logs["probability"] < 1


def test_the_scale_of_a_coordinate_does_not_matter():
    method, groups = make()
    before = loss(method, groups, [0, 1, 2, 3]).losses["model"].item()
    head = method.embedding.encoder[-1]
    with torch.no_grad():
        factor = torch.tensor([3.0, -0.5, 10.0, 1.0, 2.0], dtype=torch.float64)
        head.weight *= factor[:, None]
    assert loss(method, groups, [0, 1, 2, 3]).losses["model"].item() == pytest.approx(before, rel=1e-9)


def test_only_the_best_coordinates_have_a_gradient():
    method, groups = make(d=1, latents=3)
    pair = groups[:2]
    out = method(Batch(groups=pair, group_id=torch.tensor([0, 1])), {}, (), torch.tensor(0))
    (grad,) = torch.autograd.grad(out.losses["model"], [method.embedding.encoder[-1].weight])
    assert (grad.abs().sum(1) > 0).sum() == 1


def test_batches_of_one_class_have_zero_loss():
    method, groups = make()
    out = loss(method, groups, [7, 7, 7, 7])
    assert out.losses["model"] == 0 and out.logs["probability"].isfinite()


def test_user_errors(tmp_path):
    with raises("d", value=6, accepted="an integer from 1 to 5"):
        make(d=6)
    with raises("supervision"):
        uw.train("f_statistic", "digits", supervision="groups(by=['digit'], size=1)", net="mlp", out=tmp_path / "a")
    with pytest.raises(uw.UserError):
        uw.train("f_statistic", "digits", net="mlp", out=tmp_path / "a")


def test_it_learns_to_find_the_same_digit(tmp_path):
    """Recall@1 in three coordinates: of digits that were shown, and of digits of classes that never were."""
    digits = load_data("digits")
    parts = {name: load_data("subset", data=digits, where={"digit": those})
             for name, those in {"shown": [0, 1, 2, 3, 4, 5], "new": [6, 7, 8, 9]}.items()}  # fmt: skip
    groups = "groups(by=['digit'], size=6, distinct=True)"
    recalls = []
    for steps in (1, 60):
        options = dict(steps=steps, batch=6, lr=1e-3, net="small", latents=3, device="cpu", out=tmp_path / str(steps))
        run = uw.train("f_statistic", parts["shown"], supervision=groups, **options)
        assert run.representation.decode is None and run.representation.latents == 3
        found = {}
        for name, data in parts.items():
            index = torch.arange(data.size)
            found[name] = recall_at_1(run.encode(data.images(index)), data.factors(index)[:, 0])
        recalls.append(found)
    assert recalls[0]["shown"] < 0.7 and recalls[1]["shown"] > 0.8
    assert recalls[1]["new"] > recalls[0]["new"]


def test_one_group_is_not_enough():
    with raises("supervision"):
        FStatistic(DataInfo((1, 32, 32), 20, groups=1))
    FStatistic(DataInfo((1, 32, 32), 20, groups=2))
