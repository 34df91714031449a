"""A run or a Representation, times data, times metrics: scores. Observations are encoded once for all metrics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.contract import Method, Representation, UserError, own_arguments
from unweave.data import Dataset, load_data
from unweave.data.spec import check_name
from unweave.methods import METHODS
from unweave.metrics import METRICS
from unweave.metrics.information import entropies, mutual_information_matrix
from unweave.ops.divergence import kl_standard
from unweave.runs import RunFolder

MIG_ROWS = 10_000  # histogram estimates of information depend on the number of rows: the field's number
DEAD_BELOW = 0.01  # nats of KL under which a latent carries nothing


class Trained(NamedTuple):
    """A trained model with where it lives, how it was made, and what it was trained on."""

    folder: RunFolder
    config: dict[str, Any]
    method: Method
    data: Dataset

    @property
    def representation(self) -> Representation:
        return self.method.representation()

    def encode(self, images: Any) -> np.ndarray:
        """Codes [N, Z] of images [N, C, H, W] in 0..1."""
        with torch.no_grad():
            return self.representation.encode(self._tensor(images)).cpu().numpy()

    def decode(self, codes: Any) -> np.ndarray:
        """Images [N, C, H, W] of codes [N, Z]."""
        decoder = self.representation.decode
        if decoder is None:
            raise UserError(f"method '{self.config['method']}' has no decoder")
        with torch.no_grad():
            return decoder(self._tensor(codes)).cpu().numpy()

    def _tensor(self, values: Any) -> Tensor:
        return torch.as_tensor(values, dtype=torch.float32, device=next(self.method.parameters()).device)


class Evaluation(NamedTuple):
    """Scores of one model, and the tables behind them."""

    scores: dict[str, float]
    factor_names: tuple[str, ...]
    information: np.ndarray  # mutual information in nats [Z, K]
    entropies: np.ndarray  # of the factors, in nats [K]
    kl: np.ndarray  # mean KL of each latent to the prior in nats [Z]; nan without a posterior
    rows: int
    seed: int

    @property
    def alive(self) -> np.ndarray:
        """Which latents carry anything [Z]."""
        return ~(self.kl < DEAD_BELOW)

    def as_json(self) -> dict[str, Any]:
        tables = {name: getattr(self, name).tolist() for name in ("information", "entropies")}
        kl = [None if np.isnan(value) else float(value) for value in self.kl]
        return {**self._asdict(), "factor_names": list(self.factor_names), **tables, "kl": kl}


def load(
    path: str | Path, *, device: str = "cpu", method: type[Method] | None = None, data: Dataset | None = None
) -> Trained:
    """The model in a run folder, finished or as far as its last checkpoint.

    `method` and `data` are for runs on classes of your own, which a folder cannot bring back by itself.
    """
    folder = RunFolder.open(path)
    config = folder.config
    if method is None:
        check_name(f"run '{path}': method", config["method"], METHODS)
        method = METHODS[config["method"]]
    if folder.finished:
        weights, about = folder.read("weights.safetensors")
    else:
        weights, about = _unfinished_weights(folder)
    try:
        data = data or load_data(config["data"], **config["data_options"])
        model = _rebuild(method, config, data, int(about.get("stage", 0)))
        model.load_state_dict(weights)
    except (KeyError, RuntimeError, TypeError) as error:
        first = str(error).splitlines()[0]
        raise UserError(f"run '{path}' is damaged: its weights do not fit its config.json ({first})") from error
    return Trained(folder, config, model.to(device).eval(), data.to(device))


def _rebuild(method: type[Method], config: dict[str, Any], data: Dataset, stage: int) -> Method:
    model = method(data.info, **own_arguments(method, config["arguments"]))  # type: ignore[call-arg]
    for _ in range(stage):
        assert method.then is not None
        method = method.then
        model = method(data.info, **own_arguments(method, config["arguments"]), previous=model)  # type: ignore[call-arg]
    return model


def _unfinished_weights(folder: RunFolder) -> tuple[dict[str, Tensor], dict[str, str]]:
    if not (folder.path / "checkpoint.safetensors").exists():
        raise UserError(f"run '{folder.path}' holds no weights yet; finish it with --resume")
    stored, about = folder.read("checkpoint.safetensors")
    return {n.split("/", 1)[1]: t for n, t in stored.items() if n.startswith(("params/", "buffers/"))}, about


class Table(NamedTuple):
    """Observations, encoded."""

    rows: Tensor  # which observations [N]
    codes: np.ndarray  # [N, Z]
    factors: np.ndarray  # [N, K]
    kl: np.ndarray  # [Z]


def encode_table(what: Representation, data: Dataset, *, rows: int | None, seed: int, batch: int = 512) -> Table:
    """Codes and factors of `rows` different observations drawn by the seed, or of all with rows=None."""
    if rows is None or rows >= data.size:
        index = torch.arange(data.size)
    else:
        index = torch.randperm(data.size, generator=torch.Generator().manual_seed(seed))[:rows]
    index = index.to(next(data.buffers(), index).device)
    codes, divergences = [], []
    with torch.no_grad():
        for part in index.split(batch):
            images = data.images(part)
            if what.posterior is None:
                codes.append(what.encode(images).float())
            else:  # its mean is the code: no need to encode twice
                mean, logvar = what.posterior(images)
                codes.append(mean.float())
                divergences.append(kl_standard(mean, logvar).sum(0, keepdim=True))
    kl = torch.cat(divergences).sum(0) / len(index) if divergences else torch.full((what.latents,), torch.nan)
    return Table(index, torch.cat(codes).cpu().numpy(), data.factors(index).cpu().numpy(), kl.cpu().numpy())


def evaluate(
    what: str | Path | Trained | Representation,
    data: str | Dataset | None = None,
    *,
    metrics: Sequence[str] | None = None,
    rows: int | None = 10_000,
    seed: int = 0,
    device: str = "cpu",
    save: bool = True,
) -> Evaluation:
    """Scores of a run, a trained model, or any Representation (then `data` says on what)."""
    for name in metrics or ():
        check_name("metric", name, METRICS)
    if isinstance(what, str | Path):
        what = load(what, device=device)
    if rows is not None and rows < 2:
        raise UserError(f"rows {rows} is too small; use 2 or more, or all")
    representation = what.representation if isinstance(what, Trained) else what
    if data is None and not isinstance(what, Trained):
        raise UserError("data is missing; a Representation needs data to be evaluated on, such as data='sprites'")
    dataset = load_data(data) if data is not None else what.data  # type: ignore[union-attr]
    table = encode_table(representation, dataset, rows=rows, seed=seed)
    # With one factor there is nothing to tell apart, and the vote is right by definition.
    names = [n for n in METRICS if n != "factor_vae" or len(dataset.factor_names) > 1] if metrics is None else metrics
    result = score_table(table.codes, table.factors, names, dataset.factor_names, table.kl, seed)
    if isinstance(what, Trained) and save:
        what.folder.write_json("scores.json", result.as_json())
    return result


def score_table(
    codes: np.ndarray,
    factors: np.ndarray,
    names: Sequence[str],
    factor_names: tuple[str, ...],
    kl: np.ndarray,
    seed: int,
) -> Evaluation:
    """Every named metric of one table of codes and factors."""
    order = np.random.default_rng(seed).permutation(len(codes))[:MIG_ROWS]
    scores = {}
    for name in names:
        if name == "factor_vae":
            scores[name] = METRICS[name].function(codes, factors, seed=seed)
        else:
            scores[name] = METRICS[name].function(codes[order], factors[order])
    information = mutual_information_matrix(codes[order], factors[order])
    return Evaluation(scores, factor_names, information, entropies(factors[order]), kl, len(codes), seed)
