"""beta-TCVAE: total correlation from minibatch estimates of the aggregate posterior."""

from typing import Annotated, Any, NamedTuple, final

from torch import Tensor

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, Setting, normal
from unweave.errors import check_choice
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.settings import Latents, LikelihoodName, Net
from unweave.ops.divergence import log_standard
from unweave.ops.total_correlation import aggregate_posterior


@final
class BetaTCVAE(Method):
    """Chen et al. 2018, eq. 4. The closed-form KL has all terms with weight 1; only the rest is estimated."""

    class Hyper(NamedTuple):
        beta: Annotated[Tensor, HyperParam(6.0, "weight of the total correlation", paper="1, 2, 4, 6, 8, 10")]
        alpha: Annotated[Tensor, HyperParam(1.0, "weight of the index-code mutual information", paper="1")]
        gamma: Annotated[Tensor, HyperParam(1.0, "weight of the dimension-wise KL", paper="1")]

    paper = "Chen et al., Isolating Sources of Disentanglement in Variational Autoencoders, NeurIPS 2018"
    equation = (
        "-E_q(z|x)[log p(x|z)] + alpha I_q(z;n) + beta KL(q(z) || prod_j q(z_j)) + gamma sum_j KL(q(z_j) || p(z_j))"
    )
    players = {"model": ("autoencoder",)}
    noise = {"eps": normal("B", "Z")}
    optimizer_defaults = {"model": {"lr": 1e-4}}

    def __init__(
        self,
        data: DataInfo,
        *,
        latents: Latents = 10,
        net: Net = "locatello",
        likelihood: LikelihoodName = "bernoulli",
        estimator: Annotated[str, Setting("mws (minibatch-weighted) or mss (stratified)")] = "mws",
    ) -> None:
        super().__init__()
        check_choice("estimator", estimator, ("mws", "mss"))
        self.latents, self.size, self.estimator = latents, data.size, estimator
        self.autoencoder = AutoEncoder(data.shape, latents, net, likelihood)

    def forward(self, batch: Batch, noise: Any, hyper: Hyper, step: Tensor) -> Out:
        p = self.autoencoder(batch.x, noise["eps"])
        q = aggregate_posterior(p.z_BZ, p.mean_BZ, p.logvar_BZ, size=self.size, estimator=self.estimator)
        recon, kl = p.nll_B.mean(), p.kl_BZ.sum(1).mean()
        index_mi = (q.log_own - q.log_joint).mean()
        tc = (q.log_joint - q.log_product).mean()
        dimension_kl = (q.log_product - log_standard(p.z_BZ).sum(1)).mean()
        loss = recon + kl + (hyper.alpha - 1.0) * index_mi + (hyper.beta - 1.0) * tc
        loss = loss + (hyper.gamma - 1.0) * dimension_kl
        logs = {"loss": loss, "recon": recon, "kl": kl, "tc": tc, "index_mi": index_mi, "dimension_kl": dimension_kl}
        return Out({"model": loss}, logs)
