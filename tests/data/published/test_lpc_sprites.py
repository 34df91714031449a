import io
import zipfile

import numpy as np
import pytest
import torch
from PIL import Image

from unweave.data import Sampler, load_data

WORN = ("body", "bottomwear", "topwear", "hair")
# Of each action the row of the sheet where it begins (back, left, front, right follow) and its eight pictures.
SHEET = {
    "walk": (8, (8, 1, 2, 3, 4, 5, 6, 7)),
    "spellcard": (0, (0, 1, 2, 3, 4, 5, 4, 6)),
    "slash": (12, (0, 1, 2, 3, 4, 5, 4, 0)),
}
TURNS = {"front": 2, "left": 1, "right": 3}


def png(array):
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def sheet(phases):
    """A sheet of 13 x 21 pictures with the frames [3, 3, 8, 64, 64, 4] where the published ones are."""
    cells = np.zeros((21, 64, 13, 64, 4), np.uint8)
    for a, (row, columns) in enumerate(SHEET.values()):
        for d, turn in enumerate(TURNS.values()):
            for frame, column in enumerate(columns):
                cells[row + turn, :, column] = phases[a, d, frame]
    return cells.reshape(21 * 64, 13 * 64, 4)


def write(path, layers):
    with zipfile.ZipFile(path, "w") as archive:
        for layer, variants in layers.items():
            for number, phases in enumerate(variants):
                variant = 1 if layer == "shoes" else number
                archive.writestr(f"Sprites-master/{layer}/{variant}.png", png(sheet(phases)))


def composed(layers, row):
    """With Pillow, as the authors made it."""
    *worn, action, turn, frame = row
    chosen = [layers[name][variant] for name, variant in zip(WORN, worn, strict=True)] + [layers["shoes"][0]]
    picture = Image.new("RGBA", (64, 64), "black")
    for phases in chosen:
        picture = Image.alpha_composite(picture, Image.fromarray(phases[action, turn, frame]))
    return np.asarray(picture)[..., :3]


def check(data, layers, count):
    index = torch.randint(0, data.size, (count,), generator=torch.Generator().manual_seed(0))
    images = (data.images(index) * 255).round().byte().permute(0, 2, 3, 1)
    for image, row in zip(images, data.factors(index).tolist(), strict=True):
        assert np.array_equal(image, composed(layers, row))


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Random drawings with every degree of transparency, frames that share a picture of the sheet being equal."""
    random = np.random.default_rng(0)
    layers = {
        name: random.integers(0, 256, (1 if name == "shoes" else 6, 3, 3, 8, 64, 64, 4), dtype=np.uint8)
        for name in (*WORN, "shoes")
    }
    for variants in layers.values():
        variants[:, 1, :, 6] = variants[:, 1, :, 4]
        variants[:, 2, :, 6], variants[:, 2, :, 7] = variants[:, 2, :, 4], variants[:, 2, :, 0]
    path = tmp_path_factory.mktemp("lpc") / "Sprites-master.zip"
    write(path, layers)
    return path, layers


def test_read_as_written(own_cache, well_formed, drawn):
    path, layers = drawn
    data = well_formed(load_data("lpc_sprites", path=path))
    assert data.size == 93312 and data.grid and data.shape == (3, 64, 64) and data.frames == 8
    assert data.factor_names == (*WORN, "action", "direction", "frame")
    assert data.factor_values[4:6] == (("walk", "spellcard", "slash"), ("front", "left", "right"))
    check(data, layers, 40)


def test_a_video_is_eight_neighbours(own_cache, drawn):
    data = load_data("lpc_sprites", path=drawn[0].parent)
    factors = data.factors(torch.arange(80, 96))
    assert len(factors[:8, :-1].unique(dim=0)) == 1 and factors[:8, -1].tolist() == list(range(8))
    clips = Sampler(data, ("clips",), "clips(length=4, stride=2)")(torch.tensor(0), 3).clips
    assert clips.shape == (3, 4, 3, 64, 64)


def test_damaged_files_are_refused(tmp_path, own_cache, refused, drawn):
    names = [f"{layer}/{n}.png" for layer in WORN for n in range(6)] + ["shoes/1.png"]
    empty = png(np.zeros((21 * 64, 13 * 64, 4), np.uint8))

    def put(**change):
        for name in names:
            path = tmp_path / "Sprites" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(change.get(name.replace("/", "_").removesuffix(".png"), empty))

    put(hair_3=b"hello")
    refused("hair/3.png cannot be read", "lpc_sprites", path=tmp_path / "Sprites")
    put(hair_3=empty[:200])
    refused("hair/3.png cannot be read", "lpc_sprites", path=tmp_path / "Sprites")
    put(hair_3=png(np.zeros((64, 64, 4), np.uint8)))
    refused("hair/3.png has 64 x 64 pixels, not 832 x 1344", "lpc_sprites", path=tmp_path / "Sprites")
    (tmp_path / "Sprites" / "shoes" / "1.png").unlink()
    put_back = tmp_path / "Sprites" / "hair" / "3.png"
    put_back.write_bytes(empty)
    refused("there is no shoes/1.png", "lpc_sprites", path=tmp_path / "Sprites")


def test_the_real_people(tmp_path, own_cache, reference):
    with np.load(reference("sprites_lpc_layers.npz")) as stored:
        layers = {name: stored[name] for name in (*WORN, "shoes")}
    write(tmp_path / "real.zip", layers)
    data = load_data("lpc_sprites", path=tmp_path / "real.zip")
    kept = np.concatenate([layers[name].reshape(-1, 72, 64, 64, 4) for name in (*WORN, "shoes")])
    assert np.array_equal(data.layers, kept)
    check(data, layers, 40)
