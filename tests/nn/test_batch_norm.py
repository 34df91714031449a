import pytest
import torch
from torch import nn

from unweave.nn.batch_norm import SHARPNESS, BatchNorm, BatchNormEncoder
from unweave.nn.networks import build_networks


def draws(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_equal_to_torchs_own():
    ours, theirs = BatchNorm(5), nn.BatchNorm1d(5)
    for n in range(3):
        x = 2 * draws(40, 5, seed=n) + 1
        y, state = ours.batch(x)
        torch.testing.assert_close(y, theirs(x), rtol=1e-5, atol=1e-5)
        ours.load_state_dict({**ours.state_dict(), **state})
    torch.testing.assert_close(ours.mean_F, theirs.running_mean)
    torch.testing.assert_close(ours.var_F, theirs.running_var, rtol=0.03, atol=0)  # theirs counts 39 of 40
    x = draws(7, 5, seed=9)
    torch.testing.assert_close(ours(x), theirs.eval()(x), rtol=0.02, atol=0.02)


def test_running_averages_have_no_gradient_and_are_not_written():
    norm = BatchNorm(3)
    x = draws(10, 3).requires_grad_()
    y, state = norm.batch(x)
    assert y.requires_grad and not any(value.requires_grad for value in state.values())
    assert torch.equal(norm.mean_F, torch.zeros(3)) and torch.equal(norm.var_F, torch.ones(3))


def test_standardised_logits_cannot_collapse():
    """Adding a constant to the logits of a class, or scaling them, has no effect."""
    norm, logits = BatchNorm(3, gain=SHARPNESS, shift=False), draws(50, 3)
    plain, _ = norm.batch(logits)
    pushed, _ = norm.batch(logits * torch.tensor([1.0, 5.0, 1.0]) + torch.tensor([100.0, 0.0, 0.0]))
    torch.testing.assert_close(plain, pushed, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(plain.mean(0), torch.zeros(3), rtol=0, atol=1e-5)
    torch.testing.assert_close(plain.std(0, correction=0), torch.full((3,), 3.0), rtol=1e-4, atol=0)


def test_ten_equally_common_classes_have_confident_initial_logits():
    found, _ = BatchNorm(10, gain=SHARPNESS, shift=False).batch(torch.eye(10).repeat(3, 1))
    assert found.softmax(1).max(1).values.min() > 0.999


@pytest.mark.parametrize("net", ["makhzani", "small"])
def test_every_dense_layer_but_the_last_is_normalised(net):
    torch.manual_seed(0)
    encoder = build_networks(net, (1, 8, 8), 6)[0]
    normed = BatchNormEncoder(encoder, classes=4)
    before = sum(isinstance(layer, nn.Linear) for layer in encoder) - 1
    assert len(normed.norms) == before == {"makhzani": 2, "small": 1}[net]
    biases = [layer.bias is not None for layer in encoder if isinstance(layer, nn.Linear)]
    assert biases == [False] * before + [True]  # the norm has a shift of its own
    x = torch.rand(30, 1, 8, 8)
    outputs, state = normed.batch(x, "encoder")
    assert outputs.shape == (30, 12) and len(state) == 2 * (before + 1)
    torch.testing.assert_close(outputs[:, 2:6].std(0, correction=0), torch.full((4,), SHARPNESS), rtol=1e-3, atol=0)
    assert set(state) <= set(normed.state_dict(prefix="encoder."))
    torch.testing.assert_close(normed(x[:3]), normed(x)[:3])  # after training each image is by itself


def test_layers_are_normalised_only_on_request():
    torch.manual_seed(0)
    encoder = build_networks("makhzani", (1, 8, 8), 6)[0]
    normed, x = BatchNormEncoder(encoder, hidden=False), torch.rand(5, 1, 8, 8)
    outputs, state = normed.batch(x, "encoder")
    assert not state and torch.equal(outputs, encoder(x))
