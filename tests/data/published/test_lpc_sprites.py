import numpy as np
import pytest
import torch
from PIL import Image
from published_files import LPC_LAYERS, encode, write_lpc_sprites

from unweave.data import Sampler, load_data


def composite(layers, row):
    """Composite the layers with Pillow, as in the published code."""
    *variants, action, turn, frame = row
    chosen = [layers[name][variant] for name, variant in zip(LPC_LAYERS, variants, strict=True)] + [layers["shoes"][0]]
    image = Image.new("RGBA", (64, 64), "black")
    for phases in chosen:
        image = Image.alpha_composite(image, Image.fromarray(phases[action, turn, frame]))
    return np.asarray(image)[..., :3]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lpc")
    return folder, write_lpc_sprites(folder)


def test_files_are_read(own_cache, written):
    folder, layers = written
    data = load_data("lpc_sprites", path=folder / "Sprites-master.zip")
    assert data.size == 93312 and data.grid and data.shape == (3, 64, 64) and data.frames == 8
    assert data.factor_names == (*LPC_LAYERS, "action", "direction", "frame")
    assert data.factor_values[4:6] == (("walk", "spellcard", "slash"), ("front", "left", "right"))
    index = torch.randint(0, data.size, (40,), generator=torch.Generator().manual_seed(0))
    images = (data.images(index) * 255).round().byte().permute(0, 2, 3, 1)
    for image, row in zip(images, data.factors(index).tolist(), strict=True):
        assert np.array_equal(image, composite(layers, row))


def test_a_video_is_eight_consecutive_images(own_cache, written):
    data = load_data("lpc_sprites", path=written[0])
    factors = data.factors(torch.arange(80, 96))
    assert len(factors[:8, :-1].unique(dim=0)) == 1 and factors[:8, -1].tolist() == list(range(8))
    clips = Sampler(data, ("clips",), "clips(length=4, stride=2)")(torch.tensor(0), 3).clips
    assert clips.shape == (3, 4, 3, 64, 64)


def test_damaged_files_are_refused(tmp_path, own_cache, refused):
    sheet = encode(np.zeros((21 * 64, 13 * 64, 4), np.uint8))
    folder = tmp_path / "Sprites"
    for name in [f"{layer}/{n}.png" for layer in LPC_LAYERS for n in range(6)] + ["shoes/1.png"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(sheet)
    for content in (b"hello", sheet[:200], encode(np.zeros((64, 64, 4), np.uint8))):
        (folder / "hair" / "3.png").write_bytes(content)
        refused("hair/3.png", "lpc_sprites", path=folder)
    (folder / "hair" / "3.png").write_bytes(sheet)
    (folder / "shoes" / "1.png").unlink()
    refused("shoes/1.png", "lpc_sprites", path=folder)
