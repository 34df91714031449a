"""Data sets, views of them, and samplers that draw batches with the supervision a method needs."""

from unweave.data.callspec import parse_call
from unweave.data.dataset import Dataset
from unweave.data.published.digits import Digits
from unweave.data.registry import DATASETS, USER_DATASETS, VIEWS, catalogue, load_data
from unweave.data.supervision.parse import explain, parse_supervision
from unweave.data.supervision.sampler import Sampler
from unweave.data.synthetic.rooms import Rooms
from unweave.data.synthetic.sprites import Sprites, draw_sprites

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
    "parse_supervision",
]
