"""VAE: the variational autoencoder."""

from typing import Any, final

from torch import Tensor

from unweave.contract import Batch, DataInfo, Method, Out, normal
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.settings import Latents, LikelihoodName, Net


@final
class VAE(Method):
    """Kingma & Welling 2014, eq. 7: the negative evidence lower bound."""

    paper = "Kingma and Welling, Auto-Encoding Variational Bayes, ICLR 2014"
    equation = "-E_q(z|x)[log p(x|z)] + KL(q(z|x) || p(z))"
    players = {"model": ("autoencoder",)}
    noise = {"eps": normal("B", "Z")}
    optimizer_defaults = {"model": {"lr": 1e-4}}

    def __init__(
        self, data: DataInfo, *, latents: Latents = 10, net: Net = "locatello", likelihood: LikelihoodName = "bernoulli"
    ) -> None:
        super().__init__()
        self.latents = latents
        self.autoencoder = AutoEncoder(data.shape, latents, net, likelihood)

    def forward(self, batch: Batch, noise: Any, hyper: Any, step: Tensor) -> Out:
        p = self.autoencoder(batch.x, noise["eps"])
        recon, kl = p.nll_B.mean(), p.kl_BZ.sum(1).mean()
        return Out({"model": recon + kl}, {"loss": recon + kl, "recon": recon, "kl": kl})
