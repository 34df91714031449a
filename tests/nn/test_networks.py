import math

import pytest
import torch
from raises import raises
from torch import nn

from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.discriminator import Discriminator
from unweave.nn.networks import NETWORKS, build_networks, weight_init


def convolutions(module):
    kinds = nn.Conv2d | nn.ConvTranspose2d
    return [(p.in_channels, p.out_channels, p.kernel_size, p.stride) for p in module.modules() if isinstance(p, kinds)]


def dense(module):
    return [(p.in_features, p.out_features) for p in module if isinstance(p, nn.Linear)]


def count(module):
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize("channels", [1, 3])
def test_locatello_is_the_papers_table(channels):
    """Locatello et al. 2019, table 1: every convolution of stride 2."""
    encoder, decoder = build_networks("locatello", (channels, 64, 64), 10)
    sizes = [(channels, 32, 4), (32, 32, 4), (32, 64, 2), (64, 64, 2)]
    assert convolutions(encoder) == [(i, o, (k, k), (2, 2)) for i, o, k in sizes]
    assert dense(encoder) == [(4 * 4 * 64, 256), (256, 20)]
    assert dense(decoder) == [(10, 256), (256, 4 * 4 * 64)]
    ups = [(64, 64), (64, 32), (32, 32), (32, channels)]
    assert convolutions(decoder) == [(i, o, (4, 4), (2, 2)) for i, o in ups]


def test_kim_is_the_papers_table():
    """Kim & Mnih 2018, table 1: kernels of 4 throughout, and no activation between the encoder's dense layers."""
    encoder, decoder = build_networks("kim", (1, 64, 64), 10)
    assert convolutions(encoder) == [(i, o, (4, 4), (2, 2)) for i, o in [(1, 32), (32, 32), (32, 64), (64, 64)]]
    assert dense(encoder) == [(4 * 4 * 64, 128), (128, 20)]
    assert dense(decoder) == [(10, 128), (128, 4 * 4 * 64)]
    assert not [part for part in encoder if isinstance(part, nn.ReLU)] and isinstance(decoder[1], nn.ReLU)


def test_parameter_counts():
    def convolution(inputs, outputs, k):
        return inputs * outputs * k * k + outputs

    def layer(inputs, outputs):
        return (inputs + 1) * outputs

    encoder, decoder = build_networks("locatello", (1, 64, 64), 10)
    down = convolution(1, 32, 4) + convolution(32, 32, 4) + convolution(32, 64, 2) + convolution(64, 64, 2)
    up = convolution(64, 64, 4) + convolution(64, 32, 4) + convolution(32, 32, 4) + convolution(32, 1, 4)
    assert count(encoder) == down + layer(1024, 256) + layer(256, 20)
    assert count(decoder) == layer(10, 256) + layer(256, 1024) + up
    assert count(Discriminator(10)) == layer(10, 1000) + 5 * layer(1000, 1000) + layer(1000, 2)


@pytest.mark.parametrize("net", NETWORKS)
@pytest.mark.parametrize("shape", [(1, 32, 32), (3, 64, 64), (1, 48, 80)])
def test_shapes(net, shape):
    auto = AutoEncoder(shape, 5, net, "bernoulli")
    mean, logvar = auto.posterior(torch.rand(2, *shape))
    assert mean.shape == logvar.shape == (2, 5)
    assert auto.decode(mean).shape == (2, *shape)


def test_128_pixels_need_only_a_larger_dense_layer():
    encoder, decoder = build_networks("locatello", (3, 128, 128), 10)
    assert dense(encoder)[0] == (8 * 8 * 64, 256)
    assert decoder(encoder(torch.rand(1, 3, 128, 128))[:, :10]).shape == (1, 3, 128, 128)


