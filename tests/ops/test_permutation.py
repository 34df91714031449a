import math

import numpy as np
import pytest
import torch
from raises import raises

from unweave.ops.permutation import LEVELS, level_blocks, permute_blocks

CONTENT, LATENTS = 2, 5
BLOCKS = {
    "inter": [[0, 1], [2, 3, 4]],
    "inter_intra_one": [[0, 1], [2], [3], [4]],
    "inter_intra_all": [[0], [1], [2], [3], [4]],
}
levels = pytest.mark.parametrize("level", LEVELS)


def covariance():
    """Unit variances; correlation 0.6 within the content, 0.4 within the style, 0.3 between the two."""
    part = np.arange(LATENTS) >= CONTENT
    within = np.where(part, 0.4, 0.6)
    found = np.where(part[:, None] == part[None], within[:, None], 0.3)
    np.fill_diagonal(found, 1.0)
    return found


def known_total_correlation(level):
    """Of a Gaussian: half of the blocks' log-determinants less half of the whole's."""
    cov = covariance()
    blocks = sum(np.linalg.slogdet(cov[np.ix_(b, b)])[1] for b in BLOCKS[level])
    return 0.5 * (blocks - np.linalg.slogdet(cov)[1])


def codes(batch, seed):
    draw = torch.Generator().manual_seed(seed)
    mixing = torch.as_tensor(np.linalg.cholesky(covariance()))
    z_BZ = torch.randn(batch, LATENTS, generator=draw, dtype=torch.float64) @ mixing.T
    return z_BZ, torch.rand(batch, generator=draw)


@levels
def test_blocks_are_those_of_the_factorisation(level):
    of_latent = level_blocks(level, CONTENT, LATENTS).tolist()
    found = [[j for j in range(LATENTS) if of_latent[j] == k] for k in range(max(of_latent) + 1)]
    assert found == BLOCKS[level]


@levels
@pytest.mark.parametrize("batch", [5, 8, 33])
def test_the_blocks_of_a_sample_are_from_different_codes(level, batch):
    """Codes contain their row index: a block has one row, two blocks differ, and every row is used."""
    rows_BZ = torch.arange(batch).unsqueeze(1).expand(-1, LATENTS)
    out = permute_blocks(rows_BZ, torch.rand(batch, generator=torch.Generator().manual_seed(0)), level, CONTENT)
    assert torch.equal(out.sort(0).values, rows_BZ)
    for sample in out.tolist():
        sources = [{sample[j] for j in block} for block in BLOCKS[level]]
        assert all(len(source) == 1 for source in sources)
        assert len(set.union(*sources)) == len(BLOCKS[level])


@levels
def test_correlation_stays_within_blocks_and_vanishes_between(level):
    z_BZ, keys_B = codes(100_000, seed=1)
    of_latent = level_blocks(level, CONTENT, LATENTS).numpy()
    expected = np.where(of_latent[:, None] == of_latent[None], covariance(), 0.0)
    found = np.cov(permute_blocks(z_BZ, keys_B, level, CONTENT).numpy(), rowvar=False)
    assert np.abs(found - expected).max() < 0.02  # 4.5 standard deviations of a variance


@levels
def test_density_ratio_to_the_samples_is_the_known_total_correlation(level):
    """The ratio of two Gaussians, one fitted to codes and one to samples, averaged over codes."""
    z_BZ, keys_B = codes(100_000, seed=2)
    log_q, log_product = (fitted(of).log_prob(z_BZ) for of in (z_BZ, permute_blocks(z_BZ, keys_B, level, CONTENT)))
    known = known_total_correlation(level)
    assert (log_q - log_product).mean().item() == pytest.approx(known, abs=0.01)
    assert known > 0.1


def fitted(z_BZ):
    return torch.distributions.MultivariateNormal(z_BZ.mean(0), torch.cov(z_BZ.T))


def test_known_total_correlations_rise_with_the_level():
    found = [known_total_correlation(level) for level in LEVELS]
    style = known_within([2, 3, 4])
    assert found[1] - found[0] == pytest.approx(style)
    assert found[2] - found[1] == pytest.approx(-0.5 * math.log(1 - 0.6**2))


def known_within(block):
    return -0.5 * np.linalg.slogdet(covariance()[np.ix_(block, block)])[1]


@levels
def test_small_batches_are_of_the_product_too(level):
    """Over many batches of 5 the mean of z_i z_j between blocks is 0; with independent permutations it is a fifth."""
    z_BZ, _ = codes(5 * 20_000, seed=3)
    keys = torch.rand(20_000, 5, generator=torch.Generator().manual_seed(4))
    out = torch.func.vmap(lambda z, k: permute_blocks(z, k, level, CONTENT))(z_BZ.reshape(-1, 5, LATENTS), keys)
    assert torch.equal(out[7], permute_blocks(z_BZ.reshape(-1, 5, LATENTS)[7], keys[7], level, CONTENT))
    second = torch.einsum("rbi,rbj->ij", out, out) / z_BZ.shape[0]
    apart = level_blocks(level, CONTENT, LATENTS).unsqueeze(0) != level_blocks(level, CONTENT, LATENTS).unsqueeze(1)
    assert second[apart].abs().max() < 0.02  # a fifth of 0.3 would be 0.06


def test_user_errors():
    z_BZ, keys_B = codes(4, seed=0)
    with raises("level", value="intra", accepted=["inter", "inter_intra_one", "inter_intra_all"]):
        permute_blocks(z_BZ, keys_B, "intra", CONTENT)
    with raises("batch", value=4):
        permute_blocks(z_BZ, keys_B, "inter_intra_all", CONTENT)
    assert permute_blocks(z_BZ, keys_B, "inter_intra_one", CONTENT).shape == (4, LATENTS)
