"""The same image gives the same pixels from wherever it is read, and nothing that looks like an image does harm."""

import io
import os
import runpy
import signal
import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from PIL import Image, ImageFile

import unweave as uw

TINY = dict(steps=1, batch=2, net="small", latents=2, device="cpu")
COLOUR = np.random.default_rng(0).integers(2, 256, (40, 24, 3), dtype=np.uint8)  # height, width, colours
GRAY = np.random.default_rng(1).integers(2, 256, (40, 24), dtype=np.uint8)
DEEP = GRAY.astype(np.uint16) * 200
FLOATS = GRAY / np.float32(256)
OPACITY = np.where(np.arange(40)[:, None] < 20, 0, 255).astype(np.uint8).repeat(24, 1)


@pytest.fixture(autouse=True)
def here(tmp_path_factory, tmp_path, monkeypatch):
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.chdir(tmp_path)


class Items(torch.utils.data.Dataset):
    def __init__(self, *items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, number):
        return self.items[number]


def pixels(data):
    """All images as bytes [N, C, H, W]."""
    return (data.images(torch.arange(data.size)) * 255.0).round().numpy().astype(int)


def unweave(capsys, *words):
    """Return the exit code, standard output and standard error of a command."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as stop:
        patch.setattr("sys.argv", ["unweave", *map(str, words)])
        runpy.run_module("unweave", run_name="__main__")
    said = capsys.readouterr()
    return stop.value.code or 0, said.out, said.err


@contextmanager
def time_limit(seconds, *pipes):
    """Stop a block that waits forever for one of these pipes."""

    def stop(*_):
        for pipe in pipes:
            os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))  # its reader finds the end of the file
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def encoded(image, format="PNG", **options):
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def random_bytes(*shape, seed=2):
    return np.random.default_rng(seed).integers(2, 256, shape, dtype=np.uint8)


# --- one preparation (A5) ---------------------------------------------------------------------------------------------


def one_image_in_every_form():
    """File name -> content."""
    colour, gray, deep = map(Image.fromarray, (COLOUR, GRAY, DEEP))
    palette, exif = colour.quantize(16), Image.Exif()
    exif[0x0112] = 6  # rotated camera
    rgba = Image.fromarray(np.dstack([COLOUR, OPACITY]))
    key = int(GRAY[3, 3])
    files = {f"{mode}.png": encoded(rgba.convert(mode)) for mode in ("RGBA", "LA")}
    files |= {f"{mode}.png": encoded(colour.convert(mode)) for mode in ("RGB", "L", "1")}
    files |= {"P.png": encoded(palette), "P-key.png": encoded(palette, transparency=palette.getpixel((3, 3)))}
    files |= {"RGB-key.png": encoded(colour, transparency=tuple(map(int, COLOUR[3, 3])))}
    files |= {"L-key.png": encoded(gray, transparency=key), "16-key.png": encoded(deep, transparency=key * 200)}
    files |= {"16.png": encoded(deep), "rotated.png": encoded(colour, exif=exif)}
    tiffs = {"16B": Image.fromarray(DEEP.astype(">u2")), "I": Image.fromarray(DEEP.astype(np.int32))}
    tiffs |= {"F": Image.fromarray(FLOATS), "CMYK": colour.convert("CMYK")}
    files |= {f"{name}.tif": encoded(image, "TIFF") for name, image in tiffs.items()}
    return files | {f"a.{name.lower()}": encoded(colour, name) for name in ("BMP", "GIF", "PPM", "JPEG", "WEBP")}


def open_image(content):
    with Image.open(io.BytesIO(content)) as image:
        image.load()
    return image


@pytest.mark.parametrize("options", [{}, {"background": "#804020", "fit": "pad"}, {"white": 51000, "fit": "stretch"}])
def test_files_items_and_new_images_have_the_same_pixels(options, tmp_path, capsys):
    """(A5) A file of a folder, a PIL image, and a file given to a trained model."""
    files, options = one_image_in_every_form(), {"size": 16, **options}
    (tmp_path / "in").mkdir()
    for name, content in files.items():
        (tmp_path / "in" / name).write_bytes(content)
    folder = uw.load_data(tmp_path / "in", **options)
    items = uw.load_data(Items(*(open_image(files[name]) for name in sorted(files))), **options)
    for name, one, other in zip(sorted(files), pixels(folder), pixels(items), strict=True):
        assert np.array_equal(one, other), name
    for data in (folder, items):
        out = tmp_path / f"run-{data.name}"
        uw.train("vae", data, out=out, **TINY)
        run, codes = uw.load(out, with_data=False), codes_of_files(capsys, out, tmp_path / "in")
        assert np.allclose(codes, run.encode(pixels(folder).astype(np.uint8)), atol=1e-5)


def codes_of_files(capsys, run, images):
    """The codes that `unweave encode` writes, in the order of the files."""
    assert unweave(capsys, "encode", run, images)[0] == 0
    with np.load("codes.npz") as stored:
        assert sorted(stored["files"]) == stored["files"].tolist()
        return stored["codes"]


@pytest.mark.parametrize(
    "array, options",
    [(COLOUR, {}), (GRAY, {}), (DEEP, {}), (FLOATS, {}), (np.dstack([COLOUR, OPACITY]), {"alpha": True})],
)
def test_arrays_have_the_pixels_of_files(array, options, tmp_path, capsys):
    """(A5, A14) The same image as a file and as an array, in memory, in a file and as items."""
    (tmp_path / "in").mkdir()
    format = "tif" if array.dtype.kind == "f" else "png"
    pair = np.stack([array, array[::-1]])
    for name, one in zip("ab", pair):
        Image.fromarray(one).save(tmp_path / "in" / f"{name}.{format}")
    common = dict(size=16, background="#804020", fit="pad", channels="rgb")
    expected = pixels(uw.load_data(tmp_path / "in", **common))
    np.save(tmp_path / "a.npy", pair)
    for source in (pair, tmp_path / "a.npy", Items(array, torch.from_numpy(pair[1]))):
        data, run = uw.load_data(source, **common, **options), tmp_path / f"run-{type(source).__name__}"
        assert np.array_equal(pixels(data), expected), source
        uw.train("vae", data, out=run, **TINY)
        codes = uw.load(run, with_data=False).encode(expected.astype(np.uint8))
        assert np.allclose(codes_of_files(capsys, run, tmp_path / "in"), codes, atol=1e-5)


@pytest.mark.parametrize("order", [0, 1])
def test_the_range_of_bytes_is_decided_by_all_items(order):
    """(A5) An image with values 0 and 1 among images of 0 to 255 is nearly black."""
    normal, dark = random_bytes(3, 20, 20), np.random.default_rng(0).integers(0, 2, (3, 20, 20), dtype=np.uint8)
    items = [(normal, 0), (dark, 1), (normal, 0)]
    items = items[order:] + items[:order]
    for options in ({}, {"size": 16}):
        data = uw.load_data(Items(*items), **options)
        assert pixels(data)[1 - order].max() <= 1
    binary = uw.load_data(Items(dark, dark))
    assert pixels(binary).max() == 255 and any("1 is white" in note for note in binary.source_info.notes)


@pytest.mark.parametrize("order", [0, 1])
def test_the_depth_of_integers_is_decided_by_all_items(order):
    """(A5) An image of 16 bits with values below 256 beside others is divided by 257 as they are."""
    bright = (random_bytes(1, 20, 20).astype(np.uint16)) * 257
    dark = random_bytes(1, 20, 20).astype(np.uint16)
    items = [bright, dark, bright][order:] + [bright] * order
    for options in ({}, {"size": 16}):
        data = uw.load_data(Items(*items), **options)
        assert pixels(data)[1 - order].max() <= 1 and pixels(data)[2].max() > 120
    assert any("65535 is white" in note for note in data.source_info.notes)


@pytest.mark.parametrize("mode", ["I;16", "I", "F"])
def test_deep_pil_images_are_scaled(mode):
    """(A5) PIL images of 16 bits and of floats."""
    array = {"I;16": DEEP, "I": DEEP.astype(np.int32), "F": FLOATS}[mode]
    image = Image.fromarray(array)
    assert image.mode == mode
    expected = (array * (255.0 if mode == "F" else 255 / 65535)).round()
    assert np.array_equal(pixels(uw.load_data(Items(image, image)))[0, 0], expected)


def test_pil_images_are_turned_upright():
    """(A5) The rotation noted by the camera, which folders and predict follow."""
    image = open_image(one_image_in_every_form()["rotated.png"])
    assert np.array_equal(pixels(uw.load_data(Items(image, image)))[0], np.rot90(COLOUR, -1).transpose(2, 0, 1))


@pytest.mark.parametrize(
    "odd",
    [random_bytes(3, 16, 16) / np.float32(255), random_bytes(3, 16, 16).astype(np.uint16), Image.new("RGB", (16, 16))],
)
def test_items_of_mixed_types_are_refused_by_name(odd):
    """(A5) A set of bytes with one item of floats, of 16 bits or of another kind."""
    normal = random_bytes(3, 16, 16)
    with pytest.raises(uw.UserError, match="item 1") as caught:
        uw.load_data(Items(normal, odd, normal))
    assert caught.value.argument == "images" and "\n" not in str(caught.value)


# --- channels (A14) ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["array", "file", "items"])
def test_four_channels_are_four_channels(form, tmp_path):
    """(A14) Four bands, of which the last is all zero; with alpha=True it is transparency, and the notes say so."""
    bands = random_bytes(20, 4, 16, 16)
    bands[:, 3] = 0
    np.save(tmp_path / "a.npy", bands)
    source = {"array": bands, "file": tmp_path / "a.npy", "items": Items(*bands)}[form]
    assert uw.load_data(source).shape == (4, 16, 16)
    assert np.array_equal(pixels(uw.load_data(source)), bands)
    assert uw.load_data(source, size=8).shape == (4, 8, 8)
    seen = uw.load_data(source, alpha=True)
    assert seen.shape == (3, 16, 16) and (pixels(seen) == 255).all()
    assert any("transparency" in note and "white" in note for note in seen.source_info.notes)


def test_ambiguous_shapes_are_not_guessed():
    """(A14) Two channels at the end are channels; a shape without an axis of 1 to 4 needs a layout."""
    assert uw.load_data(random_bytes(20, 16, 16, 2)).shape == (2, 16, 16)
    for shape in ((20, 16, 16, 5), (20, 5, 16, 16), (20, 3, 16, 3), (16, 16, 3)):
        with pytest.raises(uw.UserError) as caught:
            uw.load_data(random_bytes(*shape))
        assert caught.value.argument == "layout"
    assert uw.load_data(random_bytes(20, 16, 16, 5), layout="NHWC").shape == (5, 16, 16)


def test_runs_on_arrays_from_before_keep_their_images(tmp_path):
    """(A14) Earlier versions read four channels as transparency; `rules=1`, which their runs are given, still does."""
    for name, shape in (("a", (20, 4, 16, 16)), ("b", (20, 5, 16, 16))):
        np.save(tmp_path / f"{name}.npy", random_bytes(*shape))
    assert uw.load_data("arrays(path='a.npy', rules=1)").shape == (3, 16, 16)
    assert uw.load_data("arrays(path='b.npy', rules=1)").shape == (5, 16, 16)


# --- what is read (B-C2, B-H2) ----------------------------------------------------------------------------------------


def good_images(folder, count=3):
    folder.mkdir()
    for number in range(count):
        Image.fromarray(random_bytes(16, 16, 3, seed=number)).save(folder / f"{number}.png")
    return folder


def test_no_program_runs_for_a_picture(tmp_path, monkeypatch, capsys):
    """(B-C2) A PostScript text named like a picture is not given to Ghostscript."""
    folder, ran, tools = good_images(tmp_path / "in"), tmp_path / "ran", tmp_path / "tools"
    (folder / "holiday.png").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 16 16\n%%EndComments\nshowpage\n")
    tools.mkdir()
    (tools / "gs").write_text(f"#!/bin/sh\ntouch '{ran}'\n")
    (tools / "gs").chmod(0o755)
    uw.train("vae", uw.load_data(good_images(tmp_path / "train"), size=16), out=tmp_path / "run", **TINY)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    code, out, _ = unweave(capsys, "data", "inspect", folder)
    assert not ran.exists()
    assert code == 0 and "holiday.png" in out and "not an image" in out
    code, _, err = unweave(capsys, "encode", tmp_path / "run", folder)
    assert code == 2 and "holiday.png" in err and err.count("\n") == 1
    assert not ran.exists()


def test_pipes_and_devices_are_not_opened(tmp_path, capsys):
    """(B-H2) They are listed with the reason."""
    folder = good_images(tmp_path / "in")
    os.mkfifo(folder / "pipe.png")
    (folder / "null.png").symlink_to("/dev/null")
    with time_limit(20, folder / "pipe.png"):
        code, out, _ = unweave(capsys, "data", "inspect", folder)
        assert code == 0 and "a named pipe" in out and "a device" in out
        uw.train("vae", uw.load_data(good_images(tmp_path / "train"), size=16), out=tmp_path / "run", **TINY)
        for images in (folder, folder / "pipe.png", folder / "null.png"):
            code, _, err = unweave(capsys, "encode", tmp_path / "run", images)
            assert code == 2 and err.count("\n") == 1 and ("a named pipe" in err or "a device" in err)


def test_tables_and_arrays_are_regular_files(tmp_path):
    """(B-H2) A named pipe given as an array file, a table or a list of groups is an error."""
    folder = good_images(tmp_path / "in")
    for name in ("a.npy", "a.npz", "a.csv", "a.parquet"):
        os.mkfifo(tmp_path / name)
    for source, options in (
        (tmp_path / "a.npy", {}),
        (tmp_path / "a.npz", {}),
        (folder, {"factors": tmp_path / "a.csv"}),
        (folder, {"factors": tmp_path / "a.parquet"}),
        (folder, {"groups": tmp_path / "a.csv"}),
    ):
        with time_limit(20, *tmp_path.glob("a.*")), pytest.raises(uw.UserError):
            uw.load_data(source, **options)


# --- large images (B-H3) ----------------------------------------------------------------------------------------------


def test_large_images_of_16_bits_need_little_memory(tmp_path):
    """(B-H3) Two images of 72 MB each are converted without copies of several times their size."""
    (tmp_path / "in").mkdir()
    content = encoded(Image.new("I;16", (6000, 6000)), compress_level=1)
    for name in "ab":
        (tmp_path / "in" / f"{name}.png").write_bytes(content)
    tracemalloc.start()  # counts arrays, not the images of Pillow
    try:
        data = uw.load_data(tmp_path / "in", size=16)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert data.size == 2 and peak < 150e6


def test_an_image_that_does_not_fit_into_memory_is_not_left_out(tmp_path, monkeypatch):
    """(B-H3) It is an error that names the image, not a damaged file."""
    folder, load = good_images(tmp_path / "in"), ImageFile.ImageFile.load
    Image.fromarray(random_bytes(20, 20)).save(folder / "large.png")

    def limited(image):
        if image.size == (20, 20):
            raise MemoryError("Unable to allocate 1.26 GiB for an array")
        return load(image)

    monkeypatch.setattr(ImageFile.ImageFile, "load", limited)
    with pytest.raises(uw.UserError, match=r"large\.png.*memory"):
        uw.load_data(folder, size=16)


# --- names and forms (B-H10) ------------------------------------------------------------------------------------------


def test_names_of_pictures_that_are_not_text(tmp_path, capsys):
    """(B-H10) A line break in a name, and a name that is not UTF-8."""
    folder = good_images(tmp_path / "in")
    content = (folder / "0.png").read_bytes()
    for name in (b"two\nlines.png", b"\xff\xfe.png"):
        with open(os.fsencode(folder) + b"/" + name, "wb") as file:
            file.write(content)
    code, _, err = unweave(capsys, "data", "inspect", folder)
    assert code == 0, err
    (tmp_path / "labels.csv").write_text("file,kind\n0.png,a\n1.png,b\n")
    data = uw.load_data(folder, factors=tmp_path / "labels.csv", size=16)
    uw.train("m2", data, supervision="labels", out=tmp_path / "run", **(TINY | {"net": "mlp"}))
    code, _, err = unweave(capsys, "predict", tmp_path / "run", folder)
    assert code == 0, err
    assert r"\xff\xfe.png" in (tmp_path / "predicted.csv").read_text()
    code, _, err = unweave(capsys, "encode", tmp_path / "run", folder)
    assert code == 0, err
    with np.load(tmp_path / "codes.npz") as stored:
        assert os.fsencode(str(stored["files"][-1])).endswith(b"\xff\xfe.png")


def test_narrow_images_are_drawn(tmp_path, capsys):
    """(B-H10) Four images of 2048 x 8 pixels."""
    np.save(tmp_path / "a.npy", random_bytes(4, 2048, 8))
    code, _, err = unweave(capsys, "data", "inspect", tmp_path / "a.npy")
    assert code == 0, err


# --- nothing to learn from (B-M5) -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "images, words",
    [
        (np.zeros((6, 1, 16, 16), np.uint8), "are black"),
        (np.full((6, 1, 16, 16), 255, np.uint8), "are white"),
        (random_bytes(1, 1, 16, 16).repeat(6, 0), "are identical"),
        (np.arange(6, dtype=np.uint8)[:, None, None, None].repeat(16, 2).repeat(16, 3) * 40, "a single colour"),
    ],
)
def test_constant_images_are_reported(images, words, tmp_path, capsys):
    """(B-M5) One line before training and in the inspection."""
    with pytest.warns(UserWarning, match=words):
        uw.train("vae", uw.load_data(images), out=tmp_path / "run", **TINY)
    np.save(tmp_path / "a.npy", images)
    code, out, _ = unweave(capsys, "data", "inspect", tmp_path / "a.npy")
    assert code == 0 and words in out
    code, _, err = unweave(
        capsys, "train", "vae", "--data", tmp_path / "a.npy", "--set", "net=mlp", "--steps", 1, "--device", "cpu"
    )
    assert code == 0 and err.count(words) == 1
