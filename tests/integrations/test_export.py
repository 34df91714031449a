import io
import os
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image
from raises import raises

import unweave
from unweave import UserError
from unweave.data.user.arrays import Arrays
from unweave.data.user.input_images import image_files, input_preprocessing, read_images
from unweave.integrations.export import encode_files, export
from unweave.methods import METHODS
from unweave.model import TrainedModel
from unweave.runs import RunFolder

GREY, COLOUR = (1, 8, 8), (3, 16, 16)


def model(shape, method="beta_vae", net="small"):
    """A model as it is after training, for what matters here: weights of its own, and data of a shape."""
    data = Arrays(np.zeros((1, *shape), np.float32))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = METHODS[method](data.info, latents=3, net=net)
    return TrainedModel(RunFolder("nowhere"), {"method": method}, made.eval(), data)


def read_image(path, shape):
    """An image file as a model with rendered data of this shape reads it."""
    return read_images([path], input_preprocessing(Arrays(np.zeros((1, *shape), np.float32))))[0]


@pytest.fixture(scope="module")
def pixels():
    return np.random.default_rng(0).integers(0, 256, (8, 8), dtype=np.uint8)


def saved(path, array, mode=None, **options):
    Image.fromarray(array).convert(mode).save(path, **options) if mode else Image.fromarray(array).save(path, **options)
    return path


def test_grey_is_read_exactly(tmp_path, pixels):
    read = read_image(saved(tmp_path / "a.png", pixels), GREY)
    assert read.shape == GREY and read.dtype == np.float32
    assert np.allclose(read[0], pixels / 255, atol=1e-7)
    assert np.allclose(read_image(tmp_path / "a.png", (3, 8, 8)), (pixels / 255)[None], atol=1e-7)


def test_sixteen_bits_are_scaled_not_cut(tmp_path, pixels):
    deep = saved(tmp_path / "deep.png", pixels.astype(np.uint16) * 257)
    with Image.open(deep) as file:
        assert file.mode.startswith("I")
    for shape in (GREY, (3, 8, 8)):
        assert np.allclose(read_image(deep, shape), (pixels / 255)[None], atol=1e-6)


def test_other_sizes_are_averaged(tmp_path, pixels):
    large = saved(tmp_path / "large.png", pixels.repeat(5, 0).repeat(5, 1))
    assert np.allclose(read_image(large, GREY)[0], pixels / 255, atol=1e-6)


def test_transparent_pixels_are_white_as_in_a_folder(tmp_path, pixels):
    clear = np.zeros((8, 8, 4), np.uint8)
    clear[4:, :, 3] = 255
    for name, mode in (("a", "RGBA"), ("b", "LA"), ("c", "P")):
        picture = Image.fromarray(clear).convert(mode)
        path = tmp_path / f"{name}.png"
        picture.save(path, **({"transparency": picture.getpixel((0, 0))} if mode == "P" else {}))
        read = read_image(path, (3, 8, 8))
        assert read[:, :4].min() == 1.0
        assert mode == "P" or read[:, 4:].max() == 0.0


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "CMYK", "YCbCr"])
def test_every_mode_of_jpg_and_tif(tmp_path, mode):
    half = np.zeros((20, 30), np.uint8)
    half[:, 15:] = 255
    names = ["x.tif"] + ["x.jpg"] * (mode not in ("1", "P"))
    for name in names:
        read = read_image(saved(tmp_path / name, half, mode), COLOUR)
        assert read.shape == COLOUR and read[:, :, :6].max() < 0.1 and read[:, :, 10:].min() > 0.9


def test_a_turned_photograph_is_turned_back(tmp_path):
    half = np.zeros((20, 30), np.uint8)
    half[:, 15:] = 255
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn clockwise is due
    read = read_image(saved(tmp_path / "t.jpg", half, exif=exif), GREY)
    assert read[0, :3].max() < 0.1 and read[0, 5:].min() > 0.9


def test_codes_of_files_and_folders(tmp_path, pixels):
    (tmp_path / "in/deeper").mkdir(parents=True)
    (tmp_path / "in/folder.png").mkdir()
    (tmp_path / "in/notes.txt").write_text("not a picture")
    a, b = saved(tmp_path / "in/b.png", pixels), saved(tmp_path / "in/deeper/a.JPG", pixels[:5], "RGB")
    c = saved(tmp_path / "single.bmp", pixels.T.copy())
    trained, out = model(GREY), tmp_path / "new" / "codes.npz"
    assert encode_files(trained, (p for p in [tmp_path / "in", str(c)]), out, batch=2) == 3
    with np.load(out) as stored:
        assert stored["files"].tolist() == [str(a), str(b), str(c)]
        expected = trained.encode(np.stack([read_image(p, GREY) for p in (a, b, c)]))
        assert stored["codes"].shape == (3, 3) and np.allclose(stored["codes"], expected, atol=1e-6)
    assert image_files(str(c)) == [c]


def broken_png():
    whole = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64), dtype=np.uint8)).save(whole, "png")
    return whole.getvalue()[:2000]


