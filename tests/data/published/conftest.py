"""Shared by the tests of the published files: a cache of one's own, and what every loader must do."""

import json
import os

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from unweave.data import load_data
from unweave.errors import UserError


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """An empty cache, and no way to any network."""
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(
        "unweave.data.storage.download.urlopen", lambda *args, **options: pytest.fail("asked the network")
    )
    return tmp_path / "cache"


def pictures_fit_their_description(data, x):
    assert x.dtype == torch.float32 and x.shape[1:] == data.shape and x.min() >= 0 and x.max() <= 1
    assert data.factor_sizes == tuple(map(len, data.factor_values)) and len(data.factor_names) == len(data.factor_sizes)
    assert not data.state_dict()


def factors_fit(data):
    every = torch.arange(data.size)
    factors = data.factors(every)
    assert factors.shape == (data.size, len(data.factor_names)) and factors.dtype == torch.int64
    assert (factors >= 0).all() and (factors < torch.tensor(data.factor_sizes)).all()
    if data.grid:
        assert torch.equal(data.index(factors), every)


@pytest.fixture
def well_formed():
    """Checks what every set promises: a description that is true, tensor operations only, options that re-create."""

    def check(data):
        index = torch.randint(0, data.size, (3, 5), generator=torch.Generator().manual_seed(0))
        x = data.images(index[0])
        pictures_fit_their_description(data, x)
        factors_fit(data)
        assert torch.equal(make_fx(lambda i: data.images(i))(index[1])(index[0]), x)
        assert torch.equal(torch.func.vmap(data.images)(index)[0], x)
        assert torch.equal(torch.func.vmap(data.factors)(index)[0], data.factors(index[0]))
        again = load_data(data.name, **json.loads(json.dumps(data.options)))
        assert torch.equal(again.images(index[0]), x) and again.factor_values == data.factor_values
        return data

    return check


def kept():
    """What lies in the cache, half-made or whole."""
    files = os.path.join(os.environ["UNWEAVE_CACHE"], "files")
    return sorted(os.listdir(files)) if os.path.exists(files) else []


@pytest.fixture
def refused():
    """Checks that loading fails with one line that says what is wrong, and leaves nothing new in the cache."""

    def check(said, text, **options):
        before = kept()
        with pytest.raises(UserError, match=said) as caught:
            load_data(text, **options)
        assert "\n" not in str(caught.value) and text in str(caught.value)
        assert kept() == before

    return check
