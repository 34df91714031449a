"""The embedding: the encoder of a published network with one output per latent, and no decoder."""

import pytest
import torch
from raises import raises

from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.embedding import Embedding


@pytest.mark.parametrize("net", ["locatello", "burgess", "kim", "small", "mlp"])
def test_it_is_the_published_encoder_with_its_own_head(net):
    shape = (1, 16, 16)
    embedding, usual = Embedding(shape, 6, net), AutoEncoder(shape, 6, net, "bernoulli").encoder
    ours, theirs = ([p.shape for p in part.parameters()] for part in (embedding.encoder, usual))
    assert ours[:-2] == theirs[:-2] and ours[-1] == (6,) and theirs[-1] == (12,)
    found = embedding.representation()
    assert found.encode(torch.rand(3, *shape)).shape == (3, found.latents) and found.decode is None


def test_codes_on_the_sphere_and_an_unknown_network():
    codes = Embedding((1, 8, 8), 3, "small", sphere=True)(torch.rand(4, 1, 8, 8))
    assert torch.allclose(codes.norm(dim=1), torch.ones(4))
    with raises("net", value="smal"):
        Embedding((1, 8, 8), 3, "smal")