@pytest.mark.parametrize("content", [b"", b"text", broken_png()])
def test_an_unreadable_file_writes_nothing(tmp_path, pixels, content):
    good, bad, out = saved(tmp_path / "a.png", pixels), tmp_path / "b.png", tmp_path / "new" / "codes.npz"
    bad.write_bytes(content)
    with raises("images", value=str(bad)):
        encode_files(model(GREY), [good, bad], out)
    assert not out.parent.exists()


def test_nothing_to_read(tmp_path, pixels):
    with raises("images", value=str(tmp_path / "absent.png")):
        image_files([tmp_path / "absent.png"])
    for paths in ([tmp_path], []):
        with raises("images", value=[str(path) for path in paths]):
            image_files(paths)


def test_out_cannot_be_written(tmp_path, pixels):
    good = saved(tmp_path / "a.png", pixels)
    for out in (tmp_path, good / "codes.npz"):
        with raises("out", value=str(out)):
            encode_files(model(GREY), [good], out)
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]


ALONE = """
import sys
import numpy as np
class Block:
    def find_spec(self, name, *rest):
        if name.split(".")[0] == "unweave":
            raise ImportError("unweave is blocked")
sys.meta_path.insert(0, Block())
images = np.load("images.npz")
if sys.argv[1].endswith(".onnx"):
    import onnxruntime
    session = onnxruntime.InferenceSession(sys.argv[1])
    codes = {k: session.run(["codes"], {"images": images[k]})[0] for k in images}
else:
    import torch
    program = torch.export.load(sys.argv[1]).module()
    codes = {k: program(torch.tensor(images[k])).numpy() for k in images}
assert "unweave" not in sys.modules
np.savez("codes.npz", **codes)
"""


@pytest.mark.parametrize(
    "format, shape, method, net",
    [("torch", GREY, "factor_vae", "small"), ("torch", (3, 5, 7), "vae", "mlp"), ("onnx", COLOUR, "beta_vae", "small")],
)
def test_the_exported_encoder_equals_encode(tmp_path, format, shape, method, net):
    trained, rng = model(shape, method, net), np.random.default_rng(0)
    path = export(trained, tmp_path / "deep" / f"encoder.{'pt2' if format == 'torch' else format}", format)
    images = {f"n{n}": rng.random((n, *shape), np.float32) for n in (1, 5)}
    np.savez(tmp_path / "images.npz", **images)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [sys.executable, "-I", "-c", ALONE, str(path)]
    made = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    with np.load(tmp_path / "codes.npz") as codes:
        for name, x in images.items():
            assert np.allclose(codes[name], trained.encode(x), atol=1e-5)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A model, and its encoder in both formats."""
    folder, trained = tmp_path_factory.mktemp("exported"), model(GREY, "factor_vae")
    return trained, export(trained, folder / "e.pt2"), export(trained, folder / "e.onnx", "onnx")


def test_only_the_encoder_is_stored(exported):
    trained, torch_file, onnx_file = exported
    weights = sum(p.numel() * 4 for p in trained.method.autoencoder.encoder.parameters())
    assert weights < torch_file.stat().st_size < weights + 100_000
    assert weights < onnx_file.stat().st_size < weights + 100_000


def test_no_path_of_this_machine_is_stored(exported):
    _, torch_file, onnx_file = exported
    for place in (os.path.dirname(unweave.__file__), os.path.dirname(torch.__file__)):
        assert place.encode() not in onnx_file.read_bytes()
        program = torch.export.load(torch_file)
        assert not any(place in str(node.meta) for node in program.graph.nodes)


def test_export_does_not_change_the_model(exported):
    trained, _, _ = exported
    assert all(p is not None and p.device.type == "cpu" for p in trained.method.parameters())
    assert trained.decode(np.zeros((2, 3))).shape == (2, *GREY)
    assert set(trained.method.state_dict()) == set(model(GREY, "factor_vae").method.state_dict())


def test_the_onnx_file_declares_its_input(exported):
    session = onnxruntime.InferenceSession(exported[2])
    (images,), (codes,) = session.get_inputs(), session.get_outputs()
    assert images.name == "images" and images.shape[1:] == [*GREY] and isinstance(images.shape[0], str)
    assert codes.name == "codes" and codes.shape[1:] == [3]


def test_a_weight_that_is_not_contiguous_is_saved_without_a_warning(tmp_path):
    trained, images = model(COLOUR), torch.rand(2, *COLOUR)
    expected = trained.encode(images)
    trained.method.to(memory_format=torch.channels_last)
    program = torch.export.load(export(trained, tmp_path / "e.pt2")).module()
    assert torch.allclose(program(images), torch.as_tensor(expected), atol=1e-5)


def test_an_unknown_format(tmp_path):
    with raises("format", value="onx", accepted=["onnx"]):
        export(model(GREY), tmp_path / "e", "onx")
    with raises("out", value=str(tmp_path / "e.pt")):
        export(model(GREY), tmp_path / "e.pt")


@pytest.mark.parametrize("absent", ["onnx", "onnxscript"])
def test_onnx_without_its_packages(tmp_path, monkeypatch, absent):
    monkeypatch.setitem(sys.modules, absent, None)  # what import finds for a package that cannot be imported
    with pytest.raises(UserError, match=rf"{absent} .*'unweave\[onnx\]'"):
        export(model(GREY), tmp_path / "e.onnx", "onnx")
    assert not list(tmp_path.iterdir())
