"""Sprites (Li and Mandt 2018): characters of the Liberated Pixel Cup that walk, cast spells and slash.

Each character consists of five layers. Only the layers are stored; they are composited in the batch.

Shape letters: B batch, L layers, V drawings (the variants of all layers), P phases (action, direction and frame of a
video), H height, W width.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import Buffer

from unweave.data.dataset import Dataset
from unweave.data.storage.archive import FileTree, read_image
from unweave.data.storage.array_store import Factors, StoredArrays, write_rows
from unweave.data.storage.digest import Hash, hash_tensor, mapped_file
from unweave.data.storage.download import RemoteFile
from unweave.data.storage.source import DataPath, open_files

REMOTE = RemoteFile("Sprites-master.zip", ("https://github.com/YingzhenLi/Sprites/archive/refs/heads/master.zip",))
LAYERS = ("body", "bottomwear", "topwear", "hair")  # from the lowest; shoes are the highest
NAMES = (*LAYERS, "action", "direction", "frame")
VARIANTS, FRAMES, SIDE = 6, 8, 64
ACTIONS = ("walk", "spellcard", "slash")
DIRECTIONS = ("front", "left", "right")
_COLUMNS = 13  # images per row of a sheet
_ROW = {"spellcard": 0, "walk": 8, "slash": 12}  # first row of an action, with the rows back, left, front, right
_TURN = {"left": 1, "front": 2, "right": 3}
# Images of a row used as the eight frames: shorter actions are padded, the walk begins with its last image.
_CELLS = {"spellcard": (0, 1, 2, 3, 4, 5, 4, 6), "walk": (8, 1, 2, 3, 4, 5, 6, 7), "slash": (0, 1, 2, 3, 4, 5, 4, 0)}


def lpc_sprites(*, path: DataPath = None) -> Dataset:
    """Sprites: 11664 videos of 8 frames, 64 x 64 in colour, of characters that walk, cast spells and slash.

    The last factor is the frame: video v is the images 8 v to 8 v + 7. `path` is the .zip of the repository or its
    folder.
    """
    return open_files("lpc_sprites", [REMOTE], path, {}, _read, tree=True, dataset=Characters)


def _read(files: list[Path], folder: Path) -> Factors:
    with FileTree(files[0]) as tree:
        sheets = [f"{layer}/{variant}.png" for layer in LAYERS for variant in range(VARIANTS)] + ["shoes/1.png"]
        drawings = np.stack([_phases(tree, sheet) for sheet in sheets])
    write_rows(folder / "layers.npy", len(drawings), [drawings], "lpc_sprites")
    variants = (tuple(map(float, range(VARIANTS))),) * len(LAYERS)
    return Factors(NAMES, (*variants, ACTIONS, DIRECTIONS, tuple(map(float, range(FRAMES)))))


def _phases(tree: FileTree, sheet: str) -> np.ndarray:
    """Return the 72 images [P, H, W, 4] of a sheet that are used."""
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
    """Images composited in the batch from `layers` [V, P, H, W, 4]."""

    frames = FRAMES
    renderer_version = 1

    def __init__(self, name: str, stored: StoredArrays, options: dict[str, object]) -> None:
        super().__init__()
        self.name, self.options, self.shape = name, options, (3, SIDE, SIDE)
        self.factor_names, self.factor_values = stored.factors
        self.factor_sizes = tuple(map(len, self.factor_values))
        self.size = math.prod(self.factor_sizes)
        self.layers = Buffer(torch.from_numpy(stored.arrays["layers"]), persistent=False)
        self.layers_file = mapped_file(stored.arrays["layers"])

    def image_sources(self, sampled: bool | None) -> Sequence[Hash]:
        return (hash_tensor(self.layers, file=self.layers_file, sampled=sampled, name=self.name),)

    def images(self, index_B: Tensor) -> Tensor:
        phases = self.layers.shape[1]
        character_B, phase_B = index_B // phases, index_B % phases
        x = torch.zeros_like(self.layers[0, phase_B, ..., :3], dtype=torch.int32)
        for layer in range(len(LAYERS) + 1):
            variant_B = character_B // VARIANTS ** max(0, len(LAYERS) - 1 - layer) % VARIANTS
            number_B = layer * VARIANTS + (variant_B if layer < len(LAYERS) else torch.zeros_like(variant_B))
            x = _over(self.layers[number_B, phase_B].int(), x)
        return x.movedim(-1, -3).float() / 255.0


def _over(upper: Tensor, lower: Tensor) -> Tensor:
    """Composite a transparent drawing over an opaque one, rounded like Pillow, with which the data set was made."""
    colour, alpha = upper[..., :3], upper[..., 3:]
    mixed = (colour * alpha + lower * (255 - alpha)) * 128 + 0x4000
    return ((mixed >> 8) + mixed) >> 15
