"""dSprites (Matthey et al. 2017), rendered instead of downloaded.

A sprite is a polygon whose corners lie on a grid of 1/256 pixel. All further computations are exact in integers, so
images are equal bit by bit on every device. A pixel is white if an odd number of edges of the outline cross its row
on the left of its centre (even-odd rule).

Shape letters: B batch, G orientations of one shape and scale, P positions along one axis,
V corners of an outline, S rows (or columns) of samples, N crossings, H height, W width.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Buffer

from unweave.data.dataset import Dataset
from unweave.data.storage.cache import cached_array
from unweave.errors import check_integer, invalid
from unweave.ops.threads import single_thread

SHAPES = (1.0, 2.0, 3.0)  # square, ellipse, heart
SCALES = tuple(np.linspace(0.5, 1.0, 6).tolist())
ORIENTATIONS = tuple(np.linspace(0.0, 2.0 * math.pi, 40).tolist())
POSITIONS = tuple(np.linspace(0.0, 1.0, 32).tolist())

_SUB = 256  # sub-pixel positions of a corner in one sample
_CORNERS = 150  # of the heart, the outline with the most corners
_REACH = 13.6  # maximal distance of a corner from the centre, in pixels of 64: 9.6 sqrt 2 of the largest square
_STORE_SIDE = 64  # a stored row is one 64-bit word; larger images are drawn in the batch


def outlines() -> Tensor:
    """Return the three outlines in unit coordinates [3, V, 2], float64, padded to V by repeating the last corner."""
    square = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]], dtype=torch.float64)
    t = torch.arange(100, dtype=torch.float64) * (2.0 * math.pi / 100)
    ellipse = torch.stack([1.33 * t.cos(), t.sin() / 1.33], dim=-1)
    t = torch.arange(_CORNERS, dtype=torch.float64) * (2.0 * math.pi / _CORNERS)
    y = (13.0 * t.cos() - 5.0 * (2 * t).cos() - 2.0 * (3 * t).cos() - (4 * t).cos()) / 14.5 + 0.15
    heart = torch.stack([t.sin() ** 3, -y], dim=-1)
    # an edge between two equal corners crosses no row, so the padding has no effect
    padded = [torch.cat([o, o[-1:].expand(_CORNERS - len(o), 2)]) for o in (square, ellipse, heart)]
    return torch.stack(padded)


def _rotated(outline_V2: Tensor, scale: Tensor, angle: Tensor) -> tuple[Tensor, Tensor]:
    """Return x and y of the corners relative to the centre of the sprite, in pixels of the 64 x 64 image."""
    x, y = (9.6 * scale[..., None] * outline_V2[..., i] for i in (0, 1))
    cos, sin = angle.cos()[..., None], angle.sin()[..., None]
    return x * cos + y * sin, y * cos - x * sin


def _snap(corner: Tensor, position: Tensor, samples: int) -> Tensor:
    """Move corners to their position and round them to the sub-pixel grid, in 1/256 sample."""
    return torch.floor((corner + (16.0 + 32.0 * position)) * (samples / 64.0 * _SUB) + 0.5).long()


def _row_centres(samples: int, device: torch.device) -> Tensor:
    return torch.arange(samples, device=device) * _SUB + _SUB // 2


def _crossed(y0: Tensor, y1: Tensor, centre: Tensor) -> Tensor:
    """Return True if the edge crosses the row; half open, so that a corner on a row counts once."""
    return (torch.minimum(y0, y1) < centre) & (centre <= torch.maximum(y0, y1))


def _first_column(x0: Tensor, y0: Tensor, x1: Tensor, y1: Tensor, centre: Tensor, samples: int) -> Tensor:
    """Return the first column whose centre is on the edge or right of it in this row, 0..samples.

    The crossing is x0 + (centre - y0) (x1 - x0) / (y1 - y0). Expanded, it needs one exact division; rounding its
    negative down rounds it up.
    """
    rise = y1 - y0
    behind = (centre - y0) * (x0 - x1) + (_SUB // 2 - x0) * rise
    flat = rise == 0  # never crosses a row; avoid a division by zero
    column = torch.div(behind, torch.where(flat, 1, rise * _SUB), rounding_mode="floor").neg()
    return column.clamp(0, samples)


def draw_sprites(
    values_B5: Tensor, *, size: int = 64, antialias: int = 1, outlines_3V2: Tensor | None = None
) -> Tensor:
    """Draw sprites with any factor values as images [B, 1, size, size] in 0..1.

    `values_B5` contains shape (1 square, 2 ellipse, 3 heart), scale, orientation in radians, posX and posY. Values on
    the grid of dSprites with size=64 and antialias=1 give its images. A pixel is the mean of `antialias` x `antialias`
    samples. Pass `outlines()` on the device of the values to draw inside a recorded step.
    """
    check_integer("size", size, 8, 512)
    check_integer("antialias", antialias, 1, 8)
    if values_B5.ndim != 2 or values_B5.shape[1] != 5:
        raise invalid("values", list(values_B5.shape), "of shape [B, 5]: shape, scale, orientation, posX, posY")
    table = outlines().to(values_B5.device) if outlines_3V2 is None else outlines_3V2
    shape, scale, angle, x_B, y_B = values_B5.double().unbind(1)
    shape_B = shape.round().long().clamp(1, 3) - 1
    x, y = _rotated(table[shape_B], scale, angle)
    samples = size * antialias
    filled = _parity(_snap(x, x_B[:, None], samples), _snap(y, y_B[:, None], samples), samples)
    return F.avg_pool2d(filled[:, None].float(), antialias)


def _parity(x_BV: Tensor, y_BV: Tensor, samples: int) -> Tensor:
    """Return the even-odd fill [B, S, S]: every edge flips the columns on the right of its crossing."""
    x0, y0 = x_BV[:, None], y_BV[:, None]
    x1, y1 = x0.roll(-1, dims=-1), y0.roll(-1, dims=-1)
    centre = _row_centres(samples, x_BV.device)[:, None]
    column_BSV = _first_column(x0, y0, x1, y1, centre, samples)
    flips = torch.zeros(*column_BSV.shape[:2], samples + 1, dtype=torch.int32, device=x_BV.device)
    flips = flips.scatter_add(2, column_BSV, _crossed(y0, y1, centre).int())
    return flips.cumsum(2, dtype=torch.int32)[..., :samples] & 1


def _render_group(shape: int, scale: float, side: int) -> Tensor:
    """Return the words of one shape and scale [G, posX, posY, side]; bit j of a word is column j.

    The y of a corner depends only on posY and its x only on posX, so the edges that cross a row are found once per
    posY for all posX.
    """
    outline = outlines()[shape][: (4, 100, 150)[shape]]
    angle = torch.tensor(ORIENTATIONS, dtype=torch.float64)
    position_P1 = torch.tensor(POSITIONS, dtype=torch.float64)[:, None]
    x, y = _rotated(outline, torch.full_like(angle, scale), angle)
    x_GPV, y_GPV = (_snap(corner[:, None], position_P1, side) for corner in (x, y))
    centre_H = _row_centres(side, angle.device)
    y1_GPV = y_GPV.roll(-1, dims=-1)
    met = _crossed(y_GPV[:, :, None], y1_GPV[:, :, None], centre_H[:, None])
    g, p, row, v = met.nonzero(as_tuple=True)  # sorted: the crossings of one row are neighbours
    x0_NP, x1_NP = (corner.transpose(1, 2)[g, v] for corner in (x_GPV, x_GPV.roll(-1, dims=-1)))
    ends = y_GPV[g, p, v][:, None], y1_GPV[g, p, v][:, None]
    column_NP = _first_column(x0_NP, ends[0], x1_NP, ends[1], centre_H[row][:, None], side)
    words = _xor_rows(_masks(side)[column_NP], (g * len(POSITIONS) + p) * side + row, met[..., 0].numel())
    return words.reshape(*met.shape[:3], -1).permute(0, 3, 1, 2)


def _masks(side: int) -> Tensor:
    """Return signed 64-bit words [side + 1]; word c has the bits of all columns from c on."""
    full = (1 << side) - 1
    words = [full & ~((1 << c) - 1) for c in range(side + 1)]
    return torch.tensor([w - (1 << 64) if w >> 63 else w for w in words], dtype=torch.int64)


def _xor_rows(masks_NP: Tensor, line_N: Tensor, lines: int) -> Tensor:
    """Return the exclusive or of all masks of each line; `line_N` is sorted."""
    words = torch.zeros(lines, masks_NP.shape[1], dtype=torch.int64)
    position = torch.arange(len(line_N))
    rank = position - torch.searchsorted(line_N, line_N)
    for k in range(int(rank.max()) + 1):
        chosen = (rank == k).nonzero()[:, 0]
        words[line_N[chosen]] ^= masks_NP[chosen]
    return words


def _windows(side: int) -> tuple[list[int], int]:
    """Return the first row (or column) that a sprite can reach at each position, and the number of rows: 29 of 64."""
    length = math.ceil(2.0 * _REACH * side / 64.0) + 1
    starts = [math.floor((16.0 + 32.0 * p - _REACH) * side / 64.0) for p in POSITIONS]
    return [min(start, side - length) for start in starts], length


@single_thread()
def render_windows(side: int = 64) -> np.ndarray:
    """Return all 737280 images cropped to their sprite, int32 [3, 6, 40, 32, 32, length], the array stored on disk."""
    starts, length = _windows(side)
    cut = torch.empty(3, 6, 40, 32, 32, length, dtype=torch.int32)
    column_P11 = torch.tensor(starts)[:, None, None]
    for shape in range(3):
        for i, scale in enumerate(SCALES):
            words = _render_group(shape, scale, side)
            rows = torch.stack([words[:, :, p, start : start + length] for p, start in enumerate(starts)], dim=2)
            cut[shape, i] = (rows >> column_P11) & ((1 << length) - 1)
    return cut.numpy()


@single_thread()
def spread_windows(cut: Tensor, side: int) -> Tensor:
    """Return all images [N, side], int64, one word per row, made from the crops stored on disk."""
    starts, length = _windows(side)
    cut = cut.reshape(-1, 32, 32, length)
    rows = torch.zeros(len(cut), 32, 32, side, dtype=torch.int64)
    column_P1 = torch.tensor(starts)[:, None]
    for p, start in enumerate(starts):
        rows[:, :, p, start : start + length] = cut[:, :, p].long() << column_P1
    return rows.reshape(-1, side)


class Sprites(Dataset):
    """dSprites: a white square, ellipse or heart on black, 737280 images of 64 x 64.

    Equal to the original in every pixel that could be compared. `size` is the side in pixels and `antialias` the
    number of samples per pixel in each direction. Images of up to 64 pixels without anti-aliasing are rendered on first
    use and stored with one 64-bit word per row; others are drawn in the batch.
    """

    factor_names = ("shape", "scale", "orientation", "posX", "posY")
    factor_sizes = (3, 6, 40, 32, 32)
    factor_values = (SHAPES, SCALES, ORIENTATIONS, POSITIONS, POSITIONS)
    renderer_version = 2

    def __init__(self, *, size: int = 64, antialias: int = 1) -> None:
        super().__init__()
        self.side = check_integer("size", size, 8, 512)
        self.antialias = check_integer("antialias", antialias, 1, 8)
        self.name, self.shape, self.size = "sprites", (1, size, size), math.prod(self.factor_sizes)
        self.options = {"size": size, "antialias": antialias}
        self.stored = antialias == 1 and size <= _STORE_SIDE
        if self.stored:
            window_shape = (*self.factor_sizes, _windows(size)[1])
            name = f"sprites-v{self.renderer_version}-{size}"
            cut = torch.from_numpy(cached_array(name, window_shape, lambda: render_windows(size)))
            self.rows_NH = Buffer(spread_windows(cut, size), persistent=False)
            self.bit_W = Buffer(torch.arange(size), persistent=False)
        else:
            self.outlines_3V2 = Buffer(outlines(), persistent=False)
            for name, values in zip(self.factor_names, self.factor_values, strict=True):
                self.register_buffer(f"{name}_values", torch.tensor(values, dtype=torch.float64), persistent=False)

    def images(self, index_B: Tensor) -> Tensor:
        if self.stored:
            bits_BHW = (self.rows_NH[index_B][..., None] >> self.bit_W) & 1
            return bits_BHW.float()[:, None]
        factors_BK, tables = self.factors(index_B), [self.get_buffer(f"{name}_values") for name in self.factor_names]
        values_B5 = torch.stack([table[factors_BK[:, k]] for k, table in enumerate(tables)], dim=1)
        return draw_sprites(values_B5, size=self.side, antialias=self.antialias, outlines_3V2=self.outlines_3V2)
