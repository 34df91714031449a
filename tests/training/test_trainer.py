"""Training into run folders: methods of your own, stages, kills, divergence."""

import json
import math
from typing import ClassVar

import numpy as np
import pytest
import torch
from mentions import mentions
from raises import raises
from torch import nn

import unweave as uw


class Head(uw.Method):
    """Second stage: classifies the digit from the frozen code of the first stage."""

    needs = ("labelled", "labels")
    players = {"head": ("head",)}
    frozen = ("encoder",)

    def __init__(self, data, *, latents: int = 3, previous):
        super().__init__()
        self.latents, self.encoder, self.head = latents, previous.encoder, nn.Linear(latents, 10)

    def forward(self, batch, noise, hyper, step):
        logits = self.head(self.encoder(batch.labelled.flatten(1)))
        loss = nn.functional.cross_entropy(logits, batch.labels[:, 0])
        return uw.Out({"head": loss}, {"head_loss": loss})

    def representation(self):
        return uw.Representation(lambda x: self.encoder(x.flatten(1)), self.latents)


class Linear(uw.Method):
    """First stage: a linear autoencoder, with a noisy code and a running mean of it."""

    players = {"model": ("encoder", "decoder")}
    noise = {"eps": uw.normal("B", "Z")}
    next_stage: ClassVar = Head

    def __init__(self, data, *, latents: int = 3):
        super().__init__()
        pixels = math.prod(data.shape)
        self.latents = latents
        self.encoder, self.decoder = nn.Linear(pixels, latents), nn.Linear(latents, pixels)
        self.register_buffer("centre", torch.zeros(latents))

    def forward(self, batch, noise, hyper, step):
        x = batch.x.flatten(1)
        z = self.encoder(x)
        loss = (self.decoder(z + 0.1 * noise["eps"]) - x).square().sum(1).mean()
        return uw.Out({"model": loss}, {"loss": loss}, {"centre": self.centre.lerp(z.mean(0), 0.1)})


class OneStage(Linear):
    next_stage = None

    def representation(self):
        return uw.Representation(lambda x: self.encoder(x.flatten(1)), self.latents)


OPTIONS = {"steps": 8, "batch": 4, "log_every": 2, "checkpoint_every": 4, "lr": 1e-2}


@pytest.fixture(scope="module")
def digits():
    return uw.load_data("digits")


def test_a_class_of_your_own_trains_saves_its_state_and_loads(digits, tmp_path):
    run = uw.train(OneStage, digits, out=tmp_path / "run", latents=2, **OPTIONS)
    assert run.config.method == "OneStage" and run.method.centre.abs().min() > 0
    loaded = uw.load(tmp_path / "run", method=OneStage)
    for (name, a), b in zip(run.method.state_dict().items(), loaded.method.state_dict().values(), strict=True):
        assert torch.equal(a, b), name
    assert run.encode(digits.images(torch.arange(3))).shape == (3, 2)


def test_init_applies_to_every_stage(digits, tmp_path):
    options = {**OPTIONS, "steps": 1, "lr": 0.0, "supervision": "labels(n=20)", "net": "mlp", "init": "normal(0.003)"}
    run = uw.train("m1_m2", digits, out=tmp_path / "run", **options)
    assert run.config.init == "normal(0.003)"
    wide = [w for w in run.method.parameters() if w.dim() == 2 and w.numel() > 1000]
    assert len(wide) > 5
    assert all(w.std().item() == pytest.approx(0.003, rel=0.1) for w in wide)
    with raises("init", value="normal(1)"):
        uw.train(OneStage, digits, out=tmp_path / "own", init="normal(1)", **OPTIONS)
    assert not (tmp_path / "own").exists()


def test_two_stages(digits, tmp_path):
    """Each has its own steps; the second is handed the first, trained, and leaves it as it was."""
    one = uw.train(OneStage, digits, out=tmp_path / "one", **OPTIONS)
    two = uw.train(Linear, digits, supervision="labels", out=tmp_path / "two", **OPTIONS)
    assert isinstance(two.method, Head)
    assert torch.equal(two.method.encoder.weight, one.method.encoder.weight)
    records = [(r["stage"], r["step"]) for r in two.folder.logs()]
    assert records == [(stage, step) for stage in (0, 1) for step in (2, 4, 6, 8)]
    assert "head_loss" in two.folder.logs()[-1] and "loss" not in two.folder.logs()[-1]
    loaded = uw.load(tmp_path / "two", method=Linear)
    assert torch.equal(loaded.method.head.weight, two.method.head.weight)


