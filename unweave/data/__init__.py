"""Data sets (factors -> images) and the samplers that make batches of them."""

from __future__ import annotations

import inspect

from unweave.contract import UserError
from unweave.data.dataset import Dataset
from unweave.data.digits import Digits
from unweave.data.rooms import Rooms
from unweave.data.samplers import Sampler
from unweave.data.spec import check_name, parse_call
from unweave.data.sprites import Sprites, draw_sprites

DATASETS: dict[str, type[Dataset]] = {"sprites": Sprites, "rooms": Rooms, "digits": Digits}

__all__ = ["DATASETS", "Dataset", "Digits", "Rooms", "Sampler", "Sprites", "draw_sprites", "load_data", "parse_call"]


def load_data(text: str | Dataset, **options: object) -> Dataset:
    """The data set of this name or call text: load_data("rooms"), load_data("sprites(size=32, antialias=2)").

    Options may stand in the text or be given as arguments. A data set passes through as it is.
    """
    if isinstance(text, Dataset):
        if options:
            raise UserError(
                f"options {sorted(options)} cannot be set on a data set that is already made; give its name"
            )
        return text
    if not isinstance(text, str):
        raise UserError(f"data={text!r} is not accepted; give a name such as 'sprites' or a Dataset")
    name, written = parse_call(text)
    check_name("data", name, DATASETS)
    if twice := sorted(set(written) & set(options)):
        raise UserError(f"data {text!r}: option {twice[0]!r} is given twice, in the text and beside it")
    return _make(name, {**written, **options})


def _make(name: str, options: dict[str, object]) -> Dataset:
    accepted = inspect.signature(DATASETS[name]).parameters
    for option in options:
        check_name(f"data {name!r}: option", option, accepted)
    return DATASETS[name](**options)
