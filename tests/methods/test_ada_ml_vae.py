import math

import numpy as np
import pytest
import torch
from torch.distributions import Bernoulli, Normal, kl_divergence

from unweave.methods.ada_ml_vae import AdaMLVAE
from unweave.ops.sharing import multiply_shared, pair_divergence


@pytest.mark.parametrize("known_k", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_loss_is_the_pairs_beta_elbo(case, known_k, symmetric):
    """Pair by pair and coordinate by coordinate, per observation: half the sum over the two of a pair."""
    c = case(AdaMLVAE, known_k=known_k, symmetric=symmetric, batch=6)
    q, other = c.posterior(c.batch.x).base_dist, c.posterior(c.batch.pair).base_dist
    divergence = kl_divergence(q, other) + (kl_divergence(other, q) if symmetric else 0.0)
    divergence = divergence.detach().numpy()
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
                v, w = q.variance[b, j], other.variance[b, j]
                mean[j], var[j] = (q.mean[b, j] * w + other.mean[b, j] * v) / (v + w), v * w / (v + w)
            z = mean + var.sqrt() * c.noise[eps][b]
            logits = c.method.autoencoder.decoder(z[None])[0]
            recon = -Bernoulli(logits=logits, validate_args=False).log_prob(x[b]).sum()
            losses.append(recon + 2.5 * kl_divergence(Normal(mean, var.sqrt()), Normal(0.0, 1.0)).sum())
    out = c.out(beta=2.5)
    torch.testing.assert_close(out.losses["model"], torch.stack(losses).mean())
    assert out.logs["shared"].item() == pytest.approx(shared / 6)


def test_shared_coordinates_get_the_product():
    """N(1, 1) and N(3, 9): mean (9 * 1 + 3) / 10, variance 9/10; 9/5 is the doubled variance of some libraries."""
    first = (torch.tensor([[1.0, 1.0]]), torch.tensor([[1.0, 1.0]]).log())
    other = (torch.tensor([[3.0, 3.0]]), torch.tensor([[9.0, 9.0]]).log())
    both = multiply_shared(first, other, torch.tensor([[True, False]]))
    for own, (mean, logvar) in zip((first, other), both, strict=True):
        assert mean[0, 0].item() == pytest.approx(1.2) and logvar.exp()[0, 0].item() == pytest.approx(0.9)
        assert mean[0, 1] == own[0][0, 1] and logvar[0, 1] == own[1][0, 1]


def test_mask_and_product_on_constructed_posteriors(case, fixed_posterior):
    """Two pairs of unit posteriors: means apart by (0, 1, 4) and (6, 0, 5), so divergences (0, 1/2, 8), (18, 0, 12.5).

    Shared are the first two latents of the first pair and the second of the other, each with variance 1/2 after.
    """
    c = case(AdaMLVAE, batch=2)
    means = [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 4.0], [6.0, 0.0, 5.0]]
    c.method.autoencoder = fixed_posterior(means, np.ones((4, 3)))
    out = c.out(beta=1.0)
    assert out.logs["shared"].item() == 1.5
    half = 0.5 * (0.5 - math.log(0.5) - 1.0)  # KL of N(0, 1/2)
    merged = 2 * (half + half + 0.5 * 0.25) + 2 * half  # the shared means are 0 and 1/2, and 0
    apart = 0.5 * (16.0 + 36.0 + 25.0)
    assert out.logs["kl"].item() == pytest.approx((merged + apart) / 4)


def test_by_hand(case, log2_image):
    """Equal posteriors: nothing lies below the threshold, and the loss is beta-VAE's for one observation.

    Known to share two of three, they are multiplied all the same: N(1, 4) twice is N(1, 2).
    """
    out = case(AdaMLVAE).fix(mean=1.0, var=4.0).out(beta=10.0)
    alone = 2.0 - math.log(2.0)
    assert out.losses["model"].item() == pytest.approx(log2_image + 30 * alone)
    c = case(AdaMLVAE, known_k=True).fix(mean=1.0, var=4.0)
    c.batch = c.batch._replace(changed=torch.ones(5, dtype=torch.int64))
    both = 0.5 * (2.0 - math.log(2.0))
    assert c.out(beta=10.0).losses["model"].item() == pytest.approx(log2_image + 10 * (alone + 2 * both))


def test_symmetric_divergence_ignores_the_order_of_a_pair(case, fixed_posterior):
    """KL(N(0, 1) || N(0, 100)) = 1.81 but 47.2 in the other direction, 24.5 on average; means 4 apart are 8 in both."""
    narrow, wide = (torch.zeros(1, 1), torch.zeros(1, 1)), (torch.zeros(1, 1), torch.tensor([[math.log(100.0)]]))
    assert pair_divergence(narrow, wide, symmetric=False).item() == pytest.approx(1.8076, abs=1e-4)
    assert pair_divergence(narrow, wide, symmetric=True).item() == pytest.approx(24.5025, abs=1e-3)
    means, variances = [[0.0, 0.0, 0.0], [0.0, 4.0, 4.0]], [[1.0, 1.0, 1.0], [100.0, 1.0, 1.0]]
    for symmetric, expected in ((False, [1.0, 2.0]), (True, [2.0, 2.0])):
        c, found = case(AdaMLVAE, batch=1, symmetric=symmetric), []
        for order in (1, -1):
            c.method.autoencoder = fixed_posterior(means[::order], variances[::order])
            found.append(c.out(beta=1.0).logs["shared"].item())
        assert found == expected


def test_needs_the_number_of_changes_only_if_it_is_to_be_known(case):
    assert case(AdaMLVAE).method.needs == ("x", "pair")
    assert case(AdaMLVAE, known_k=True).method.needs == ("x", "pair", "changed")
