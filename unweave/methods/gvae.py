"""GVAE: content averaged over a group of observations, and a style of each observation."""

from typing import Annotated, Any, NamedTuple, final

from torch import Tensor

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, Representation, normal
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.grouped import content_and_style, content_size, encode_group, group_loss, group_pass
from unweave.nn.settings import Content, Latents, LikelihoodName, Net, PerMember
from unweave.ops.sharing import average_of_gaussians


@final
class GVAE(Method):
    """Hosoya 2019: the group's content posterior has the mean of its members' means and of their variances."""

    class Hyper(NamedTuple):
        beta: Annotated[Tensor, HyperParam(1.0, "weight of both KL terms", paper="1; later studies 1, 2, 4, 6, 8, 16")]

    paper = "Hosoya, Group-based Learning of Disentangled Representations (...) for Novel Contents, IJCAI 2019"
    equation = (
        "1/G ( sum_(i in group) ( -E[log p(x_i|c,s_i)] + beta KL(q(s_i|x_i) || p(s)) ) "
        "+ beta KL(q(c|group) || p(c)) ), q(c|group) = N(mean_i mu_i, mean_i sigma_i^2)"
    )
    needs = ("groups",)
    example_supervision = "groups(by=['shape'], size=2)"
    players = {"model": ("autoencoder",)}
    optimizer_defaults = {"model": {"lr": 1e-4}}

    def __init__(
        self,
        data: DataInfo,
        *,
        latents: Latents = 10,
        net: Net = "locatello",
        likelihood: LikelihoodName = "bernoulli",
        content: Content = 0,
        per_member: PerMember = False,
    ) -> None:
        super().__init__()
        self.latents, self.per_member = latents, per_member
        self.content = content_size(content, latents)  # the first latents; the others are style
        self.noise = {"eps": normal("B", data.members, "Z")}
        self.autoencoder = AutoEncoder(data.shape, latents, net, likelihood)

    def forward(self, batch: Batch, noise: Any, hyper: Hyper, step: Tensor) -> Out:
        p = group_pass(self.autoencoder, batch.groups, noise["eps"], self.content, average_of_gaussians)
        loss, logs = group_loss(p, hyper.beta, per_member=self.per_member)
        return Out({"model": loss}, logs)

    def encode_group(self, images: Tensor) -> Tensor:
        """Return the codes [..., G, Z] of groups [..., G, C, H, W]; the content is that of the average posterior."""
        return encode_group(self.autoencoder, images, self.content, average_of_gaussians)

    def representation(self) -> Representation:
        parts = content_and_style(self.content, self.latents)
        return self.autoencoder.representation()._replace(parts=parts, encode_group=self.encode_group)
