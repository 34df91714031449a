import math

import pytest
import torch
from torch import nn

from unweave.contract import UserError
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.critic import Critic, contest
from unweave.nn.heads import Standardised, at_least, batch_heads, heads


def test_contest_of_a_critic_without_an_opinion():
    critic = Critic(2, width=8, depth=1)
    for parameter in critic.parameters():
        nn.init.zeros_(parameter)
    found = contest(critic, torch.randn(6, 2), torch.randn(6, 2))
    assert found.critic.item() == found.generator.item() == pytest.approx(math.log(2.0))


def test_contest_of_the_best_critic_of_two_gaussians():
    """Codes from N(1, 1), prior N(0, 1): log q / p = z - 1/2. The critic is right with probability Phi(1/2)."""
    critic = nn.Linear(1, 2)
    with torch.no_grad():
        critic.weight.copy_(torch.tensor([[1.0], [0.0]]))
        critic.bias.copy_(torch.tensor([-0.5, 0.0]))
    draw = torch.Generator().manual_seed(0)
    codes, prior = torch.randn(2, 100_000, 1, generator=draw)
    found = contest(critic, codes + 1.0, prior, "ratio")
    assert found.accuracy.item() == pytest.approx(0.6915, abs=0.005)
    assert found.generator.item() == pytest.approx(0.5, abs=0.01)  # KL(N(1, 1) || N(0, 1))


def test_heads_are_the_first_half_of_the_outputs():
    auto = AutoEncoder((1, 8, 8), 5, "small", "bernoulli")
    x = torch.rand(4, 1, 8, 8)
    outputs, found = auto.encoder(x), heads(auto, x, 2)
    assert torch.equal(found.style_BZ, outputs[:, :3]) and torch.equal(found.logits_BY, outputs[:, 3:5])
    torch.testing.assert_close(found.code, torch.cat([outputs[:, :3], outputs[:, 3:5].softmax(1)], 1))


def test_standardised_logits_cannot_collapse():
    """Whatever is added to one class, or multiplied into it, changes nothing."""
    norm, logits = Standardised(3), torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    plain, _ = norm(logits, "norm")
    pushed, _ = norm(logits * torch.tensor([1.0, 5.0, 1.0]) + torch.tensor([100.0, 0.0, 0.0]), "norm")
    torch.testing.assert_close(plain, pushed, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(plain.mean(0), torch.zeros(3), rtol=0, atol=1e-5)
    torch.testing.assert_close(plain.std(0, correction=0), torch.full((3,), 3.0), rtol=1e-4, atol=0)


def test_ten_equally_common_classes_can_be_told_with_certainty():
    found, _ = Standardised(10)(torch.eye(10).repeat(3, 1), "norm")
    assert found.softmax(1).max(1).values.min() > 0.999


def test_running_averages_come_to_the_moments_of_the_data():
    norm = Standardised(2)
    draw = torch.Generator().manual_seed(0)
    for _ in range(200):
        _, state = norm(torch.randn(500, 2, generator=draw) * 2 + 5, "norm")
        norm.load_state_dict({name.split(".")[1]: value for name, value in state.items()})
    torch.testing.assert_close(norm.mean_Y, torch.full((2,), 5.0), rtol=0.05, atol=0)
    torch.testing.assert_close(norm.var_Y, torch.full((2,), 4.0), rtol=0.1, atol=0)


def test_a_batch_and_its_state_by_the_name_of_the_norm():
    auto, norm = AutoEncoder((1, 8, 8), 5, "small", "bernoulli"), Standardised(2)
    x = torch.rand(4, 1, 8, 8)
    found, state = batch_heads(auto, x, 2, norm)
    assert set(state) == {"norm.mean_Y", "norm.var_Y"} and torch.equal(norm.mean_Y, torch.zeros(2))
    assert torch.equal(found.style_BZ, heads(auto, x, 2).style_BZ)


def test_at_least():
    assert at_least("clusters", 2, 2) == 2
    with pytest.raises(UserError, match="clusters 1 is too small; use 2 or more"):
        at_least("clusters", 1, 2)
