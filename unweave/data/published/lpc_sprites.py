"""Sprites (Li and Mandt 2018): little people of the Liberated Pixel Cup that walk, cast spells and slash.

Every person is five drawings on top of each other. Only those are kept, and laid over each other in the batch.

Shape letters: B batch, L layers, V drawings (all variants of all layers), P phases (action, direction and frame of a
video), H height, W width.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from unweave.data.dataset import Dataset
from unweave.data.storage.archive import FileTree, read_image
from unweave.data.storage.array_store import Factors, StoredArrays, write_rows
from unweave.data.storage.download import RemoteFile
from unweave.data.storage.source import DataPath, arrays, kept

REMOTE = RemoteFile("Sprites-master.zip", ("https://github.com/YingzhenLi/Sprites/archive/refs/heads/master.zip",))
WORN = ("body", "bottomwear", "topwear", "hair")  # from below to above; shoes come last
NAMES = (*WORN, "action", "direction", "frame")
VARIANTS, FRAMES, SIDE = 6, 8, 64
ACTIONS = ("walk", "spellcard", "slash")
DIRECTIONS = ("front", "left", "right")
_COLUMNS = 13  # pictures in a row of a sheet
_ROW = {"spellcard": 0, "walk": 8, "slash": 12}  # where an action begins: then back, left, front, right
_TURN = {"left": 1, "front": 2, "right": 3}
# Which pictures of a row make the eight frames: shorter actions are filled up, the walk begins with its last.
_CELLS = {"spellcard": (0, 1, 2, 3, 4, 5, 4, 6), "walk": (8, 1, 2, 3, 4, 5, 6, 7), "slash": (0, 1, 2, 3, 4, 5, 4, 0)}


def lpc_sprites(*, path: DataPath = None) -> Dataset:
    """Sprites: 11664 videos of 8 frames, 64 x 64 in colour, of little people who walk, cast spells and slash.

    The last factor is the frame: video v is the pictures 8 v to 8 v + 7. `path` is the repository's .zip or folder.
    """
    return Characters(arrays("lpc_sprites", [REMOTE], path, {}, _read, tree=True), kept(path, {}))


def _read(files: list[Path], folder: Path) -> Factors:
    with FileTree(files[0]) as tree:
        sheets = [f"{layer}/{variant}.png" for layer in WORN for variant in range(VARIANTS)] + ["shoes/1.png"]
        drawings = np.stack([_phases(tree, sheet) for sheet in sheets])
    write_rows(folder / "layers.npy", len(drawings), [drawings], "lpc_sprites")
    worn = (tuple(map(float, range(VARIANTS))),) * len(WORN)
    return Factors(NAMES, (*worn, ACTIONS, DIRECTIONS, tuple(map(float, range(FRAMES)))))


def _phases(tree: FileTree, sheet: str) -> np.ndarray:
    """The 72 pictures [P, H, W, 4] of a sheet that are used."""
    name = next((n for n in tree.names if n.endswith(f"/{sheet}")), None)
    if name is None:
        raise ValueError(f"there is no {sheet}")
    pixels = np.asarray(read_image(tree.read(name), "RGBA", sheet))
    if pixels.shape[1] != _COLUMNS * SIDE or pixels.shape[0] < 16 * SIDE:
        raise ValueError(f"{sheet} has {pixels.shape[1]} x {pixels.shape[0]} pixels, not 832 x 1344")
    cells = pixels.reshape(-1, SIDE, _COLUMNS, SIDE, 4).swapaxes(1, 2)
    rows = [cells[_ROW[action] + _TURN[turn], list(_CELLS[action])] for action in ACTIONS for turn in DIRECTIONS]
    return np.concatenate(rows)


class Characters(Dataset):
    """The pictures, laid together from `layers` [V, P, H, W, 4] when they are asked for."""

    frames = FRAMES  # of a video, one after the other

    def __init__(self, made: StoredArrays, options: dict[str, object]) -> None:
        super().__init__()
        self.name, self.options, self.shape = "lpc_sprites", options, (3, SIDE, SIDE)
        self.factor_names, self.factor_values = made.factors
        self.factor_sizes = tuple(map(len, self.factor_values))
        self.size = math.prod(self.factor_sizes)
        self.layers: Tensor
        self.register_buffer("layers", torch.from_numpy(made.arrays["layers"]), persistent=False)

    def images(self, index_B: Tensor) -> Tensor:
        phases = self.layers.shape[1]
        character_B, phase_B = index_B // phases, index_B % phases
        x = torch.zeros_like(self.layers[0, phase_B, ..., :3], dtype=torch.int32)
        for layer in range(len(WORN) + 1):
            variant_B = character_B // VARIANTS ** max(0, len(WORN) - 1 - layer) % VARIANTS
            number_B = layer * VARIANTS + (variant_B if layer < len(WORN) else torch.zeros_like(variant_B))
            x = _over(self.layers[number_B, phase_B].int(), x)
        return x.movedim(-1, -3).float() / 255.0


def _over(upper: Tensor, lower: Tensor) -> Tensor:
    """A drawing with transparency laid over an opaque one, rounded as Pillow does, with which the set was made."""
    colour, alpha = upper[..., :3], upper[..., 3:]
    mixed = (colour * alpha + lower * (255 - alpha)) * 128 + 0x4000
    return ((mixed >> 8) + mixed) >> 15
