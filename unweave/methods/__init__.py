"""The list of methods. A method's name derives from its file: factor_vae.py -> FactorVAE -> `train factor_vae`."""

from collections.abc import Mapping
from typing import Any

from unweave.contract import DataInfo, Method, static_arguments
from unweave.methods.aae import AAE
from unweave.methods.aae_cluster import AAECluster
from unweave.methods.aae_reduce import AAEReduce
from unweave.methods.aae_semi import AAESemi
from unweave.methods.ada_gvae import AdaGVAE
from unweave.methods.ada_ml_vae import AdaMLVAE
from unweave.methods.annealed_vae import AnnealedVAE
from unweave.methods.beta_tcvae import BetaTCVAE
from unweave.methods.beta_vae import BetaVAE
from unweave.methods.dip_vae_i import DIPVAEI
from unweave.methods.dip_vae_ii import DIPVAEII
from unweave.methods.f_statistic import FStatistic
from unweave.methods.factor_vae import FactorVAE
from unweave.methods.generalized_m2 import GeneralizedM2
from unweave.methods.group_tcvae import GroupTCVAE
from unweave.methods.gvae import GVAE
from unweave.methods.info_vae import InfoVAE
from unweave.methods.m1 import M1
from unweave.methods.m1_m2 import M1M2
from unweave.methods.m2 import M2
from unweave.methods.ml_vae import MLVAE
from unweave.methods.semi_supervised import add_label_term
from unweave.methods.triplet import Triplet
from unweave.methods.vae import VAE

METHODS: dict[str, type[Method]] = {
    "vae": VAE,
    "beta_vae": BetaVAE,
    "annealed_vae": AnnealedVAE,
    "factor_vae": FactorVAE,
    "beta_tcvae": BetaTCVAE,
    "dip_vae_i": DIPVAEI,
    "dip_vae_ii": DIPVAEII,
    "info_vae": InfoVAE,
    "aae": AAE,
    "aae_semi": AAESemi,
    "aae_cluster": AAECluster,
    "aae_reduce": AAEReduce,
    "ml_vae": MLVAE,
    "gvae": GVAE,
    "group_tcvae": GroupTCVAE,
    "ada_gvae": AdaGVAE,
    "ada_ml_vae": AdaMLVAE,
    "m1": M1,
    "m2": M2,
    "m1_m2": M1M2,
    "generalized_m2": GeneralizedM2,
    "f_statistic": FStatistic,
    "triplet": Triplet,
}


def construct(
    cls: type[Method], data: DataInfo, arguments: Mapping[str, Any], previous: Method | None = None
) -> Method:
    """Return a stage of a method, built with those of the arguments that it takes, and its label term if it has one.

    `previous` is the trained stage before it.
    """
    later = {} if previous is None else {"previous": previous}
    accepted = {name: arguments[name] for name in static_arguments(cls) if name in arguments}
    method = cls(data, **accepted, **later)  # type: ignore[call-arg]
    if "semi_supervised" in arguments:
        add_label_term(method, arguments["semi_supervised"], data)
    return method
