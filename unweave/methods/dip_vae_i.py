"""DIP-VAE-I: a penalty on the moments of the posterior means."""

from typing import Annotated, Any, NamedTuple, final

from torch import Tensor

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, normal
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.settings import Latents, LikelihoodName, Net
from unweave.ops.moments import covariance, identity_penalty


@final
class DIPVAEI(Method):
    """Kumar et al. 2018, eq. 6: the covariance of the posterior means is regularised to the identity."""

    class Hyper(NamedTuple):
        lambda_od: Annotated[
            Tensor, HyperParam(10.0, "weight of the off-diagonal covariances", paper="1, 2, 5, 10, 20, 50")
        ]
        lambda_d: Annotated[Tensor, HyperParam(100.0, "weight of the variances' distance to 1", paper="10 lambda_od")]

    paper = "Kumar et al., Variational Inference of Disentangled Latent Concepts from Unlabeled Observations, ICLR 2018"
    equation = (
        "-E_q(z|x)[log p(x|z)] + KL(q(z|x) || p(z)) + lambda_od sum_(i!=j) S_ij^2 + lambda_d sum_i (S_ii - 1)^2, "
        "S = Cov[mu(x)]"
    )
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
        penalty = identity_penalty(covariance(p.mean_BZ), hyper.lambda_od, hyper.lambda_d)
        loss = recon + kl + penalty
        return Out({"model": loss}, {"loss": loss, "recon": recon, "kl": kl, "dip": penalty})
