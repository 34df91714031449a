"""Clips: consecutive frames of one video.

Shape letters: B batch, S frames of a clip.
"""

from dataclasses import dataclass
from typing import Self, final

import torch
from torch import Tensor

from unweave.contract import DataInfo
from unweave.data.dataset import Dataset
from unweave.data.supervision.kind import Call, Fields, Supervision, Tables
from unweave.errors import invalid
from unweave.ops.noise import fold, random_integers


@final
@dataclass(frozen=True)
class Clips(Supervision):
    """Every `stride`-th frame of a video, `length` of them, from a uniformly drawn first frame."""

    length: int
    stride: int

    name, syntax = "clips", "clips(length=8)"
    meaning = "Clips of {length} frames of a video, {stride} apart."
    keywords = {"length": "frames per clip", "stride": "distance between two frames of a clip in the video"}
    batch_fields = ("clips",)
    unit = "clips"
    example_data = "clips(size=8, motions=1)"

    @classmethod
    def parse(cls, call: Call) -> Self:
        frames = call.data.frames
        if frames < 2:
            raise invalid("data", call.data.name, "a set of videos such as clips", context=call.context)
        length = call.integer("length", min(8, frames), 2, frames)
        return cls(length, call.integer("stride", 1, 1, (frames - 1) // (length - 1)))

    @classmethod
    def example(cls, data: Dataset) -> str:
        return f"clips(length={min(8, data.frames)})" if data.frames > 1 else ""

    def info(self, data: Dataset) -> DataInfo:
        return data.info._replace(members=self.length)

    def draw(self, tables: Tables, key: Tensor, plan: Fields, seed: Tensor | None) -> Fields:
        batch, frames = plan["x"].shape[0], tables.data.frames
        video_B = random_integers(fold(key, "video"), (batch,), tables.data.size // frames)
        start_B = random_integers(fold(key, "start"), (batch,), frames - (self.length - 1) * self.stride)
        frame_S = torch.arange(self.length, device=key.device) * self.stride
        return {"clips": (video_B * frames + start_B)[:, None] + frame_S}
