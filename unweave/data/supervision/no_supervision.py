"""No supervision: images only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from unweave.data.supervision.kind import Names, Supervision


@final
@dataclass(frozen=True)
class NoSupervision(Supervision):
    name = syntax = "none"
    summary = "an image"

    def sentence(self, names: Names) -> str:
        return "Images only."
