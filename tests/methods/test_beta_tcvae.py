import itertools
import math

import numpy as np
import pytest
import torch
from raises import raises

from unweave.methods.beta_tcvae import BetaTCVAE
from unweave.methods.vae import VAE
from unweave.ops.divergence import log_gaussian
from unweave.ops.total_correlation import aggregate_posterior, stratified_weights

SIZE = 1000


def weight(i, j, batch, estimator):
    """Chen et al., appendix C: the weight of posterior j for the sample of observation i, of M = B - 1 others."""
    if estimator == "mws":
        return 1 / (SIZE * batch)
    others = batch - 1
    if i == j:
        return 1 / SIZE
    return (SIZE - others) / (SIZE * others) if j == (i + 1) % batch else 1 / others


def densities(c, estimator):
    """log q(z), sum_j log q(z_j), log q(z|n) and log p(z) of each sample, by loops over single numbers."""
    terms = c.terms()
    z, mean, var = (t.detach().numpy() for t in (terms.z, terms.q.mean, terms.q.variance))
    n, d = z.shape

    def normal(x, m, v):
        return math.exp(-((x - m) ** 2) / (2 * v)) / math.sqrt(2 * math.pi * v)

    rows = []
    for i in range(n):
        own = sum(math.log(normal(z[i, k], mean[i, k], var[i, k])) for k in range(d))
        prior = sum(math.log(normal(z[i, k], 0.0, 1.0)) for k in range(d))
        q = [[normal(z[i, k], mean[j, k], var[j, k]) for k in range(d)] for j in range(n)]
        w = [weight(i, j, n, estimator) for j in range(n)]
        joint = math.log(sum(w[j] * math.prod(q[j]) for j in range(n)))
        product = sum(math.log(sum(w[j] * q[j][k] for j in range(n))) for k in range(d))
        rows.append((joint, product, own, prior))
    return np.mean(rows, axis=0)


@pytest.mark.parametrize("estimator", ["mws", "mss"])
def test_loss_is_equation_4(case, estimator):
    """recon + alpha MI + beta TC + gamma KL_j, where MI + TC + KL_j at weight 1 is the analytic KL."""
    c = case(BetaTCVAE, size=SIZE, estimator=estimator)
    terms, out = c.terms(), c.out(alpha=0.5, beta=6.0, gamma=3.0)
    joint, product, own, prior = densities(c, estimator)
    estimates = {"index_mi": own - joint, "tc": joint - product, "dimension_kl": product - prior}
    for name, value in estimates.items():
        assert out.logs[name].item() == pytest.approx(value, rel=1e-5), name
    loss = (terms.recon_B + terms.kl_B).mean().item() - 0.5 * (own - joint) + 5.0 * (joint - product)
    assert out.losses["model"].item() == pytest.approx(loss + 2.0 * (product - prior), rel=1e-5)


@pytest.mark.parametrize("estimator", ["mws", "mss"])
def test_with_all_weights_1_it_is_the_vae(case, estimator):
    c, vae = case(BetaTCVAE, estimator=estimator), case(VAE)
    torch.testing.assert_close(c.out(alpha=1.0, beta=1.0, gamma=1.0).losses["model"], vae.out().losses["model"])


def test_by_hand(case, log2_image):
    """All posteriors are equal, so q(z) factorises: the estimate of MSS is 0, that of MWS the offset (Z - 1) log N."""
    hyper = {"alpha": 1.0, "beta": 5.0, "gamma": 1.0}
    stratified = case(BetaTCVAE, size=SIZE, estimator="mss").fix(mean=1.0, var=4.0).out(**hyper)
    assert stratified.logs["tc"].item() == pytest.approx(0.0, abs=1e-5)
    assert stratified.losses["model"].item() == pytest.approx(log2_image + 3 * (2.0 - math.log(2.0)), rel=1e-6)
    weighted = case(BetaTCVAE, size=SIZE, estimator="mws").fix(mean=1.0, var=4.0).out(**hyper)
    assert weighted.logs["tc"].item() == pytest.approx(2 * math.log(SIZE), rel=1e-5)


@pytest.mark.parametrize(("batch", "size"), [(2, 2), (2, 50), (5, 100), (64, 64), (64, 737_280)])
def test_stratified_weights(batch, size):
    """Rows sum to 1 with 1/N on the diagonal, and the first column is like any other."""
    weights = stratified_weights(batch, size, torch.device("cpu")).double()
    torch.testing.assert_close(weights.sum(1), torch.ones(batch, dtype=torch.float64), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(weights.diagonal(), torch.full((batch,), 1 / size, dtype=torch.float64))
    torch.testing.assert_close(weights.sum(0), weights.sum(1), rtol=1e-5, atol=1e-5)
    assert (weights >= 0).all()


def test_stratified_weights_are_unbiased():
    """Averaged over every batch of 3 of the 5 observations, the estimate at a sample is q(z) itself."""
    density = torch.tensor([0.3, 1.7, 0.2, 4.0, 0.9])  # q(z|n) of some z
    weights = stratified_weights(3, 5, torch.device("cpu"))
    for row, own in itertools.product(range(3), range(5)):
        batches = [b for b in itertools.permutations(range(5), 3) if b[row] == own]
        estimates = [(weights[row] * density[list(b)]).sum() for b in batches]
        torch.testing.assert_close(torch.stack(estimates).mean(), density.mean())


def total_correlation(rho, estimator, points=1200, std=0.3):
    """Of a data set, seen as one batch, whose aggregate posterior is normal with unit variances and correlation rho."""
    draw = torch.Generator().manual_seed(0)
    own = 1.0 - std**2
    mixing = torch.linalg.cholesky(torch.tensor([[own, rho], [rho, own]]))
    mean = torch.randn(points, 2, generator=draw) @ mixing.T
    logvar = torch.full_like(mean, 2 * math.log(std))
    z = mean + std * torch.randn(mean.shape, generator=draw)
    q = aggregate_posterior(z, mean, logvar, size=points, estimator=estimator)
    torch.testing.assert_close(q.log_own, log_gaussian(z, mean, logvar).sum(1))
    return (q.log_joint - q.log_product).mean().item()


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_total_correlation_of_a_gaussian(rho):
    """The closed form is -log det R / 2; the weighted estimate adds (Z - 1) log N when the batch is all data."""
    truth = -0.5 * math.log(1 - rho**2)
    assert total_correlation(rho, "mss") == pytest.approx(truth, abs=0.05)
    assert total_correlation(rho, "mws") - math.log(1200) == pytest.approx(truth, abs=0.05)


def test_an_unknown_estimator(case):
    with raises("estimator", value="best", accepted=["mws", "mss"]):
        case(BetaTCVAE, estimator="best")
