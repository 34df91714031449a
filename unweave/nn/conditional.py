"""A variational autoencoder with a class: q(y|x), q(z|x, y) and p(x|y, z), of images or of codes (Kingma et al. 2014).

Shape letters: B batch, Y classes, N classes that are tried for each observation, Z latents, F features.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.contract import DataInfo, Noise, Part, normal, uniform
from unweave.errors import UserError
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.likelihoods import find_likelihood
from unweave.nn.networks import Shape, build_networks, init_weights
from unweave.nn.precision import at_least_single
from unweave.ops.divergence import kl_standard, log_gaussian, reparametrize
from unweave.ops.partial_labels import binary_sample, marginal_bound, one_hot

_KINGMA = 500  # units of the one hidden layer of each of Kingma's networks
_OTHER = 256  # features that any other encoder hands over to the class


class LabelPass(NamedTuple):
    """One pass of labelled and of unlabelled observations, a number for each."""

    labelled_B: Tensor  # L(x, y), the bound of -log p(x, y)
    unlabelled_B: Tensor  # U(x), the bound of -log p(x)
    cross_B: Tensor  # -log q(y|x) of the labelled ones
    right_B: Tensor  # 1 where their most probable class is the label
    recon_B: tuple[Tensor, Tensor]  # -log p(x|y, z) of the labelled and, over q(y|x), of the unlabelled ones
    kl_B: tuple[Tensor, Tensor]  # KL(q(z|x, y) || p(z)), likewise


def class_count(data: DataInfo) -> int:
    """The classes of the one labelled factor."""
    if not data.labels:
        raise UserError(
            "supervision gives none where the method needs the labels of one factor; "
            "give e.g. supervision=\"labels(n=100, factors=['NAME'])\""
        )
    if len(data.labels) > 1:
        given = f"={data.supervision!r}" if data.supervision else ""
        names = data.factors or ("NAME",)
        raise UserError(
            f"supervision{given} gives those of {len(data.labels)} factors where the method needs the labels of one "
            f'factor; it has factors {", ".join(names)}; choose one: supervision="labels(factors=[{names[0]!r}])"'
        )
    return data.labels[0]


class ClassEncoder(nn.Module):
    """q(z|x, y): features of the observation and of the class are added, as one layer on both would do."""

    def __init__(self, trunk: nn.Module, width: int, classes: int, latents: int) -> None:
        super().__init__()
        self.trunk, self.label, self.head = trunk, nn.Linear(classes, width, bias=False), nn.Linear(width, 2 * latents)
        init_weights(self)

    def forward(self, x: Tensor, y_BNY: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log-variance [B, N, Z] for each of N classes; the observation's own features are computed once."""
        hidden_BNF = F.softplus(self.trunk(x).unsqueeze(1) + self.label(y_BNY))
        mean_BNZ, logvar_BNZ = at_least_single(self.head(hidden_BNF)).chunk(2, dim=2)
        return mean_BNZ, logvar_BNZ


class ConditionalAutoEncoder(nn.Module):
    """The three networks. `nll` scores observations against the decoder's output."""

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
        """log q(y|x) [B, Y]."""
        return at_least_single(self.classifier(x)).log_softmax(1)

    def terms(self, x: Tensor, y_BNY: Tensor, eps_BZ: Tensor) -> tuple[Tensor, Tensor]:
        """-log p(x|y, z) and KL(q(z|x, y) || p(z)), both [B, N], for each of N classes.

        The N share their noise, so that what differs between them is the class alone.
        """
        mean_BNZ, logvar_BNZ = self.encoder(x, y_BNY)
        z_BNZ = reparametrize(mean_BNZ, logvar_BNZ, eps_BZ.unsqueeze(1))
        output = self.decoder(torch.cat([z_BNZ, y_BNY], 2).flatten(0, 1))
        rows = x.unsqueeze(1).expand(-1, y_BNY.shape[1], *x.shape[1:]).flatten(0, 1)
        return self.nll(rows, output).unflatten(0, y_BNY.shape[:2]), kl_standard(mean_BNZ, logvar_BNZ).sum(2)

    def every_class(self, like_BY: Tensor) -> Tensor:
        """All classes for each observation [B, Y, Y]."""
        eye_YY = torch.eye(self.classes, dtype=like_BY.dtype, device=like_BY.device)
        return eye_YY.expand(like_BY.shape[0], -1, -1)

    def code(self, x: Tensor) -> Tensor:
        """[B, Z + Y]: the mean of z under q(y|x) q(z|x, y), every class by its probability; then q(y|x) itself."""
        q_BY = self.log_classes(x).exp()
        mean_BYZ, _ = self.encoder(x, self.every_class(q_BY))
        return torch.cat([(q_BY.unsqueeze(2) * mean_BYZ).sum(1), q_BY], 1)

    def parts(self) -> tuple[Part, ...]:
        """What the coordinates of a code are."""
        return Part("style", self.latents), Part("class", self.classes, classes=True)


