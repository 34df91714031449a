import math

import numpy as np
import pytest
import torch
from torch.distributions import Bernoulli, Normal, kl_divergence

from unweave.methods.ada_gvae import AdaGVAE
from unweave.ops.sharing import average_shared, shared_by_count, shared_by_threshold


@pytest.mark.parametrize("known_k", [False, True])
def test_loss_is_the_pairs_beta_elbo(case, known_k):
    """Pair by pair and coordinate by coordinate, per observation: half the sum over the two of a pair."""
    c = case(AdaGVAE, known_k=known_k, batch=6)
    q, other = c.posterior(c.batch.x).base_dist, c.posterior(c.batch.pair).base_dist
    divergence = kl_divergence(q, other).detach().numpy()
    losses, shared = [], 0
    for b in range(6):
        if known_k:
            keep = set(np.argsort(divergence[b])[: 3 - int(c.batch.changed[b])])
        else:
            keep = {j for j in range(3) if divergence[b, j] < (divergence[b].min() + divergence[b].max()) / 2}
        shared += len(keep)
        for x, own, eps in ((c.batch.x, q, "eps"), (c.batch.pair, other, "eps_pair")):
            mean, var = own.mean[b].clone(), own.variance[b].clone()
            for j in keep:
                mean[j] = (q.mean[b, j] + other.mean[b, j]) / 2
                var[j] = (q.variance[b, j] + other.variance[b, j]) / 2
            z = mean + var.sqrt() * c.noise[eps][b]
            logits = c.method.autoencoder.decoder(z[None])[0]
            recon = -Bernoulli(logits=logits, validate_args=False).log_prob(x[b]).sum()
            losses.append(recon + 2.5 * kl_divergence(Normal(mean, var.sqrt()), Normal(0.0, 1.0)).sum())
    out = c.out(beta=2.5)
    torch.testing.assert_close(out.losses["model"], torch.stack(losses).mean())
    assert out.logs["shared"].item() == pytest.approx(shared / 6)


def test_by_hand(case, log2_image):
    """Equal posteriors: averaging changes nothing, and the loss is beta-VAE's for one observation."""
    out = case(AdaGVAE).fix(mean=1.0, var=4.0).out(beta=10.0)
    assert out.losses["model"].item() == pytest.approx(log2_image + 30 * (2.0 - math.log(2.0)))


def test_needs_the_number_of_changes_only_if_it_is_to_be_known(case):
    assert case(AdaGVAE).method.needs == ("x", "pair")
    assert case(AdaGVAE, known_k=True).method.needs == ("x", "pair", "changed")


def test_threshold_is_half_way_between_smallest_and_largest():
    divergence = torch.tensor([[0.0, 0.9, 1.0, 2.0], [5.0, 1.0, 2.9, 3.1], [0.0, 0.0, 0.0, 9.0]])
    expected = [[True, True, False, False], [False, True, True, False], [True, True, True, False]]
    assert shared_by_threshold(divergence).tolist() == expected


def test_equal_divergences_share_nothing():
    """No divergence is below the threshold; for equal posteriors sharing would have no effect."""
    assert not shared_by_threshold(torch.full((2, 4), 0.7)).any()
    assert not shared_by_threshold(torch.zeros(2, 4)).any()


def test_known_count_shares_the_smallest_divergences():
    divergence = torch.tensor([[3.0, 1.0, 2.0, 0.5]]).expand(5, 4)
    mask = shared_by_count(divergence, torch.tensor([0, 1, 2, 3, 4]))
    assert mask.int().tolist() == [[1, 1, 1, 1], [0, 1, 1, 1], [0, 1, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert shared_by_count(torch.zeros(3, 4), torch.tensor([1, 2, 3])).sum(1).tolist() == [3, 2, 1]  # ties too


def test_more_changes_than_latents_share_nothing():
    assert not shared_by_count(torch.rand(1, 3), torch.tensor([5])).any()


def test_shared_coordinates_get_the_mean_of_means_and_of_variances():
    first = (torch.tensor([[1.0, 1.0]]), torch.tensor([[1.0, 1.0]]).log())
    other = (torch.tensor([[3.0, 3.0]]), torch.tensor([[9.0, 9.0]]).log())
    for own, (mean, logvar) in zip(
        (first, other), average_shared(first, other, torch.tensor([[True, False]])), strict=True
    ):
        assert mean[0, 0] == 2.0 and logvar.exp()[0, 0].item() == pytest.approx(5.0)  # not 3, not 1.8
        assert mean[0, 1] == own[0][0, 1] and logvar[0, 1] == own[1][0, 1]


def test_gradients_flow_through_averages_and_not_through_the_mask(case, fixed_posterior):
    """Of one pair the first latent is shared, the second is not: d KL / d mean is known for all four numbers.

    KL averages 1/2 mean^2 over the two observations. The shared mean (1 + 2) / 2 counts twice and reaches each
    member by half; were the mask to carry a gradient, the second latent's would not be its own mean alone.
    """
    c = case(AdaGVAE, batch=1, latents=2)
    c.method.autoencoder = fixed_posterior([[1.0, -4.0], [2.0, 6.0]], np.ones((2, 2)))
    out = c.out(beta=3.0)
    grad = torch.autograd.grad(out.losses["model"], c.method.autoencoder.mean_BZ)[0]
    assert out.logs["shared"] == 1.0
    expected = 3.0 * 0.5 * torch.tensor([[1.5, -4.0], [1.5, 6.0]], dtype=torch.float64)
    torch.testing.assert_close(grad, expected)


def test_the_divergence_is_of_the_first_from_the_second(case, fixed_posterior):
    """KL(N(0, 1) || N(0, 100)) = 1.81 but 47.2 in the other direction, against twice 8 for means 4 apart."""
    means, variances = [[0.0, 0.0, 0.0], [0.0, 4.0, 4.0]], [[1.0, 1.0, 1.0], [100.0, 1.0, 1.0]]
    c = case(AdaGVAE, batch=1)
    c.method.autoencoder = fixed_posterior(means, variances)
    assert c.out(beta=1.0).logs["shared"] == 1.0
    c.method.autoencoder = fixed_posterior(means[::-1], variances[::-1])
    assert c.out(beta=1.0).logs["shared"] == 2.0
