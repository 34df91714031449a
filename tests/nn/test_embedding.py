"""An encoder by itself: one number a coordinate, the network of the field it is named after, no decoder."""

import pytest
import torch

from unweave.errors import UserError
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.embedding import Embedding


@pytest.mark.parametrize("net", ["locatello", "burgess", "kim", "small", "mlp"])
def test_it_is_the_fields_encoder_with_a_head_of_its_own(net):
    shape = (1, 16, 16)
    embedding, usual = Embedding(shape, 6, net), AutoEncoder(shape, 6, net, "bernoulli").encoder
    ours, theirs = ([p.shape for p in part.parameters()] for part in (embedding.encoder, usual))
    assert ours[:-2] == theirs[:-2] and ours[-1] == (6,) and theirs[-1] == (12,)
    found = embedding.representation()
    assert found.encode(torch.rand(3, *shape)).shape == (3, found.latents) and found.decode is None


def test_on_the_sphere_and_refusals():
    codes = Embedding((1, 8, 8), 3, "small", sphere=True)(torch.rand(4, 1, 8, 8))
    assert torch.allclose(codes.norm(dim=1), torch.ones(4))
    with pytest.raises(UserError, match="net 'smal' is unknown"):
        Embedding((1, 8, 8), 3, "smal")