def label_pass(
    model: ConditionalAutoEncoder, labelled: Tensor, class_B: Tensor, x: Tensor, eps: tuple[Tensor, Tensor]
) -> LabelPass:
    """Both bounds, with a uniform p(y), and the classifier's own loss; `eps` is for the labelled, then for x.

    With one labelled factor every class is known: none is -1.
    """
    log_told_BY, logq_BY = model.log_classes(labelled), model.log_classes(x)
    y_BY, surprise = one_hot(class_B, log_told_BY), math.log(model.classes)
    told_nll_B1, told_kl_B1 = model.terms(labelled, y_BY.unsqueeze(1), eps[0])
    nll_BY, kl_BY = model.terms(x, model.every_class(logq_BY), eps[1])
    q_BY = logq_BY.exp()
    return LabelPass(
        (told_nll_B1 + told_kl_B1).squeeze(1) + surprise,
        marginal_bound(nll_BY + kl_BY + surprise, logq_BY),
        -(y_BY * log_told_BY).sum(1),
        (log_told_BY.argmax(1) == class_B).to(x.dtype),
        (told_nll_B1.squeeze(1), (q_BY * nll_BY).sum(1)),
        (told_kl_B1.squeeze(1), (q_BY * kl_BY).sum(1)),
    )


def m2_objective(p: LabelPass, data: DataInfo, alpha: Tensor, weight_norm: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """Eq. 9 over the size of the data set: a loss per observation, and what to log. `weight_norm` is -log p(weights).

    The two batches are of one size whatever there is of each: their means count by the shares of the data. The
    paper's weight of the classifier's loss, alpha N, is alpha here.
    """
    share = data.labelled / data.size

    def shared(told_B: Tensor, other_B: Tensor) -> Tensor:
        return share * told_B.mean() + (1.0 - share) * other_B.mean()

    cross = p.cross_B.mean()
    loss = shared(p.labelled_B, p.unlabelled_B) + alpha * cross + weight_norm / data.size
    logs = {"loss": loss, "recon": shared(*p.recon_B), "kl": shared(*p.kl_B), "labelled": p.labelled_B.mean()}
    logs |= {"unlabelled": p.unlabelled_B.mean(), "cross_entropy": cross, "accuracy": p.right_B.mean()}
    return loss, logs


def half_square(module: nn.Module) -> Tensor:
    """Half the squared norm of all weights: -log of a standard normal prior on them, but for a constant."""
    return 0.5 * sum(parameter.square().sum() for parameter in module.parameters())  # type: ignore[return-value]


def image_noise(shape: Shape, binarize: bool) -> dict[str, Noise]:
    """What a VAE of all images, the first of two stages, draws."""
    return {"eps": normal("B", "Z")} | ({"pixels": uniform("B", *shape)} if binarize else {})


class ImageLoss(NamedTuple):
    """Of a VAE of all images, means over the batch."""

    loss: Tensor
    logs: dict[str, Tensor]
    kl_Z: Tensor  # what each latent tells of an image, nats


def image_loss(autoencoder: AutoEncoder, x: Tensor, noise: Mapping[str, Tensor]) -> ImageLoss:
    """That VAE's loss; of binary samples of x if there is noise for them."""
    p = autoencoder(binary_sample(x, noise["pixels"]) if "pixels" in noise else x, noise["eps"])
    recon, kl_Z = p.nll_B.mean(), p.kl_BZ.mean(0)
    kl = kl_Z.sum()
    return ImageLoss(recon + kl, {"loss": recon + kl, "recon": recon, "kl": kl}, kl_Z)


# --- of images, and of codes ---------------------------------------------------------------------------------------


def of_images(net: str, shape: Shape, latents: int, classes: int, likelihood: str) -> ConditionalAutoEncoder:
    """For images: with "kingma" one hidden layer of 500 each; else the named encoder and decoder of `networks.py`."""
    if latents < 1:
        raise UserError(f"latents {latents} is too small; use 1 or more")
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
    """-log p(code) of those coordinates of a code that are in use; the others, all noise, are neither seen nor told."""

    def __init__(self, used_Z: Tensor) -> None:
        super().__init__()
        self.used_Z: Tensor
        self.register_buffer("used_Z", used_Z.to(torch.get_default_dtype()))

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        """Older runs, which do not say, used all."""
        state_dict.setdefault(f"{prefix}used_Z", torch.ones_like(self.used_Z))
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def seen(self, code_BZ: Tensor) -> Tensor:
        return code_BZ * self.used_Z

    def forward(self, code_BZ: Tensor, output: Tensor) -> Tensor:
        """[B]; the output is means and log-variances side by side."""
        mean_BZ, logvar_BZ = at_least_single(output).chunk(2, dim=1)
        return -(self.used_Z * log_gaussian(code_BZ, mean_BZ, logvar_BZ)).sum(1)


def of_codes(code: UsedCode, latents: int, classes: int) -> ConditionalAutoEncoder:
    """For codes, whose distribution is Gaussian: one hidden layer of 500 each."""
    size = len(code.used_Z)
    trunks = nn.Linear(size, _KINGMA), nn.Linear(size, _KINGMA)
    decoder = nn.Sequential(*_hidden(latents + classes, 2 * size))
    init_weights(decoder)
    return ConditionalAutoEncoder(trunks, _KINGMA, decoder, code, (classes, latents))


def _hidden(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Linear(inputs, _KINGMA), nn.Softplus(), nn.Linear(_KINGMA, outputs)]
