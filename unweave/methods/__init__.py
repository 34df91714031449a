"""The list of methods. A method's name derives from its file: factor_vae.py -> FactorVAE -> `train factor_vae`."""

from unweave.contract import Method
from unweave.methods.aae import AAE
from unweave.methods.ada_gvae import AdaGVAE
from unweave.methods.ada_ml_vae import AdaMLVAE
from unweave.methods.annealed_vae import AnnealedVAE
from unweave.methods.beta_tcvae import BetaTCVAE
from unweave.methods.beta_vae import BetaVAE
from unweave.methods.dip_vae_i import DIPVAEI
from unweave.methods.dip_vae_ii import DIPVAEII
from unweave.methods.factor_vae import FactorVAE
from unweave.methods.gvae import GVAE
from unweave.methods.info_vae import InfoVAE
from unweave.methods.ml_vae import MLVAE
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
    "ml_vae": MLVAE,
    "gvae": GVAE,
    "ada_gvae": AdaGVAE,
    "ada_ml_vae": AdaMLVAE,
}
