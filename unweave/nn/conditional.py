"""A variational autoencoder with a class: q(y|x), q(z|x, y) and p(x|y, z), of images or of codes (Kingma et al. 2014).

Shape letters: B batch, Y classes, N classes evaluated for each observation, Z latents, F features.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.contract import DataInfo, Noise, Part, normal, uniform
from unweave.errors import check_integer, invalid
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.likelihoods import find_likelihood
from unweave.nn.networks import Shape, build_networks, init_weights
from unweave.nn.precision import at_least_float32
from unweave.ops.divergence import kl_standard, log_gaussian, reparametrize
from unweave.ops.partial_labels import binary_sample, marginal_bound, one_hot

_KINGMA = 500  # units of the hidden layer of each of Kingma's networks
_OTHER = 256  # number of features of any other encoder


class LabelPass(NamedTuple):
    """One pass of labelled and of unlabelled observations, unreduced."""

    labelled_B: Tensor  # L(x, y), the bound of -log p(x, y)
    unlabelled_B: Tensor  # U(x), the bound of -log p(x)
    cross_B: Tensor  # -log q(y|x) of the labelled observations
    correct_B: Tensor  # 1 if their most probable class is the label
    recon_B: tuple[Tensor, Tensor]  # -log p(x|y, z) of labelled and, averaged over q(y|x), of unlabelled observations
    kl_B: tuple[Tensor, Tensor]  # KL(q(z|x, y) || p(z)) of the same observations


def class_count(data: DataInfo) -> int:
    """Return the number of classes of the labelled factor; raise unless there is exactly one."""
    if len(data.labels) == 1:
        return data.labels[0]
    names = data.factors or ("NAME",)
    listed = f" (one of {', '.join(names)})" if data.factors else ""
    accepted = f"labels of one factor, such as labels(n=100, factors=[{names[0]!r}])"
    raise invalid("supervision", data.supervision or "none", accepted + listed)


class ClassEncoder(nn.Module):
    """q(z|x, y): the features of the observation and of the class are added, as in one layer of both."""

    def __init__(self, trunk: nn.Module, width: int, classes: int, latents: int) -> None:
        super().__init__()
        self.trunk, self.label, self.head = trunk, nn.Linear(classes, width, bias=False), nn.Linear(width, 2 * latents)
        init_weights(self)

    def forward(self, x: Tensor, y_BNY: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log-variance [B, N, Z] for each of N classes; features of x are computed once."""
        hidden_BNF = F.softplus(self.trunk(x).unsqueeze(1) + self.label(y_BNY))
        mean_BNZ, logvar_BNZ = at_least_float32(self.head(hidden_BNF)).chunk(2, dim=2)
        return mean_BNZ, logvar_BNZ


class ConditionalAutoEncoder(nn.Module):
    """The three networks; `nll(x, output)` is -log p(x|output)."""

    def __init__(
        self, trunks: tuple[nn.Module, nn.Module], width: int, decoder: nn.Module, nll: Callable, sizes: tuple[int, int]
    ) -> None:
        super().__init__()
        self.classes, self.latents = sizes
        self.nll = nll
        self.classifier = nn.Sequential(trunks[0], nn.Softplus(), nn.Linear(width, self.classes))
        self.encoder, self.decoder = ClassEncoder(trunks[1], width, *sizes), decoder
        init_weights(self.classifier)

    def log_classes(self, x: Tensor) -> Tensor:
        """Return log q(y|x) [B, Y]."""
        return at_least_float32(self.classifier(x)).log_softmax(1)

    def terms(self, x: Tensor, y_BNY: Tensor, eps_BZ: Tensor) -> tuple[Tensor, Tensor]:
        """Return -log p(x|y, z) and KL(q(z|x, y) || p(z)), both [B, N], for each of N classes with equal noise."""
        mean_BNZ, logvar_BNZ = self.encoder(x, y_BNY)
        z_BNZ = reparametrize(mean_BNZ, logvar_BNZ, eps_BZ.unsqueeze(1))
        output = self.decoder(torch.cat([z_BNZ, y_BNY], 2).flatten(0, 1))
        rows = x.unsqueeze(1).expand(-1, y_BNY.shape[1], *x.shape[1:]).flatten(0, 1)
        return self.nll(rows, output).unflatten(0, y_BNY.shape[:2]), kl_standard(mean_BNZ, logvar_BNZ).sum(2)

    def every_class(self, like_BY: Tensor) -> Tensor:
        """Return all classes, one-hot, for each observation [B, Y, Y]."""
        eye_YY = torch.eye(self.classes, dtype=like_BY.dtype, device=like_BY.device)
        return eye_YY.expand(like_BY.shape[0], -1, -1)

    def encode(self, x: Tensor) -> Tensor:
        """Return codes [B, Z + Y]: the mean of z under q(y|x) q(z|x, y), then q(y|x)."""
        q_BY = self.log_classes(x).exp()
        mean_BYZ, _ = self.encoder(x, self.every_class(q_BY))
        return torch.cat([(q_BY.unsqueeze(2) * mean_BYZ).sum(1), q_BY], 1)

    def parts(self) -> tuple[Part, ...]:
        """Return the parts of a code."""
        return Part("style", self.latents), Part("class", self.classes, classes=True)


