"""Ada-GVAE: learn from pairs that share an unknown set of factors."""

from typing import Annotated, Any, NamedTuple, final

from torch import Tensor

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, normal
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.paired import pair_loss, pair_pass
from unweave.nn.settings import KnownCount, Latents, LikelihoodName, Net, Symmetric
from unweave.ops.sharing import average_shared


@final
class AdaGVAE(Method):
    """Locatello et al. 2020, eq. 5-6: posteriors are averaged in the latents that a pair seems to share."""

    class Hyper(NamedTuple):
        beta: Annotated[Tensor, HyperParam(1.0, "weight of the KL term", paper="1, 2, 4, 6, 8, 16")]

    paper = "Locatello et al., Weakly-Supervised Disentanglement Without Compromises, ICML 2020"
    equation = "1/2 sum_(i=1,2) ( -E_q~(z|x_i)[log p(x_i|z)] + beta KL(q~(z|x_i) || p(z)) )"
    players = {"model": ("autoencoder",)}
    noise = {"eps": normal("B", "Z"), "eps_pair": normal("B", "Z")}
    optimizer_defaults = {"model": {"lr": 1e-4}}

    def __init__(
        self,
        data: DataInfo,
        *,
        latents: Latents = 10,
        net: Net = "locatello",
        likelihood: LikelihoodName = "bernoulli",
        known_k: KnownCount = False,
        symmetric: Symmetric = False,
    ) -> None:
        super().__init__()
        self.latents, self.known_k, self.symmetric = latents, known_k, symmetric
        self.needs = ("x", "pair", "changed") if known_k else ("x", "pair")
        self.autoencoder = AutoEncoder(data.shape, latents, net, likelihood)

    def forward(self, batch: Batch, noise: Any, hyper: Hyper, step: Tensor) -> Out:
        changed = batch.changed if self.known_k else None
        p = pair_pass(self.autoencoder, batch, noise, average_shared, changed_B=changed, symmetric=self.symmetric)
        loss, logs = pair_loss(p, hyper.beta)
        return Out({"model": loss}, logs)
