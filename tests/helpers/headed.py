"""Shared by the tests of adversarial autoencoders: a small problem, and the terms of the losses."""

import functools
import math

import torch
from torch import nn

import unweave as uw
from unweave.contract import Batch, DataInfo, hyper_params
from unweave.engine.loop import LoopEngine, train_step
from unweave.engine.program import initial_state
from unweave.nn import networks
from unweave.nn.discriminator import Discriminator
from unweave.training.build import build, build_program
from unweave.training.prepare import prepare

DRAWS = {"normal": torch.randn, "uniform": torch.rand}


class Headed:
    """A method on random 8 x 8 images in double precision, with labels of one factor with 4 classes."""

    def __init__(self, cls, *, batch=6, labels=(4,), latents=3, **arguments):
        self.draw = torch.Generator().manual_seed(1)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.method = cls(DataInfo((1, 8, 8), 100, labels), latents=latents, net="small", **arguments).double()
        with torch.no_grad():  # away from zero biases
            for parameter in self.method.parameters():
                parameter += 0.1 * self.random(torch.randn, *parameter.shape)
        x, labelled = (self.random(torch.rand, batch, 1, 8, 8) for _ in range(2))
        label_BL = torch.arange(batch)[:, None] % (labels or (1,))[0]
        self.batch = Batch(x=x, labelled=labelled, labels=label_BL)
        sizes = {"B": batch, "Z": latents}
        self.noise = {
            name: self.random(DRAWS[want.kind], *(sizes.get(d, d) for d in want.dims))
            for name, want in self.method.noise.items()
        }

    def random(self, kind, *shape):
        return kind(shape, generator=self.draw, dtype=torch.float64)

    def out(self, phase, **hyper):
        values = {
            name: torch.tensor(hyper.get(name, param.default))
            for name, param in hyper_params(type(self.method)).items()
        }
        return self.method(self.batch, self.noise, self.method.Hyper(**values), torch.tensor(0), phase=phase)

    def raw(self, x):
        """Return style and logits of a training batch, computed layer by layer with the batch norm of torch."""
        encoder = self.method.autoencoder.encoder
        for n, layer in enumerate(encoder.layers):
            x = layer(x)
            if str(n) in encoder.norms:
                x = normed(x, encoder.norms[str(n)])
        style, logits = x[:, : self.method.latents], x[:, self.method.latents : x.shape[1] // 2]
        style = style if encoder.style is None else normed(style, encoder.style)
        return style, logits if encoder.last is None else normed(logits, encoder.last)

    def recon(self, code):
        """Return the cross-entropy of the pixels."""
        chance = self.method.autoencoder.decoder(code).sigmoid()
        x = self.batch.x
        return -(x * chance.log() + (1 - x) * (1 - chance).log()).flatten(1).sum(1).mean()

    def one_hot(self, classes):
        return torch.stack(
            [torch.eye(classes, dtype=torch.float64)[int(u * classes)] for u in self.noise["place"][:, 0]]
        )


def normed(x, norm):
    return nn.functional.batch_norm(x, None, None, norm.gain_F, norm.shift_F, training=True)


def chance(discriminator, codes):
    """Return D, the probability of being from the prior."""
    return discriminator(codes).softmax(1)[:, 1]


def discriminator_by_hand(discriminator, codes, prior):
    return -0.5 * (chance(discriminator, prior).log() + (1 - chance(discriminator, codes)).log()).mean()


def dense(shape, latents, width=64):
    """Return a small encoder and decoder."""
    pixels = math.prod(shape)
    encoder = [nn.Flatten(), nn.Linear(pixels, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    decoder = [nn.Linear(latents, width), nn.ReLU(), nn.Linear(width, pixels), nn.Unflatten(1, shape)]
    return nn.Sequential(*encoder, nn.Linear(width, 2 * latents)), nn.Sequential(*decoder)


def program_on_digits(monkeypatch, cls, supervision="none", *, lr=2e-3, seed=0, **settings):
    """Return a method with small networks and its program, on 8 x 8 digits."""
    monkeypatch.setitem(networks.DENSE, "makhzani", dense)
    monkeypatch.setattr(f"{cls.__module__}.Discriminator", functools.partial(Discriminator, width=64))
    data = uw.load_data("digits")
    options = {"net": "makhzani", "supervision": supervision, "lr": lr, "seed": seed, "device": "cpu", **settings}
    config = prepare(cls, data, **options).config
    method = build(cls, config, data)
    return method, build_program(config, method, data)


def trained_on_digits(monkeypatch, cls, supervision="none", *, steps, **settings):
    """Return the trained method, its last logs, and all images with their digits."""
    method, program = program_on_digits(monkeypatch, cls, supervision, **settings)
    runner = LoopEngine(program, initial_state(method))
    logs = runner.run(steps)
    method.load_state_dict({**runner.state.params, **runner.state.buffers})
    everything = torch.arange(1797)
    data = program.sample.data
    return method, logs, data.images(everything), data.factors(everything)[:, 0]


def updated_by_phase(method, program):
    """Return the modules that each phase of one step updates."""
    found, state, phases = {}, initial_state(method), dict(method.phases)
    for name, players in phases.items():
        method.phases = {name: players}
        after, _ = train_step(program._replace(method=method), state)
        moved = {n for n in state.params if not torch.equal(state.params[n], after.params[n])}
        found[name] = {".".join(n.split(".")[:2]) if n.startswith("autoencoder") else n.split(".")[0] for n in moved}
    method.phases = phases
    return found
