"""A method of your own: a VAE with sparse codes, trained, scored and reported like any other method.

python examples/own_method.py --steps 3000
"""

from __future__ import annotations

import argparse
from typing import Annotated, Any, NamedTuple

from torch import Tensor

import unweave as uw
from unweave.nn.autoencoder import AutoEncoder
from unweave.report import report


class SparseVAE(uw.Method):
    """beta-VAE with an L1 penalty on the posterior means: latents that an image does not need should be zero."""

    class Hyper(NamedTuple):
        beta: Annotated[Tensor, uw.HyperParam(2.0, "weight of the KL term")]
        sparsity: Annotated[Tensor, uw.HyperParam(0.5, "weight of the L1 norm of the means")]

    players = {"model": ("autoencoder",)}
    noise = {"eps": uw.normal("B", "Z")}

    def __init__(self, data: uw.DataInfo, *, latents: int = 10, net: str = "small") -> None:
        super().__init__()
        self.latents = latents
        self.autoencoder = AutoEncoder(data.shape, latents, net, "bernoulli")

    def forward(self, batch: uw.Batch, noise: Any, hyper: Hyper, step: Tensor) -> uw.Out:
        p = self.autoencoder(batch.x, noise["eps"])
        recon, kl, l1 = p.nll_B.mean(), p.kl_BZ.sum(1).mean(), p.mean_BZ.abs().sum(1).mean()
        loss = recon + hyper.beta * kl + hyper.sparsity * l1
        return uw.Out({"model": loss}, {"loss": loss, "recon": recon, "kl": kl, "l1": l1})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="sprites(size=32)")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--out", default="runs/sparse_vae")
    arguments = parser.parse_args()
    model = uw.train(SparseVAE, arguments.data, steps=arguments.steps, lr=1e-3, sparsity=1.0, out=arguments.out)
    print(uw.evaluate(model).scores)
    print(report([model], f"{arguments.out}/report.html"))


if __name__ == "__main__":
    main()
