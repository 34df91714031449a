"""Arrays of any layout and type, in files or at hand, are read as what they must mean, or refused in one line."""

import json

import numpy as np
import pytest
import torch

from unweave.data import load_data
from unweave.errors import UserError

BYTES = np.random.default_rng(0).integers(2, 256, (6, 3, 16, 16), dtype=np.uint8)  # N, C, H, W


def everything(data):
    return data.images(torch.arange(data.size)).numpy()


@pytest.mark.parametrize("suffix", ["npy", "npz", "at hand"])
@pytest.mark.parametrize("form", ["NCHW", "NHWC", "NHW", "int64", "bool", "zero and one", "float64", "uint16"])
def test_every_form(form, suffix, tmp_path):
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
    if suffix == "at hand":
        data = load_data(images)
    else:
        path = tmp_path / f"a.{suffix}"
        np.save(path, images) if suffix == "npy" else np.savez(path, images=images)
        data = load_data(str(path))
        assert data.name == "arrays" and data.size == 6
    assert np.allclose(everything(data), expected, atol=1e-7) and not data.grid
    assert data.pixels.dtype == torch.uint8  # also of floats that are divided bytes


def test_other_floats_stay_floats(tmp_path):
    images = np.random.default_rng(0).random((4, 1, 8, 8))
    np.save(tmp_path / "a.npy", images)
    data = load_data(str(tmp_path / "a.npy"))
    assert np.array_equal(everything(data), images.astype(np.float32))


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
    data = load_data(tmp_path / "a.npy", factors=str(tmp_path / "t.csv"), kinds={"angle": "discrete"})
    assert data.factor_names == ("kind", "angle") and data.factor_types == ("discrete", "discrete")
    (tmp_path / "t.csv").write_text("kind\na\nb\n")
    with pytest.raises(UserError, match="2 rows for 6 images"):
        load_data(tmp_path / "a.npy", factors=str(tmp_path / "t.csv"))


def test_size_and_channels(tmp_path):
    np.save(tmp_path / "a.npy", BYTES)
    data = load_data(tmp_path / "a.npy", size=8, channels="gray")
    assert data.shape == (1, 8, 8)
    clear = np.concatenate([BYTES, np.zeros_like(BYTES[:, :1])], axis=1)
    assert (everything(load_data(clear, background="black")) == 0).all()  # four channels: colour and transparency
    with pytest.raises(UserError, match="5 channels"):
        load_data(np.zeros((3, 5, 16, 16), np.uint8), size=8)


def test_a_large_file_stays_where_it_is(tmp_path):
    for name, images in (("a.npy", BYTES), ("b.npy", BYTES.transpose(0, 2, 3, 1))):
        np.save(tmp_path / name, images)
        data = load_data(tmp_path / name, resident=False)
        assert "pixels" not in dict(data.named_buffers())
        assert np.allclose(everything(data), BYTES / 255.0)


def test_a_run_finds_its_file_again(tmp_path):
    np.savez(tmp_path / "a.npz", images=BYTES, labels=np.arange(6) % 2)
    data = load_data(tmp_path / "a.npz", size=8)
    options = json.loads(json.dumps(data.options))
    assert np.array_equal(everything(load_data(data.name, **options)), everything(data))
    np.savez(tmp_path / "a.npz", images=BYTES[::-1], labels=np.arange(6) % 2)
    with pytest.raises(UserError, match="not the file the run was made with"):
        load_data(data.name, **options)
    with pytest.raises(UserError, match="arrays in memory"):
        load_data("arrays", **load_data(BYTES).options)


@pytest.mark.parametrize(
    "arrays, said",
    [
        ({"images": np.zeros((3, 4))}, r"holds images \[3, 4\]"),
        ({}, "holds nothing"),
        ({"a": np.zeros((3, 8, 8)), "b": np.zeros((3, 8, 8))}, "no array called images"),
        ({"images": np.zeros((1, 8, 8))}, "one image only"),
        ({"images": np.zeros((0, 8, 8))}, r"\[0, 8, 8\]"),
        ({"images": np.full((3, 8, 8), -1.0)}, "floats from -1 to -1"),
        ({"images": np.full((3, 8, 8), 200.0)}, "floats from 200 to 200"),
        ({"images": np.full((3, 8, 8), np.nan)}, "not finite"),
        ({"images": np.full((3, 8, 8), 70000)}, "70000"),
        ({"images": np.full((3, 8, 8), "a")}, "give bytes"),
        ({"images": np.zeros((3, 3, 8, 3), np.uint8)}, "layout="),
    ],
)
def test_refused(arrays, said, tmp_path):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(UserError, match=said) as error:
        load_data(tmp_path / "a.npz")
    assert "\n" not in str(error.value)


def test_refused_files(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}, None], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "cut.npz", images=BYTES)
    (tmp_path / "cut.npz").write_bytes((tmp_path / "cut.npz").read_bytes()[:500])
    (tmp_path / "rubbish.npy").write_bytes(b"hello")
    reasons = {"objects.npy": "Python objects", "cut.npz": "cannot be read", "rubbish.npy": "no array"}
    for name, said in {**reasons, "absent.npy": "not there"}.items():
        with pytest.raises(UserError, match=said) as error:
            load_data(str(tmp_path / name))
        assert "\n" not in str(error.value)


def test_objects_beside_the_images_are_passed_over(tmp_path):
    """The description inside the published dSprites is made of Python objects."""
    np.savez(tmp_path / "a.npz", imgs=BYTES, metadata=np.array({"a": 1}, dtype=object))
    assert load_data(tmp_path / "a.npz").size == 6
