"""Types of constructor arguments that several methods share, with their help texts."""

from typing import Annotated

from unweave.contract import Setting
from unweave.nn.likelihoods import LIKELIHOODS
from unweave.nn.networks import NETWORKS

Latents = Annotated[int, Setting("size of the code")]
StyleLatents = Annotated[int, Setting("size of the style")]
Net = Annotated[str, Setting(f"encoder and decoder: {', '.join(NETWORKS)}")]
_LIKELIHOODS = ", ".join(f"{name} ({likelihood.help})" for name, likelihood in LIKELIHOODS.items())
LikelihoodName = Annotated[str, Setting(f"distribution of an image given its code: {_LIKELIHOODS}")]
Content = Annotated[int, Setting("number of latents that are content, the first ones; 0 is half of them")]
PerMember = Annotated[bool, Setting("count the KL of the content once per member instead of once per group")]
KnownCount = Annotated[bool, Setting("use the number of changed factors of each pair")]
Symmetric = Annotated[bool, Setting("compare the posteriors of a pair by the KL in both directions")]
Binarize = Annotated[bool, Setting("draw black or white for each pixel, with its grey value as probability of white")]
BatchNormed = Annotated[bool, Setting("normalise the hidden dense layers of the encoder over the batch")]
Width = Annotated[int, Setting("units in each hidden layer of the discriminator")]
Depth = Annotated[int, Setting("number of hidden layers of the discriminator")]