def test_the_last_layers_are_linear():
    """Means, log-variances and logits may have either sign."""
    for part in build_networks("locatello", (1, 64, 64), 10) + build_networks("mlp", (1, 8, 8), 10):
        last = part[-1][-1] if isinstance(part[-1], nn.Sequential) else part[-1]
        assert not isinstance(last, nn.ReLU | nn.Tanh) and not getattr(last, "relu", False)


@pytest.mark.parametrize(
    ("net", "shape", "latents", "argument", "value"),
    [
        ("locatello", (1, 20, 64), 10, "net", "locatello"),
        ("small", (1, 64, 20), 10, "net", "small"),
        ("resnet", (1, 64, 64), 10, "net", "resnet"),
        ("locatello", (1, 64, 64), 0, "latents", 0),
    ],
)
def test_invalid_arguments(net, shape, latents, argument, value):
    with raises(argument, value=value):
        build_networks(net, shape, latents)


@pytest.mark.parametrize("net", NETWORKS)
def test_glorot_uniform_weights_and_zero_biases(net):
    """Bound sqrt(6 / (fan in + fan out)), reached up to the sample's size, and its variance bound^2 / 3."""
    torch.manual_seed(0)
    pair = build_networks(net, (3, 32, 32), 10)
    layers = [p for half in pair for p in half if hasattr(p, "weight")]
    for layer in [*layers, *(p for p in Discriminator(10).layers if hasattr(p, "weight"))]:
        weight = layer.weight.detach()
        bound = math.sqrt(6 / ((weight.shape[0] + weight.shape[1]) * math.prod(weight.shape[2:])))
        assert 0.9 * bound < weight.abs().max() <= bound
        assert weight.var().item() == pytest.approx(bound**2 / 3, rel=0.25)
        assert not layer.bias.any()


def test_decode_gives_the_mean_image():
    z = torch.randn(2, 3)
    bernoulli, gaussian = (AutoEncoder((1, 8, 8), 3, "small", kind) for kind in ("bernoulli", "gaussian"))
    torch.testing.assert_close(bernoulli.decode(z), bernoulli.decoder(z).sigmoid())
    torch.testing.assert_close(gaussian.decode(z), gaussian.decoder(z))


def test_representation_encodes_means():
    auto, x = AutoEncoder((1, 8, 8), 3, "small", "bernoulli"), torch.rand(2, 1, 8, 8)
    made = auto.representation()
    assert made.latents == 3
    torch.testing.assert_close(made.encode(x), auto.posterior(x)[0])
    torch.testing.assert_close(made.posterior(x)[1], auto.posterior(x)[1])


def test_makhzani_has_two_hidden_layers_of_1000_each_way():
    encoder, decoder = build_networks("makhzani", (1, 28, 28), 12)
    assert dense(encoder) == [(784, 1000), (1000, 1000), (1000, 24)]
    assert dense(decoder) == [(12, 1000), (1000, 1000), (1000, 784)]
    assert all(isinstance(layer, nn.Linear | nn.ReLU | nn.Flatten | nn.Unflatten) for layer in [*encoder, *decoder])


@pytest.mark.parametrize("net", NETWORKS)
def test_normal_initial_weights(net):
    torch.manual_seed(0)
    with weight_init("normal(0.02)"):
        pair, discriminator = build_networks(net, (3, 32, 32), 10), Discriminator(10)
    after = Discriminator(10)
    layers = [
        p for half in (*pair, discriminator.layers) for p in half.modules() if getattr(p, "weight", None) is not None
    ]
    for layer in layers:
        assert layer.weight.std().item() == pytest.approx(0.02, rel=0.2)
        assert layer.weight.abs().max() > 0.04  # a uniform draw of this deviation ends at 0.035
        assert not layer.bias.any()
    assert after.layers[2].weight.std().item() == pytest.approx(math.sqrt(2 / 2000), rel=0.02)


@pytest.mark.parametrize("init", ["xavier", "normal", "normal()", "normal(0)", "normal(-1)", "normal(a b)"])
def test_invalid_weight_initialisation(init):
    with raises("init", value=init), weight_init(init):
        pass
