"""AAE: learning rate of the encoder's adversarial phase, as a share of the other players', on 8 x 8 digits.

    python benchmarks/experiments/aae_rates.py --steps 800 --shares 1,0.3,0.1 --width 128

The size of Adam's updates does not depend on the scale of the loss, so the learning rates weight the two phases.
Prints means over the last fifth of the steps, the MMD between the codes of all images and the prior, and the
log-determinant of the codes' covariance (0 for the prior).
"""

from __future__ import annotations

import argparse
import math

import torch
from torch import nn

from unweave.data import load_data
from unweave.engine.program import initial_state
from unweave.engine.replicas import make_engine
from unweave.methods.aae import AAE
from unweave.nn.discriminator import Discriminator
from unweave.nn.networks import init_weights
from unweave.ops.mmd import KERNELS, unbiased_mmd
from unweave.training.build import build, build_program
from unweave.training.prepare import prepare


def dense(shape: tuple[int, ...], code: int, width: int) -> tuple[nn.Sequential, nn.Sequential]:
    """Return an encoder and a decoder with two hidden layers of this width."""
    pixels = math.prod(shape)
    encoder = [nn.Flatten(), nn.Linear(pixels, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    decoder = [nn.Linear(code, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, pixels)]
    return nn.Sequential(*encoder, nn.Linear(width, 2 * code)), nn.Sequential(*decoder, nn.Unflatten(1, shape))


def narrow(method: AAE, shape: tuple[int, int, int], arguments: argparse.Namespace) -> None:
    """Replace all three networks by networks of this width."""
    torch.manual_seed(arguments.seed)
    method.autoencoder.encoder, method.autoencoder.decoder = dense(shape, method.latents, arguments.width)
    method.discriminator = Discriminator(method.latents, width=arguments.width, depth=2)
    init_weights(method.autoencoder)


def train(share: float, arguments: argparse.Namespace) -> tuple[dict[str, float], torch.Tensor]:
    """Return the last logs and the codes of all images."""
    config = prepare(AAE, "digits", net=arguments.net, seed=arguments.seed, lr=arguments.lr).config
    config.optimizers["encoder"]["lr"] *= share
    data = load_data("digits").to(config.device)
    method = build(AAE, config, data)
    if arguments.width:
        narrow(method, data.shape, arguments)
        method.to(config.device)
    runner = make_engine(build_program(config, method, data), initial_state(method), "auto")
    runner.run(arguments.steps - arguments.steps // 5)
    logs = runner.run(arguments.steps // 5)
    method.load_state_dict({**runner.state.params, **runner.state.buffers})
    with torch.no_grad():
        return logs, method.representation().encode(data.images(torch.arange(data.size, device=config.device))).cpu()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--shares", default="1,0.3,0.1")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--net", default="small")
    parser.add_argument("--width", type=int, default=0, help="hidden units of all networks; 0: those of --net")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(
        "| share | reconstruction, nats | discriminator accuracy | MMD | log-determinant |\n|---|---|---|---|---|",
        flush=True,
    )
    for share in map(float, arguments.shares.split(",")):
        logs, codes = train(share, arguments)
        prior = torch.randn(codes.shape, generator=torch.Generator().manual_seed(0))
        mmd, volume = unbiased_mmd(codes, prior, KERNELS["imq"]), torch.logdet(torch.cov(codes.T))
        print(
            f"| {share:g} | {logs['recon']:.1f} | {logs['discriminator_accuracy']:.2f} | {mmd:.4f} | {volume:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
