"""Published data sets, downloaded or read from a path of the user."""

from collections.abc import Callable

from unweave.data.dataset import Dataset
from unweave.data.published import (
    cars3d,
    celeba,
    coil20,
    dsprites,
    extended_yale_b,
    fsdd,
    lpc_sprites,
    mnist,
    mpi3d,
    omniglot,
    shapes3d,
    smallnorb,
)

_FUNCTIONS: tuple[Callable[..., Dataset], ...] = (
    dsprites.dsprites, shapes3d.shapes3d, mpi3d.mpi3d_toy, mpi3d.mpi3d_realistic, mpi3d.mpi3d_real, mpi3d.mpi3d_complex,
    smallnorb.smallnorb, cars3d.cars3d, celeba.celeba, mnist.mnist, mnist.fashion_mnist, omniglot.omniglot,
    coil20.coil20, extended_yale_b.extended_yale_b, lpc_sprites.lpc_sprites, fsdd.fsdd,
)  # fmt: skip
FILES = {function.__name__: function for function in _FUNCTIONS}
