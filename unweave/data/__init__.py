"""Data sets (factors -> images) and the samplers that make batches of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from unweave.data.callspec import parse_call
from unweave.data.catalogue import Entry, describe
from unweave.data.dataset import Dataset
from unweave.data.published import FILES
from unweave.data.published.digits import Digits
from unweave.data.supervision.sampler import Sampler, explain, supervised_info
from unweave.data.synthetic.backgrounds import ColourSprites, NoisySprites, TexturedSprites
from unweave.data.synthetic.clips import Clips
from unweave.data.synthetic.rooms import Rooms
from unweave.data.synthetic.sprites import Sprites, draw_sprites
from unweave.data.user.readers import USER_DATASETS, open_user_data
from unweave.data.views import VIEWS
from unweave.errors import UserError, check_choice

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
_MADE: dict[str, Callable[..., Dataset]] = {**DATASETS, **USER_DATASETS, **VIEWS}

__all__ = [
    "DATASETS",
    "USER_DATASETS",
    "VIEWS",
    "Dataset",
    "Digits",
    "Rooms",
    "Sampler",
    "Sprites",
    "catalogue",
    "draw_sprites",
    "explain",
    "load_data",
    "parse_call",
    "supervised_info",
]


def catalogue() -> dict[str, Entry]:
    """What each data set is, and where it comes from: size, licence and home."""
    return describe(DATASETS)


def load_data(text: Any, **options: object) -> Dataset:
    """The data set of this name or call text: load_data("rooms"), load_data("sprites(size=32, antialias=2)").

    A view on another set is a call as well: load_data("split(data='rooms', part='validation')").
    Or your own: the path of a folder of pictures, an .npy or an .npz, an array, a PyTorch or Hugging Face data set.
    Options may stand in the text or be given as arguments. A data set passes through as it is.
    """
    if isinstance(text, Dataset):
        if options:
            raise UserError(
                f"options {sorted(options)} cannot be set on a data set that is already made; give its name"
            )
        return text
    if (own := open_user_data(text, _MADE, options)) is not None:
        return own
    if not isinstance(text, str):
        raise UserError(f"data={text!r} is not accepted; give a name such as 'sprites' or a Dataset")
    name, written = parse_call(text)
    check_choice("data", name, _MADE)
    if twice := sorted(set(written) & set(options)):
        raise UserError(f"data {text!r}: option {twice[0]!r} is given twice, in the text and beside it")
    return _make(name, {**written, **options})


def _make(name: str, options: dict[str, object]) -> Dataset:
    made = _MADE[name]
    accepted = inspect.signature(made).parameters
    for option in options:
        check_choice("option", option, accepted, context=f"data {name!r}")
    for option, parameter in accepted.items():
        if option not in options and parameter.default is inspect.Parameter.empty:
            raise UserError(f"data {name!r}: option {option!r} is missing; write {name}({option}=...)")
    if name in VIEWS:
        options = {**options, "data": load_data(options["data"])}
    return made(**options)  # type: ignore[arg-type]