def label_pass(
    model: ConditionalAutoEncoder, labelled: Tensor, class_B: Tensor, x: Tensor, eps: tuple[Tensor, Tensor]
) -> LabelPass:
    """Return both bounds, with a uniform p(y), and the classifier's loss.

    `eps` is the noise of the labelled observations and that of x. Every label must be known.
    """
    log_labelled_BY, logq_BY = model.log_classes(labelled), model.log_classes(x)
    y_BY, log_classes = one_hot(class_B, log_labelled_BY), math.log(model.classes)
    labelled_nll_B1, labelled_kl_B1 = model.terms(labelled, y_BY.unsqueeze(1), eps[0])
    nll_BY, kl_BY = model.terms(x, model.every_class(logq_BY), eps[1])
    q_BY = logq_BY.exp()
    return LabelPass(
        (labelled_nll_B1 + labelled_kl_B1).squeeze(1) + log_classes,
        marginal_bound(nll_BY + kl_BY + log_classes, logq_BY),
        -(y_BY * log_labelled_BY).sum(1),
        (log_labelled_BY.argmax(1) == class_B).to(x.dtype),
        (labelled_nll_B1.squeeze(1), (q_BY * nll_BY).sum(1)),
        (labelled_kl_B1.squeeze(1), (q_BY * kl_BY).sum(1)),
    )


def m2_objective(p: LabelPass, data: DataInfo, alpha: Tensor, weight_nll: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """Return eq. 9 divided by the size of the data set, and the logged quantities.

    `weight_nll` is -log p(weights). The means of the labelled and the unlabelled batch are weighted by the shares
    of labelled and unlabelled data. The paper's weight of the classifier's loss, alpha N, is alpha here.
    """
    share = data.labelled / data.size

    def weighted(labelled_B: Tensor, unlabelled_B: Tensor) -> Tensor:
        return share * labelled_B.mean() + (1.0 - share) * unlabelled_B.mean()

    cross = p.cross_B.mean()
    loss = weighted(p.labelled_B, p.unlabelled_B) + alpha * cross + weight_nll / data.size
    logs = {"loss": loss, "recon": weighted(*p.recon_B), "kl": weighted(*p.kl_B), "labelled": p.labelled_B.mean()}
    logs |= {"unlabelled": p.unlabelled_B.mean(), "cross_entropy": cross, "accuracy": p.correct_B.mean()}
    return loss, logs


def half_squared_norm(module: nn.Module) -> Tensor:
    """Return half the squared norm of all weights: -log of a standard normal prior, up to a constant."""
    return 0.5 * sum(parameter.square().sum() for parameter in module.parameters())  # type: ignore[return-value]


def image_noise(shape: Shape, binarize: bool) -> dict[str, Noise]:
    """Return the noise of a VAE of images that is the first of two stages."""
    return {"eps": normal("B", "Z")} | ({"pixels": uniform("B", *shape)} if binarize else {})


def image_loss(autoencoder: AutoEncoder, x: Tensor, noise: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Tensor]:
    """Return the logged quantities of that VAE, including the loss, and the KL of each latent in nats.

    If there is noise for pixels, the loss is that of binary samples of x.
    """
    p = autoencoder(binary_sample(x, noise["pixels"]) if "pixels" in noise else x, noise["eps"])
    recon, kl_Z = p.nll_B.mean(), p.kl_BZ.mean(0)
    kl = kl_Z.sum()
    return {"loss": recon + kl, "recon": recon, "kl": kl}, kl_Z


def image_conditional(net: str, shape: Shape, latents: int, classes: int, likelihood: str) -> ConditionalAutoEncoder:
    """Return the networks for images: with "kingma" one hidden layer of 500 each, otherwise those of `networks.py`."""
    check_integer("latents", latents, 1)
    nll = find_likelihood(likelihood).nll
    pixels, width = math.prod(shape), _KINGMA if net == "kingma" else _OTHER
    if net == "kingma":
        decoder: nn.Module = nn.Sequential(*_hidden(latents + classes, pixels), nn.Unflatten(1, shape))
    else:
        decoder = build_networks(net, shape, latents + classes)[1]

    def trunk() -> nn.Module:
        if net == "kingma":
            return nn.Sequential(nn.Flatten(), nn.Linear(pixels, width))
        return build_networks(net, shape, width // 2)[0]

    init_weights(decoder)
    return ConditionalAutoEncoder((trunk(), trunk()), width, decoder, nll, (classes, latents))


class UsedCode(nn.Module):
    """-log p(code) of the coordinates of a code that are in use; the others are noise, and masked."""

    def __init__(self, used_Z: Tensor) -> None:
        super().__init__()
        self.used_Z = nn.Buffer(used_Z.to(torch.get_default_dtype()))
        self.register_load_state_dict_pre_hook(self._use_all)

    def _use_all(self, _: nn.Module, state_dict: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        """Older runs lack the buffer: they used all coordinates."""
        state_dict.setdefault(f"{prefix}used_Z", torch.ones_like(self.used_Z))

    def mask(self, code_BZ: Tensor) -> Tensor:
        return code_BZ * self.used_Z

    def forward(self, code_BZ: Tensor, output: Tensor) -> Tensor:
        """Return -log p(code) [B]; the output is mean and log-variance, concatenated."""
        mean_BZ, logvar_BZ = at_least_float32(output).chunk(2, dim=1)
        return -(self.used_Z * log_gaussian(code_BZ, mean_BZ, logvar_BZ)).sum(1)


def code_conditional(code: UsedCode, latents: int, classes: int) -> ConditionalAutoEncoder:
    """Return the networks for codes, with a Gaussian p(code|y, z): one hidden layer of 500 each."""
    size = len(code.used_Z)
    trunks = nn.Linear(size, _KINGMA), nn.Linear(size, _KINGMA)
    decoder = nn.Sequential(*_hidden(latents + classes, 2 * size))
    init_weights(decoder)
    return ConditionalAutoEncoder(trunks, _KINGMA, decoder, code, (classes, latents))


def _hidden(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Linear(inputs, _KINGMA), nn.Softplus(), nn.Linear(_KINGMA, outputs)]
