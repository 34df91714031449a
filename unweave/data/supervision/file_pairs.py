"""Pairs that a file lists.

Shape letters: L listed pairs, B batch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

from torch import Tensor

from unweave.data.callspec import call_text
from unweave.data.dataset import Dataset, data_device
from unweave.data.supervision.kind import Call, Fields, Supervision, Tables
from unweave.data.user.pair_lists import read_pairs, read_rows
from unweave.data.user.wording import renamed_note
from unweave.errors import check_path
from unweave.ops.noise import fold, random_bits, random_integers


@final
@dataclass(frozen=True)
class FilePairs(Supervision):
    """Pairs that a file lists, all equally likely, either image of a pair as x."""

    file: str
    fingerprint: str  # of the rows that the file must contain

    name, syntax = "pairs", "pairs(file='pairs.csv')"
    keywords = {"file": "a .csv with two file names per row", "fingerprint": "of its rows; added by the run"}
    batch_fields = ("pair", "shared")
    unit = "pairs"
    example_data = "images"
    file_option = "--pairs, a .csv with two file names per row, and a third entry, content or style, if they share one"

    @classmethod
    def matches(cls, options: Mapping[str, Any]) -> bool:
        return "file" in options

    @classmethod
    def parse(cls, call: Call) -> Self:
        file, fingerprint = call.options["file"], call.options.get("fingerprint")
        if not isinstance(file, str) or not file:
            raise call.error("file", "the path of a .csv with two file names per row, in quotes")
        if others := [name for name in call.options if name not in cls.keywords]:
            raise call.error(others[0], "left out if file is given")
        if not isinstance(fingerprint, str | None):
            raise call.error("fingerprint", "the fingerprint in the config.json of a run")
        path = str(check_path("file", file, context=call.context))
        fingerprint = fingerprint or read_rows("pairs", file).digest()
        return cls(path, fingerprint, text=call_text("pairs", {"file": path, "fingerprint": fingerprint}))

    @classmethod
    def example(cls, data: Dataset) -> str:
        return ""

    @property
    def provided_fields(self) -> tuple[str, ...]:
        return self.batch_fields if read_rows("pairs", self.file).has_shared_column else ("pair",)

    def explain(self, data: Dataset) -> str:
        pairs = read_pairs(self.file, data, self.fingerprint)
        count, style = len(pairs.index_L2), 0 if pairs.shared_L is None else int(pairs.shared_L.sum())
        shared = "" if pairs.shared_L is None else f", {count - style} sharing content and {style} style"
        skipped = f"; {pairs.left_out} more name an image that is not in this data set" if pairs.left_out else ""
        header = " Row 1 is read as a header." if pairs.header else ""
        return f"Pairs as listed in {self.file}. There are {count} of them{shared}{skipped}.{header}"

    def warnings(self, data: Dataset) -> list[str]:
        renamed = read_pairs(self.file, data, self.fingerprint).renamed
        return [renamed_note(self.file, renamed)] if renamed else []

    def tables(self, data: Dataset, seed: int) -> Tables:
        pairs, device = read_pairs(self.file, data, self.fingerprint), data_device(data)
        shared_L = None if pairs.shared_L is None else pairs.shared_L.to(device)
        return Tables(data, lookup=(pairs.index_L2.to(device), shared_L))

    def draw(self, tables: Tables, key: Tensor, plan: Fields, seed: Tensor | None) -> Fields:
        index_L2, shared_L = tables.lookup
        row_B, x_B, pair_B = _draw_pairs(index_L2, key, plan["x"].shape[0])
        fields = {"x": x_B, "x_index": x_B, "pair": pair_B}
        if shared_L is not None:
            fields["shared"] = shared_L[row_B]
        if "x_other" in plan:
            fields["x_other"] = _draw_pairs(index_L2, fold(key, "second"), len(x_B))[1]
        return fields


def _draw_pairs(index_L2: Tensor, key: Tensor, batch: int) -> tuple[Tensor, Tensor, Tensor]:
    row_B = random_integers(fold(key, "row"), (batch,), len(index_L2))
    side_B = random_bits(fold(key, "side"), (batch,)) & 1
    return row_B, index_L2[row_B, side_B], index_L2[row_B, 1 - side_B]
