import math

import pytest
import torch
from torch import nn

from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.batch_norm import BatchNormEncoder
from unweave.nn.discriminator import Discriminator, adversarial_losses
from unweave.nn.heads import batch_heads, heads


def test_adversarial_losses_of_a_discriminator_with_zero_output():
    discriminator = Discriminator(2, width=8, depth=1)
    for parameter in discriminator.parameters():
        nn.init.zeros_(parameter)
    found = adversarial_losses(discriminator, torch.randn(6, 2), torch.randn(6, 2))
    assert found.discriminator.item() == found.generator.item() == pytest.approx(math.log(2.0))


def test_adversarial_losses_of_the_best_discriminator_of_two_gaussians():
    """Codes from N(1, 1), prior N(0, 1): log q / p = z - 1/2. The discriminator is right with probability Phi(1/2)."""
    discriminator = nn.Linear(1, 2)
    with torch.no_grad():
        discriminator.weight.copy_(torch.tensor([[1.0], [0.0]]))
        discriminator.bias.copy_(torch.tensor([-0.5, 0.0]))
    draw = torch.Generator().manual_seed(0)
    codes, prior = torch.randn(2, 100_000, 1, generator=draw)
    found = adversarial_losses(discriminator, codes + 1.0, prior, "ratio")
    assert found.accuracy.item() == pytest.approx(0.6915, abs=0.005)
    assert found.generator.item() == pytest.approx(0.5, abs=0.01)  # KL(N(1, 1) || N(0, 1))


def test_heads_are_the_first_half_of_the_outputs():
    auto = AutoEncoder((1, 8, 8), 5, "small", "bernoulli")
    x = torch.rand(4, 1, 8, 8)
    outputs, found = auto.encoder(x), heads(auto, x, 2)
    assert torch.equal(found.style_BZ, outputs[:, :3]) and torch.equal(found.logits_BY, outputs[:, 3:5])
    torch.testing.assert_close(found.code, torch.cat([outputs[:, :3], outputs[:, 3:5].softmax(1)], 1))


def test_a_batch_of_a_normed_encoder_and_its_state_by_name():
    auto = AutoEncoder((1, 8, 8), 5, "small", "bernoulli")
    auto.encoder = BatchNormEncoder(auto.encoder, classes=2)
    x = torch.rand(4, 1, 8, 8)
    found, state = batch_heads(auto, x, 2)
    assert set(state) <= set(auto.state_dict(prefix="autoencoder.")) and len(state) == 4
    outputs = auto.encoder.batch(x, "")[0]
    assert torch.equal(found.style_BZ, outputs[:, :3]) and torch.equal(found.logits_BY, outputs[:, 3:5])
    assert not torch.equal(found.logits_BY, heads(auto, x, 2).logits_BY)  # those are by averages still at 0 and 1


def test_codes_do_not_depend_on_the_batch_without_batch_norm():
    auto, x = AutoEncoder((1, 8, 8), 5, "small", "bernoulli"), torch.rand(4, 1, 8, 8)
    auto.encoder = BatchNormEncoder(auto.encoder, hidden=False)
    found, state = batch_heads(auto, x, 2)
    assert not state and torch.equal(found.code, heads(auto, x, 2).code)
