"""No supervision."""

from dataclasses import dataclass
from typing import final

from unweave.data.supervision.kind import Supervision


@final
@dataclass(frozen=True)
class NoSupervision(Supervision):
    """Images only."""

    name = syntax = "none"
    meaning = "Images only."
