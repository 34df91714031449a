"""Arrays of any layout and dtype, in files or in memory, are converted to images, or refused in one line."""

import json

import numpy as np
import pytest
import torch
from raises import raises

from unweave.data import load_data
from unweave.data.storage.digest import changed_parts
from unweave.data.user.image_io import Preprocessing

BYTES = np.random.default_rng(0).integers(2, 256, (6, 3, 16, 16), dtype=np.uint8)  # N, C, H, W


def all_images(data):
    return data.images(torch.arange(data.size)).numpy()


@pytest.mark.parametrize("suffix", ["npy", "npz", "in memory"])
@pytest.mark.parametrize("form", ["NCHW", "NHWC", "NHW", "int64", "bool", "zero and one", "float64", "uint16"])
def test_layouts_and_dtypes(form, suffix, tmp_path):
    images, expected = BYTES, BYTES / np.float32(255)
    if form == "NHWC":
        images = BYTES.transpose(0, 2, 3, 1)
    elif form == "NHW":
        images, expected = BYTES[:, 0], expected[:, :1]
    elif form == "int64":
        images = BYTES.astype(np.int64)
    elif form in ("bool", "zero and one"):
        images = BYTES > 128
        expected = images.astype(np.float32)
        images = images if form == "bool" else images.astype(np.uint8)
    elif form == "float64":
        images = BYTES / 255.0
    elif form == "uint16":
        images = BYTES.astype(np.uint16) * 257
    if suffix == "in memory":
        data = load_data(images)
    else:
        path = tmp_path / f"a.{suffix}"
        np.save(path, images) if suffix == "npy" else np.savez(path, images=images)
        data = load_data(str(path))
        assert data.name == "arrays" and data.size == 6
    assert np.allclose(all_images(data), expected, atol=1e-7) and not data.grid
    assert data.pixels.dtype == torch.uint8  # also of floats that are divided bytes


def test_floats_that_are_not_divided_bytes_stay_floats(tmp_path):
    images = np.random.default_rng(0).random((4, 1, 8, 8))
    np.save(tmp_path / "a.npy", images)
    data = load_data(str(tmp_path / "a.npy"))
    assert np.array_equal(all_images(data), images.astype(np.float32))


@pytest.mark.parametrize("key", ["factors", "labels", "y"])
def test_factors_of_an_npz(key, tmp_path):
    factors = np.stack([np.arange(6) % 2, np.arange(6) / 4], axis=1)
    np.savez(tmp_path / "a.npz", x=BYTES, **{key: factors}, names=np.array(["kind", "angle"]), more=np.zeros(3))
    data = load_data(tmp_path / "a.npz")
    assert data.factor_names == ("kind", "angle") and data.factor_types == ("discrete", "continuous")
    assert data.source_info.notes == ("not used: more",)
    np.savez(tmp_path / "b.npz", x=BYTES, labels=np.arange(6) % 2, other=np.arange(6) % 3)
    assert load_data(tmp_path / "b.npz").factor_names == ("labels",)
    chosen = load_data(tmp_path / "b.npz", factors="other")
    assert chosen.factor_names == ("other",) and chosen.factor_sizes == (3,)


def test_a_table_in_the_order_of_the_images(tmp_path):
    np.save(tmp_path / "a.npy", BYTES)
    (tmp_path / "t.csv").write_text("kind,angle\n" + "".join(f"k{i % 2},{i / 4}\n" for i in range(6)))
    data = load_data(tmp_path / "a.npy", factors=str(tmp_path / "t.csv"), factor_types={"angle": "discrete"})
    assert data.factor_names == ("kind", "angle") and data.factor_types == ("discrete", "discrete")
    earlier_name = f"arrays(path='{tmp_path}/a.npy', factors='{tmp_path}/t.csv', kinds={{'angle': 'discrete'}})"
    assert load_data(earlier_name).kinds == ("discrete", "discrete")
    (tmp_path / "t.csv").write_text("kind\na\nb\n")
    with raises("factors", value="2 rows"):
        load_data(tmp_path / "a.npy", factors=str(tmp_path / "t.csv"))


def test_size_and_channels(tmp_path):
    np.save(tmp_path / "a.npy", BYTES)
    data = load_data(tmp_path / "a.npy", size=8, channels="gray")
    assert data.shape == (1, 8, 8)
    clear = np.concatenate([BYTES, np.zeros_like(BYTES[:, :1])], axis=1)
    assert load_data(clear).shape == (4, 16, 16)  # four channels are channels unless alpha is asked for
    assert (all_images(load_data(clear, alpha=True, background="black")) == 0).all()
    assert load_data(np.zeros((3, 5, 16, 16), np.uint8), layout="NCHW", size=8).shape == (5, 8, 8)
    with raises("alpha", value=True):
        load_data(BYTES, alpha=True)
    with raises("channels", value="gray"):
        load_data(clear, channels="gray")


