"""beta-VAE: a KL term with a larger weight."""

from typing import Annotated, Any, NamedTuple, final

from torch import Tensor

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, normal
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.settings import Latents, LikelihoodName, Net


@final
class BetaVAE(Method):
    """Higgins et al. 2017, eq. 4."""

    class Hyper(NamedTuple):
        beta: Annotated[Tensor, HyperParam(4.0, "weight of the KL term", paper="1, 2, 4, 6, 8, 16")]

    paper = (
        "Higgins et al., beta-VAE: Learning Basic Visual Concepts with a Constrained Variational Framework, ICLR 2017"
    )
    equation = "-E_q(z|x)[log p(x|z)] + beta KL(q(z|x) || p(z))"
    players = {"model": ("autoencoder",)}
    noise = {"eps": normal("B", "Z")}
    optimizer_defaults = {"model": {"lr": 1e-4}}

    def __init__(
        self, data: DataInfo, *, latents: Latents = 10, net: Net = "locatello", likelihood: LikelihoodName = "bernoulli"
    ) -> None:
        super().__init__()
        self.latents = latents
        self.autoencoder = AutoEncoder(data.shape, latents, net, likelihood)

    def forward(self, batch: Batch, noise: Any, hyper: Hyper, step: Tensor) -> Out:
        p = self.autoencoder(batch.x, noise["eps"])
        recon, kl = p.nll_B.mean(), p.kl_BZ.sum(1).mean()
        loss = recon + hyper.beta * kl
        return Out({"model": loss}, {"loss": loss, "recon": recon, "kl": kl})
