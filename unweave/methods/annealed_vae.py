"""AnnealedVAE: a KL capacity that grows during training."""

from typing import Annotated, Any, NamedTuple, final

from torch import Tensor

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, normal
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.settings import Latents, LikelihoodName, Net
from unweave.ops.schedules import linear


@final
class AnnealedVAE(Method):
    """Burgess et al. 2018, eq. 8: a penalty keeps the KL near a capacity C that rises linearly from 0 to c_max."""

    class Hyper(NamedTuple):
        gamma: Annotated[Tensor, HyperParam(1000.0, "weight of the distance to the capacity", paper="1000")]
        c_max: Annotated[Tensor, HyperParam(25.0, "final capacity in nats", paper="5, 10, 25, 50, 75, 100")]
        anneal_steps: Annotated[Tensor, HyperParam(100_000.0, "steps until c_max is reached", paper="100000", low=1.0)]

    paper = "Burgess et al., Understanding disentangling in beta-VAE, arXiv:1804.03599, 2018"
    equation = "-E_q(z|x)[log p(x|z)] + gamma |KL(q(z|x) || p(z)) - C(step)|"
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
        capacity = linear(step, 0.0 * hyper.c_max, hyper.c_max, hyper.anneal_steps)
        loss = recon + hyper.gamma * (kl - capacity).abs()
        return Out({"model": loss}, {"loss": loss, "recon": recon, "kl": kl, "capacity": capacity})
