"""Image files of every format are decoded to the expected bytes."""

import io

import numpy as np
import pytest
from image_files import FORMATS, draw_image, save_image
from PIL import Image
from raises import raises

from unweave.data.user.image_io import Preprocessing, UnreadableImageError, decode_image


def encoded(picture, format="PNG", **options):
    buffer = io.BytesIO()
    picture.save(buffer, format, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_shows_its_disc(format, tmp_path):
    image = draw_image(80, 80, colour=(20, 20, 20), transparent=format in ("RGBA", "LA"))
    path = save_image(image, tmp_path / "a", format)
    pixels, info = decode_image(path.read_bytes(), Preprocessing(size=32))
    assert pixels.shape == (3, 32, 32) and pixels.dtype == np.uint8
    assert pixels[:, 16, 16].max() < 40 and pixels[:, 1, 1].min() > 230
    assert info.size == (80, 80)


def test_an_image_of_the_right_size_is_unchanged():
    levels = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    pixels, info = decode_image(encoded(Image.fromarray(levels)), Preprocessing(size=16))
    assert np.array_equal(pixels, levels.transpose(2, 0, 1))
    assert info == ("PNG", "RGB", (16, 16), (), 0)
    gray, _ = decode_image(encoded(Image.fromarray(levels)), Preprocessing(size=16, channels="gray"))
    assert np.array_equal(gray[0], np.asarray(Image.fromarray(levels).convert("L")))


def test_reducing_averages():
    levels = np.random.default_rng(0).integers(0, 256, (32, 32), dtype=np.uint8)
    pixels, _ = decode_image(encoded(Image.fromarray(levels)), Preprocessing(size=8, channels="gray"))
    assert np.abs(pixels[0] - levels.reshape(8, 4, 8, 4).mean((1, 3))).max() <= 1.0  # rounded twice, once each way


def test_sixteen_bits_are_scaled_by_white():
    values = np.array([[0, 257 * 100], [4095, 65535]], dtype=np.uint16)
    content = encoded(Image.fromarray(values))
    pixels, info = decode_image(content, Preprocessing(size=0))
    assert pixels[0].tolist() == [[0, 100], [16, 255]] and info.max_16_bit == 65535 and "16 bits" in info.traits
    assert decode_image(content, Preprocessing(size=0, white=4095))[0][0].tolist() == [[0, 255], [255, 255]]


def test_floats():
    floats = np.array([[0.0, 0.2], [0.5, 1.0]], dtype=np.float32)
    pixels, _ = decode_image(encoded(Image.fromarray(floats), "TIFF"), Preprocessing(size=0))
    assert pixels[0].tolist() == [[0, 51], [128, 255]]
    with pytest.raises(UnreadableImageError, match="200"):
        decode_image(encoded(Image.fromarray(floats * 200), "TIFF"), Preprocessing())


@pytest.mark.parametrize("background, level", [("white", 255), ("black", 0), ("#808080", 128)])
def test_transparent_parts_show_the_background(background, level):
    hidden = Image.new("RGBA", (8, 8), (255, 0, 0, 0))  # red that nobody sees
    pixels, info = decode_image(encoded(hidden), Preprocessing(size=8, background=background))
    assert (pixels == level).all() and "transparent" in info.traits
    colour_key = encoded(Image.new("RGB", (8, 8), (1, 2, 3)), transparency=(1, 2, 3))
    assert (decode_image(colour_key, Preprocessing(size=8, background=background))[0] == level).all()


@pytest.mark.parametrize(
    "fit, column", [("crop", [0] * 8), ("pad", [255] * 2 + [0] * 4 + [255] * 2), ("stretch", [0] * 8)]
)
def test_fit(fit, column):
    pixels, info = decode_image(encoded(Image.new("L", (32, 16))), Preprocessing(size=8, fit=fit, channels="gray"))
    assert pixels[0, :, 4].tolist() == column and "not square" in info.traits


def test_crop_keeps_the_middle_and_stretch_keeps_all():
    halves = np.zeros((16, 32), np.uint8)
    halves[:, 8:24] = 255
    content = encoded(Image.fromarray(halves))
    assert (decode_image(content, Preprocessing(size=8, channels="gray"))[0] == 255).all()
    stretched = decode_image(content, Preprocessing(size=8, fit="stretch", channels="gray"))[0][0]
    assert stretched[0].tolist() == [0, 0, 255, 255, 255, 255, 0, 0]


def test_images_are_turned_upright(tmp_path):
    left_dark = Image.fromarray(np.repeat(np.array([[0, 255]], np.uint8), 2, 0).repeat(16, 0).repeat(16, 1))
    path = save_image(left_dark, tmp_path / "a", "rotated")
    pixels, info = decode_image(path.read_bytes(), Preprocessing(size=8, channels="gray"))
    assert pixels[0, 0].max() < 40 and pixels[0, -1].min() > 215  # dark on top
    assert "rotated" in info.traits


def test_a_large_jpeg_is_decoded_at_a_reduced_size():
    levels = np.linspace(0, 255, 1600).round().astype(np.uint8)[None].repeat(1600, 0)
    content = encoded(Image.fromarray(levels), "JPEG", quality=95)
    pixels, info = decode_image(content, Preprocessing(size=32, channels="gray"))
    assert np.abs(pixels[0, 16].astype(int) - levels.reshape(1600, 32, 50).mean((0, 2))).max() < 2
    assert info.size == (1600, 1600)


@pytest.mark.parametrize(
    "content, reason",
    [
        (b"", "empty"),
        (b"hello", "not an image"),
        (encoded(Image.new("RGB", (64, 64)))[:60], "damaged"),
        (encoded(Image.effect_noise((64, 64), 50), "JPEG")[:900], "damaged"),
    ],
)
def test_unreadable_files_have_a_reason(content, reason):
    with pytest.raises(UnreadableImageError, match=reason):
        decode_image(content, Preprocessing())


@pytest.mark.parametrize(
    "argument, value", [("fit", "zoom"), ("channels", "grey"), ("background", "whte"), ("size", 4), ("white", 0)]
)
def test_settings_are_checked(argument, value):
    with raises(argument, value=value):
        Preprocessing(**{argument: value}).checked()