@pytest.mark.parametrize("records", [1, 3, 4, 5, 6, 7], ids=lambda n: f"killed-after-{n}-of-8-records")
def test_killed_in_either_stage_and_resumed(digits, tmp_path, records):
    seen = []

    def kill(progress):
        seen.append(progress.step)
        if len(seen) == records:
            raise KeyboardInterrupt

    whole = uw.train(Linear, digits, supervision="labels", out=tmp_path / "whole", **OPTIONS)
    with pytest.raises(KeyboardInterrupt):
        uw.train(Linear, digits, supervision="labels", out=tmp_path / "cut", observe=kill, **OPTIONS)
    resumed = uw.resume(tmp_path / "cut", method=Linear)
    for (name, a), b in zip(whole.method.state_dict().items(), resumed.method.state_dict().values(), strict=True):
        assert torch.equal(a, b), name
    assert whole.folder.logs() == resumed.folder.logs()


def test_a_setting_missing_in_an_older_configuration_has_its_default(digits, tmp_path):
    options = {"net": "small", **OPTIONS, "steps": 4, "checkpoint_every": 2}

    def kill(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        uw.train("aae_cluster", digits, out=tmp_path / "run", observe=kill, **options)
    file = tmp_path / "run" / "config.json"
    config = json.loads(file.read_text())
    del config["hyper"]["class_weight"]
    file.write_text(json.dumps(config))
    resumed, whole = uw.resume(tmp_path / "run"), uw.train("aae_cluster", digits, out=tmp_path / "whole", **options)
    for (name, a), b in zip(whole.method.state_dict().items(), resumed.method.state_dict().values(), strict=True):
        assert torch.equal(a, b), name


def test_the_training_time_is_saved_at_checkpoints(digits, tmp_path):
    noted = []
    file = tmp_path / "run" / "time.json"
    uw.train("vae", digits, net="small", out=file.parent, observe=lambda _: noted.append(file.is_file()), **OPTIONS)
    assert noted == [False, True, True, True]  # checkpoints at steps 4 and 8


def test_divergence_is_reported_in_one_line(digits, tmp_path):
    with raises("lr", value=1e6):
        uw.train("vae", digits, out=tmp_path / "run", net="small", **OPTIONS | {"lr": 1e6, "steps": 50})


class Poisoned(OneStage):
    """Not a number from the second step on."""

    def forward(self, batch, noise, hyper, step):
        out = super().forward(batch, noise, hyper, step)
        bad = torch.where(step >= 1, math.nan, 1.0)
        return out._replace(losses={"model": bad * out.losses["model"]}, logs={"loss": bad * out.logs["loss"]})


def test_not_a_number_stops_a_run_and_its_last_checkpoint_is_good(digits, tmp_path):
    options = OPTIONS | {"log_every": 1, "checkpoint_every": 1}
    with raises("lr") as error:
        uw.train(Poisoned, digits, out=tmp_path / "run", **options)
    assert mentions(str(error.value), "loss", "step 2")
    loaded = uw.load(tmp_path / "run", method=Poisoned)
    assert all(p.isfinite().all() for p in loaded.method.parameters())


def test_bf16_is_refused_on_the_cpu(digits, tmp_path):
    with raises("precision", value="bf16"):
        uw.train("vae", digits, out=tmp_path / "run", device="cpu", precision="bf16")
    assert not (tmp_path / "run").exists()


def test_a_method_that_is_neither_a_name_nor_a_class_is_refused(tmp_path):
    with raises("method", value=3):
        uw.train(3, "digits(size=16)", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_images_and_codes_that_do_not_fit_the_model_are_refused(tmp_path):
    run = uw.train("vae", "digits(size=16)", net="small", latents=3, steps=1, batch=4, device="cpu", out=tmp_path / "r")
    images = run.data.images(torch.arange(5))
    levels = (images * 255).round()
    assert np.allclose(run.encode(levels.to(torch.uint8)), run.encode(levels / 255), atol=1e-6)
    assert run.encode(images[:0]).shape == (0, 3)
    for wrong in (levels, images * torch.nan, images[0], images[:, :, :8]):
        with raises("images"):
            run.encode(wrong)
    with raises("codes"):
        run.decode(np.zeros((2, 4)))


def test_data_given_to_load_may_be_a_name_and_must_fit(tmp_path):
    uw.train("vae", "digits(size=16)", net="small", latents=3, steps=1, batch=4, device="cpu", out=tmp_path / "run")
    assert uw.load(tmp_path / "run", data="digits(size=16)").data.size == 1797
    with raises("data"):
        uw.load(tmp_path / "run", data="digits(size=32)")


def test_numpy_integers_are_accepted(tmp_path):
    (seed,) = np.arange(3, 4)
    run = uw.train(
        "vae", "digits(size=16)", net="small", steps=np.int32(1), seed=seed, device="cpu", out=tmp_path / "r"
    )
    assert uw.load(run.folder.path).config.seed == 3


def test_a_batch_that_does_not_fit_into_memory_is_refused(digits, tmp_path, monkeypatch):
    def allocate(*_):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 51200000000 bytes")

    monkeypatch.setattr("unweave.training.prepare.compute_losses", allocate)
    with raises("batch", value=4):
        uw.train("vae", digits, out=tmp_path / "run", net="small", **OPTIONS | {"batch": 4})
    assert not (tmp_path / "run").exists()
