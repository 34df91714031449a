"""What there is to know about each data set before it is loaded: one plain table."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import NamedTuple

from unweave.data.dataset import Dataset


class Source(NamedTuple):
    download: str  # how much comes through the network, "none" for sets made here
    disk: str  # what its converted form takes in the cache, at the default size
    licence: str
    home: str


class Entry(NamedTuple):
    about: str
    download: str
    disk: str
    licence: str
    home: str


_RESEARCH = "research use"
_MPI3D = Source(
    "unknown, about 12.7 GB unpacked", "12.7 GB", "CC BY 4.0", "https://github.com/rr-learning/disentanglement_dataset"
)

SOURCES: dict[str, Source] = {
    "sprites": Source("none", "1.7 MB", "Apache-2.0", "https://github.com/google-deepmind/dsprites-dataset"),
    "rooms": Source("none", "0.7 MB", "Apache-2.0", "https://github.com/google-deepmind/3d-shapes"),
    "digits": Source("none", "none", "CC BY 4.0", "https://doi.org/10.24432/C50P49"),
    "dsprites": Source("26 MB", "377 MB", "Apache-2.0", "https://github.com/google-deepmind/dsprites-dataset"),
    "shapes3d": Source("268 MB", "5.9 GB", "Apache-2.0", "https://github.com/google-deepmind/3d-shapes"),
    "mpi3d_toy": _MPI3D,
    "mpi3d_realistic": _MPI3D,
    "mpi3d_real": _MPI3D,
    "mpi3d_complex": _MPI3D._replace(download="unknown, about 5.7 GB unpacked", disk="5.7 GB"),
    "smallnorb": Source("263 MB", "199 MB", _RESEARCH, "https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/"),
    "cars3d": Source("unknown", "216 MB", _RESEARCH, "http://www.scottreed.info"),
    "celeba": Source("1.5 GB", "2.5 GB", "non-commercial research", "http://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"),
    "mnist": Source("11.6 MB", "72 MB", "CC BY-SA 3.0", "http://yann.lecun.com/exdb/mnist/"),
    "fashion_mnist": Source("30.9 MB", "72 MB", "MIT", "https://github.com/zalandoresearch/fashion-mnist"),
    "omniglot": Source("15.9 MB", "134 MB", "MIT", "https://github.com/brendenlake/omniglot"),
    "coil20": Source(
        "about 12 MB", "5.9 MB", _RESEARCH, "https://www.cs.columbia.edu/CAVE/software/softlib/coil-20.php"
    ),
    "extended_yale_b": Source("unknown", "10 MB", _RESEARCH, "http://vision.ucsd.edu/extyaleb/"),
    "lpc_sprites": Source("unknown", "29 MB", "CC BY-SA 3.0 or GPL-3.0", "https://github.com/YingzhenLi/Sprites"),
    "fsdd": Source("unknown", "12 MB", "CC BY-SA 4.0", "https://github.com/Jakobovski/free-spoken-digit-dataset"),
}


def describe(datasets: Mapping[str, Callable[..., Dataset]]) -> dict[str, Entry]:
    """For each name what the set is, in one line, and where it comes from; "" where there is nothing to say."""
    nothing = Source("none", "", "", "")  # sets of our own need no source
    return {
        name: Entry((inspect.getdoc(made) or "").split("\n")[0], *SOURCES.get(name, nothing))
        for name, made in datasets.items()
    }
