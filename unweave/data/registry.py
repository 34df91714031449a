"""The data sets by name, their origins, and `load_data`, which opens any of them."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from unweave.data.callspec import call_text, parse_call
from unweave.data.dataset import Dataset
from unweave.data.option_types import check_options
from unweave.data.published import FILES
from unweave.data.published.digits import Digits
from unweave.data.synthetic.backgrounds import ColourSprites, NoisySprites, TexturedSprites
from unweave.data.synthetic.clips import Clips
from unweave.data.synthetic.rooms import Rooms
from unweave.data.synthetic.sprites import Sprites
from unweave.data.user.readers import USER_DATASETS, open_user_data
from unweave.data.views import VIEWS
from unweave.errors import UserError, check_choice, invalid, is_out_of_memory, use_current_names

DATASETS: dict[str, Callable[..., Dataset]] = {
    "sprites": Sprites,
    "rooms": Rooms,
    "digits": Digits,
    "colour_sprites": ColourSprites,
    "noisy_sprites": NoisySprites,
    "textured_sprites": TexturedSprites,
    "clips": Clips,
    **FILES,
}
_CONSTRUCTORS: dict[str, Callable[..., Dataset]] = {**DATASETS, **USER_DATASETS, **VIEWS}
_EARLIER_NAMES = {"kinds": "factor_types"}  # of options


class Source(NamedTuple):
    """Origin of a data set; unknown fields are ""."""

    download: str = "none"  # size of the download; "none" for rendered or bundled data
    disk: str = ""  # size of the converted data in the cache, at the default image size
    licence: str = ""
    homepage: str = ""
    about: str = ""  # one-line description, taken from the docstring


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


def catalogue() -> dict[str, Source]:
    """Return the origin and a one-line description of each data set."""
    return {
        name: SOURCES.get(name, Source())._replace(about=(inspect.getdoc(constructor) or "").split("\n")[0])
        for name, constructor in DATASETS.items()
    }


def load_data(text: Any, **options: object) -> Dataset:
    """Open a data set by name or call text: load_data("rooms"), load_data("sprites(size=32, antialias=2)").

    A view of another data set is a call as well: load_data("split(data='rooms', part='validation')").
    User data can be the path of a folder of images or of a file of arrays, an array, or a PyTorch or Hugging Face
    data set. Options can be part of the text or keyword arguments. A `Dataset` is returned unchanged.
    """
    if isinstance(text, Dataset):
        if options:
            accepted = "the name of a data set"
            message = f"options {sorted(options)} cannot be set on a data set object; pass {accepted}"
            raise UserError(message, argument="data", value=text, accepted=accepted)
        return text
    options = use_current_names(options, _EARLIER_NAMES)
    if (user_data := open_user_data(text, _CONSTRUCTORS, options)) is not None:
        return user_data
    if not isinstance(text, str):
        raise invalid("data", text, "a name such as 'sprites' or a Dataset")
    name, in_text = parse_call(text)
    in_text = use_current_names(in_text, _EARLIER_NAMES)
    check_choice("data", name, _CONSTRUCTORS)
    if duplicates := sorted(set(in_text) & set(options)):
        option = duplicates[0]
        message = f"data {text!r}: option {option!r} is given twice, in the text and as an argument"
        raise UserError(message, argument=option, value=options[option], accepted="one value")
    return _construct(name, {**in_text, **options})


def _construct(name: str, options: dict[str, object]) -> Dataset:
    constructor = _CONSTRUCTORS[name]
    parameters = inspect.signature(constructor).parameters
    for option in options:
        check_choice("option", option, parameters, context=f"data {name!r}")
    for option, parameter in parameters.items():
        if option not in options and parameter.default is inspect.Parameter.empty:
            message = f"data {name!r}: option {option!r} is missing; write {name}({option}=...)"
            raise UserError(message, argument=option, accepted=f"{name}({option}=...)")
    options = check_options(constructor, options, f"data {name!r}", skip=("data",) if name in VIEWS else ())
    if name in VIEWS:
        options = {**options, "data": load_data(options["data"])}
    try:
        return constructor(**options)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        accepted = "of a smaller size, because the memory does not suffice"
        raise invalid("data", call_text(name, options), accepted) from error
