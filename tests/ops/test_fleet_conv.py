"""Convolutions with a replica axis against those of torch for each model, and the kernels against patches."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from interpreted import run_interpreted
from torch.func import vmap

from unweave.nn.conv import ConvStack, DownConv2d, UpConv2d, conv_implementation
from unweave.ops import fleet_conv


def stack(channels):
    torch.manual_seed(0)
    down = [DownConv2d(channels, 6, 4, relu=True), DownConv2d(6, 5, 2, relu=True)]
    return ConvStack(*down, UpConv2d(5, 4, relu=True), UpConv2d(4, channels)).double()


@pytest.mark.parametrize("channels", [1, 3])
def test_replicas_are_models_of_their_own(channels):
    layers = stack(channels)
    names = [n for n, _ in layers.named_parameters()]
    params = {n: torch.randn(3, *p.shape, dtype=torch.float64) for n, p in layers.named_parameters()}
    x = torch.randn(3, 2, channels, 8, 12, dtype=torch.float64)
    probe = torch.randn(3, 2, channels, 8, 12, dtype=torch.float64)

    def gradients(implementation):
        leaves = {n: t.clone().requires_grad_() for n, t in params.items()}
        image = x.clone().requires_grad_()

        def one(mine, picture):
            return torch.func.functional_call(layers, mine, (picture,))

        with conv_implementation(implementation):
            if implementation == "fleet":
                out = vmap(one)(leaves, image)
            else:
                out = torch.stack([one({n: leaves[n][r] for n in names}, image[r]) for r in range(3)])
        return [out, *torch.autograd.grad((out * probe).sum(), [image, *leaves.values()])]

    for ours, theirs in zip(gradients("fleet"), gradients("library"), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_one_model_without_mapping():
    layers, x = stack(1), torch.randn(2, 1, 8, 8, dtype=torch.float64)
    with conv_implementation("fleet"):
        ours = layers(x)
    torch.testing.assert_close(ours, layers(x))


def test_an_image_that_is_the_same_for_all():
    layers, x = stack(1), torch.randn(2, 1, 8, 8, dtype=torch.float64)
    params = {n: torch.stack([p.detach(), 2 * p.detach()]) for n, p in layers.named_parameters()}
    with conv_implementation("fleet"):
        both = vmap(lambda mine: torch.func.functional_call(layers, mine, (x,)))(params)
    torch.testing.assert_close(both[0], layers(x))


KERNELS = """
import torch, torch.nn.functional as F
from unweave.ops import fleet_conv as fc
down, up, gradient = (op._init_fn for op in (fc._down_kernel, fc._up_kernel, fc._gradient_kernel))
torch.manual_seed(0)
fc._MAX_OFFSET = {max_offset}
for C, S, k, h in [(1, 32, 4, 8), (3, 16, 4, 4), (32, 32, 4, 4), (16, 32, 2, 4), (20, 24, 4, 2), (4, 16, 2, 16)]:
    big, small = torch.randn(2, 3, 2 * h, 2 * h, C), torch.randn(2, 3, h, h, S)
    packed, none = fc.pack(torch.randn(2, S, C, k, k), torch.float32), torch.empty(0)
    for relu, bias, gate in ((True, True, False), (False, False, True)):
        sides = [(down, fc.down, big, small), (up, fc.up, small, big)]
        for kernel, plain, source, like in sides:
            extra = (torch.randn(2, like.shape[-1]) if bias else none, torch.randn_like(like) if gate else none, relu)
            made, meant = kernel(source, packed, *extra, "ieee"), plain(source, packed, *extra)
            torch.testing.assert_close(made, meant, rtol=1e-4, atol=1e-4)
    ours = gradient(big, small, k, "ieee")
    torch.testing.assert_close(ours, fc.gradient(big, small, packed), rtol=1e-4, atol=1e-3)
"""


@pytest.mark.triton
@pytest.mark.parametrize("max_offset", [2**31 - 1, 0], ids=["32 bits", "64 bits"])
def test_kernels_by_the_interpreter(max_offset):
    run_interpreted(KERNELS.replace("{max_offset}", str(max_offset)))


@pytest.mark.gpu
def test_images_of_more_than_two_billion_numbers():
    """The last images of a large batch have the same results as in a small one."""
    torch.manual_seed(0)
    count, few = 2**31 // (64 * 64 * 32) + 9, 3
    big = torch.zeros(1, count, 64, 64, 32, device="cuda", dtype=torch.bfloat16)
    big[:, -few:] = torch.randn(1, few, 64, 64, 32, device="cuda")
    packed, none = torch.randn(1, 4, 4, 32, 32, device="cuda").bfloat16(), big.new_empty(0)
    small = fleet_conv.down(big, packed, none, none, False)
    torch.testing.assert_close(small[:, -few:], fleet_conv.down(big[:, -few:].contiguous(), packed, none, none, False))
    again = fleet_conv.up(small, packed, none, none, False)
    last = fleet_conv.up(small[:, -few:].contiguous(), packed, none, none, False)
    torch.testing.assert_close(again[:, -few:], last)
    grads = [fleet_conv.gradient(big[:, at:].contiguous(), small[:, at:].contiguous(), packed) for at in (0, -few)]
    torch.testing.assert_close(*grads, rtol=1e-2, atol=1.0)


@pytest.mark.gpu
def test_gradients_of_thousands_of_models():
    torch.manual_seed(0)
    models = 2**31 // (16 * 4 * 4 * 32 * 32) + 5
    big = torch.zeros(models, 256, 8, 8, 32, device="cuda")
    small = torch.zeros(models, 256, 4, 4, 32, device="cuda")
    big[-1], small[-1] = (torch.randn(each.shape[1:], device="cuda") for each in (big, small))
    packed = torch.zeros(1, 4, 4, 32, 32, device="cuda")
    found = fleet_conv.gradient(big, small, packed)
    assert not found[:-1].any()
    torch.testing.assert_close(found[-1:], fleet_conv.gradient(big[-1:].contiguous(), small[-1:].contiguous(), packed))


def test_the_plain_form_is_torchs():
    """`down` is conv2d and `up` is conv_transpose2d with the same weight, so each is the other's gradient."""
    torch.manual_seed(0)
    weight = torch.randn(2, 5, 3, 4, 4, dtype=torch.float64)
    big, small = (torch.randn(2, 4, n, n, c, dtype=torch.float64) for n, c in ((8, 3), (4, 5)))
    packed, none = fleet_conv.pack(weight, torch.float64), torch.empty(0)
    for r in range(2):
        conv = F.conv2d(big[r].permute(0, 3, 1, 2), weight[r], stride=2, padding=1).permute(0, 2, 3, 1)
        torch.testing.assert_close(fleet_conv.down(big, packed, none, none, False)[r], conv)
        back = F.conv_transpose2d(small[r].permute(0, 3, 1, 2), weight[r], stride=2, padding=1).permute(0, 2, 3, 1)
        torch.testing.assert_close(fleet_conv.up(small, packed, none, none, False)[r], back)
