"""Methods without an encoder are one class: a GAN, and a decoder with one learned code per image."""

from typing import NamedTuple

import pytest
import torch
import torch.nn.functional as F
from raises import raises
from torch import nn

import unweave as uw
from unweave.errors import UserNotice
from unweave.report import report, save_samples
from unweave.report.pages.sweep import compare_page


class Generator(nn.Module):
    def __init__(self, latents, shape):
        super().__init__()
        self.layer, self.shape = nn.Linear(latents, shape.numel()), shape

    def forward(self, z):
        return self.layer(z).sigmoid().unflatten(1, self.shape)

    def representation(self, latents):
        return uw.Representation(None, latents, decode=self)


class GAN(uw.Method):
    class Hyper(NamedTuple):
        pass

    players = {"generator": ("generator",), "discriminator": ("discriminator",)}
    noise = {"z": uw.normal("B", "Z")}

    def __init__(self, data, *, latents: int = 4):
        super().__init__()
        shape, self.latents = torch.Size(data.shape), latents
        self.generator = Generator(latents, shape)
        self.discriminator = nn.Sequential(nn.Flatten(), nn.Linear(shape.numel(), 1))

    def forward(self, batch, noise, hyper, step):
        samples = self.generator(noise["z"])
        real, fake = self.discriminator(batch.x), self.discriminator(samples.detach())
        losses = {
            "generator": F.softplus(-self.discriminator(samples)).mean(),
            "discriminator": F.softplus(-real).mean() + F.softplus(fake).mean(),
        }
        return uw.Out(losses, losses)

    def representation(self):
        return self.generator.representation(self.latents)


class LatentOptimization(uw.Method):
    class Hyper(NamedTuple):
        pass

    needs = ("x", "x_index")
    players = {"model": ("codes", "generator")}

    def __init__(self, data, *, latents: int = 4):
        super().__init__()
        self.latents, self.codes = latents, nn.Embedding(data.size, latents)
        self.generator = Generator(latents, torch.Size(data.shape))

    def forward(self, batch, noise, hyper, step):
        loss = (self.generator(self.codes(batch.x_index)) - batch.x).square().flatten(1).sum(1).mean()
        return uw.Out({"model": loss}, {"loss": loss})

    def representation(self):
        return self.generator.representation(self.latents)


def test_runs_without_an_encoder_are_rows_without_scores(tmp_path):
    shared = {"data": "digits(size=8)", "steps": 4, "seed": 0}
    runs = uw.fit([{"method": GAN, **shared}, {"method": "beta_vae", "net": "small", **shared}], out=tmp_path)
    with pytest.warns(UserNotice, match="GAN"):
        table = uw.score_runs(runs, metrics=["active_dimensions"], num_samples=50)
    assert table["method"].tolist() == ["GAN", "beta_vae"]
    assert table["active_dimensions"].isna().tolist() == [True, False]
    with pytest.warns(UserNotice, match="GAN"):
        alone = uw.score_runs(runs[:1], num_samples=50)
    assert alone.attrs["scores"] == []
    assert compare_page(alone, tmp_path / "compare.html", title="GAN").stat().st_size > 0


@pytest.mark.parametrize("method", [GAN, LatentOptimization])
def test_it_trains_and_decodes(method, tmp_path):
    runs = [{"method": method, "data": "digits(size=8)", "steps": 20, "lr": 0.01, "seed": seed} for seed in (0, 1)]
    model, other = uw.fit(runs, out=tmp_path)
    assert model.decode(torch.zeros(2, 4)).shape == (2, 1, 8, 8)
    assert not torch.equal(*(run.method.generator.layer.weight for run in (model, other)))
    save_samples(model)
    for call in (lambda: uw.evaluate(model), lambda: model.encode(model.data.images(torch.arange(2)))):
        with raises("method", accepted="a method with encode"):
            call()
    with raises("method", accepted="a method with encode"):
        report([model], tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