def test_the_white_of_integers():
    twelve_bits = (BYTES.astype(np.uint16) * 16).clip(300, 4095)
    assert all_images(load_data(twelve_bits)).max() < 0.07
    data = load_data(twelve_bits, white=4095)
    assert np.allclose(all_images(data), twelve_bits / 4095, atol=0.003)
    assert any("white=4095" in note for note in load_data(twelve_bits).source_info.notes)
    assert any("larger values" in note for note in load_data(twelve_bits, white=1000).source_info.notes)
    assert data.preprocessing.white == 4095
    for images in (BYTES > 9, BYTES / 255.0):
        with raises("white", value=7):
            load_data(images, white=7)


def test_arrays_store_how_files_become_such_images():
    data = load_data(BYTES[:, :, :8], background="black")
    assert data.preprocessing == Preprocessing((8, 16), "crop", "rgb", "black", 65535)
    assert load_data(BYTES[:, 0].astype(np.uint16)).preprocessing.white == 255
    assert load_data(BYTES, size=8, channels="gray").preprocessing.channels == "gray"


@pytest.mark.parametrize("layout, shape", [("NHW", (6, 3, 16, 16)), ("NCHW", (6, 16, 16))])
def test_a_layout_has_the_axes_of_the_images(layout, shape):
    with raises("layout", value=layout):
        load_data(np.zeros(shape, np.uint8), layout=layout)


def test_a_file_that_is_not_resident_is_memory_mapped(tmp_path):
    for name, images in (("a.npy", BYTES), ("b.npy", BYTES.transpose(0, 2, 3, 1))):
        np.save(tmp_path / name, images)
        data = load_data(tmp_path / name, resident=False)
        assert "pixels" not in dict(data.named_buffers())
        assert np.allclose(all_images(data), BYTES / 255.0)


def test_the_options_reopen_the_same_content(tmp_path):
    np.savez(tmp_path / "a.npz", images=BYTES, labels=np.arange(6) % 2)
    data = load_data(tmp_path / "a.npz", size=8)
    options = json.loads(json.dumps(data.options))
    assert np.array_equal(all_images(load_data(data.name, **options)), all_images(data))
    assert load_data(data.name, **options).digest == data.digest
    np.savez(tmp_path / "a.npz", images=BYTES[::-1], labels=np.arange(6) % 2)
    assert changed_parts(data.digest, load_data(data.name, **options).digest) == ("images",)
    with raises("data"):
        load_data("arrays", **load_data(BYTES).options)


def test_the_fingerprint_of_an_older_run_is_checked(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(384).astype(np.uint8).reshape(6, 8, 8))
    stored = "6-ebc6838435ef-f87e251d"  # of commit d4802f3
    assert load_data(tmp_path / "a.npy", fingerprint=stored).options["fingerprint"] == stored
    np.save(tmp_path / "a.npy", np.zeros((6, 8, 8), np.uint8))
    with raises("data", value=str(tmp_path / "a.npy")):
        load_data(tmp_path / "a.npy", fingerprint=stored)


@pytest.mark.parametrize(
    "arrays, argument, value",
    [
        ({"images": np.zeros((3, 4))}, "images", "images [3, 4]"),
        ({}, "images", "nothing"),
        ({"a": np.zeros((3, 8, 8)), "b": np.zeros((3, 8, 8))}, "images", "a [3, 8, 8], b [3, 8, 8]"),
        ({"images": np.zeros((1, 8, 8))}, "images", [1, 8, 8]),
        ({"images": np.zeros((0, 8, 8))}, "images", [0, 8, 8]),
        ({"images": np.full((3, 8, 8), -1.0)}, "images", "floats from -1 to -1"),
        ({"images": np.full((3, 8, 8), 200.0)}, "images", "floats from 200 to 200"),
        ({"images": np.full((3, 8, 8), np.nan)}, "images", "nan or infinity"),
        ({"images": np.full((3, 8, 8), 70000)}, "images", "integers from 70000 to 70000"),
        ({"images": np.full((3, 8, 8), "a")}, "images", "<U1"),
        ({"images": np.zeros((3, 3, 8, 3), np.uint8)}, "layout", [3, 3, 8, 3]),
        ({"images": np.zeros((3, 5, 8, 8), np.uint8)}, "layout", [3, 5, 8, 8]),
        ({"images": np.zeros((8, 8, 3), np.uint8)}, "layout", [8, 8, 3]),
    ],
)
def test_arrays_that_are_not_images_are_refused(arrays, argument, value, tmp_path):
    np.savez(tmp_path / "a.npz", **arrays)
    with raises(argument, value=value):
        load_data(tmp_path / "a.npz")


def test_objects_are_not_unpickled(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}, None], dtype=object), allow_pickle=True)
    with raises("data", value=str(tmp_path / "objects.npy")):
        load_data(str(tmp_path / "objects.npy"))


def test_object_arrays_are_ignored(tmp_path):
    """The metadata in the published file of dSprites are Python objects."""
    np.savez(tmp_path / "a.npz", imgs=BYTES, metadata=np.array({"a": 1}, dtype=object))
    assert load_data(tmp_path / "a.npz").size == 6
