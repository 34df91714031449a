"""The digests of all kinds of data sets: equal for equal data, different for different data."""

import inspect
import json

import numpy as np
import pytest
import torch
from published_files import write_mnist

import unweave as uw
from unweave.data import DATASETS, Dataset, load_data
from unweave.data.published import FILES
from unweave.data.storage import digest
from unweave.data.storage.digest import SAMPLED_NOTE, changed_parts
from unweave.data.views import noisy, subset
from unweave.report import report

BYTES = np.random.default_rng(0).integers(0, 256, (40, 1, 16, 16), dtype=np.uint8)
LABELS = np.random.default_rng(0).integers(0, 4, (40, 2))
TINY = {"steps": 1, "batch": 4, "net": "small", "latents": 2, "device": "cpu"}


def test_a_digest_names_the_number_of_images():
    assert load_data("digits").digest.split("-")[0] == "1797" and len(load_data("digits").digest.split("-")) == 3


@pytest.mark.parametrize(
    "given",
    [
        torch.from_numpy(BYTES),
        BYTES / np.float32(255),
        BYTES[:, 0],
        [torch.from_numpy(image) for image in BYTES],
        [{"image": image[0]} for image in BYTES],
    ],
    ids=["tensor", "floats", "without channels", "items", "dictionaries"],
)
def test_equal_images_have_equal_digests(given):
    assert load_data(given).digest == load_data(BYTES).digest


@pytest.mark.parametrize(
    "factors, parts",
    [
        (LABELS, ()),
        (LABELS.astype(np.float64), ()),
        (np.where(np.arange(80).reshape(40, 2) == 33, 5, LABELS), ("factors",)),
        (LABELS[:, ::-1], ("factors",)),
        (None, ("factors",)),
        (LABELS + 0.5 * np.arange(40)[:, None], ("factors",)),
    ],
)
def test_every_label_counts(factors, parts):
    first = load_data(BYTES, factors=LABELS).digest
    assert changed_parts(first, load_data(BYTES, factors=factors).digest) == parts


def test_the_names_and_values_of_factors_count():
    first = load_data(BYTES, factors=LABELS, names=["a", "b"]).digest
    assert changed_parts(first, load_data(BYTES, factors=LABELS, names=["a", "c"]).digest) == ("factors",)
    texts = np.array(["red", "green", "blue", "grey"])[LABELS]
    other = load_data(BYTES, factors=np.where(texts == "grey", "gray", texts)).digest
    assert changed_parts(load_data(BYTES, factors=texts).digest, other) == ("factors",)


VIEWS = [
    "subset(data='digits', first=100)",
    "subset(data='digits', random=100)",
    "subset(data='digits', random=100, seed=1)",
    "subset(data='digits', where={'digit': [0, 1]})",
    "split(data='digits')",
    "split(data='digits', part='validation')",
    "split(data='digits', seed=1)",
    "split(data='digits(size=16)')",
    "noisy(data='digits')",
    "noisy(data='digits', sigma=0.2)",
    "noisy(data='digits', seed=1)",
    "noisy(data=\"split(data='digits')\")",
    "split(data=\"noisy(data='digits')\")",
    "subset(data='sprites(size=16)', where={'shape': [0]})",
    "correlated(data='clips(size=16, motions=1, frames=2)', factors=['posX', 'posY'])",
]


def test_views_have_digests_of_their_own():
    found = {text: load_data(text).digest for text in (*VIEWS, "digits", "digits(size=16)", "sprites(size=16)")}
    assert len(set(found.values())) == len(found)
    assert {text: load_data(text).digest for text in VIEWS} == {text: found[text] for text in VIEWS}
    base, view = (found[text].split("-") for text in ("digits", "noisy(data='digits')"))
    assert base[1] != view[1] and base[2] == view[2]


def test_a_view_depends_on_the_content_of_its_data():
    changed = BYTES.copy()
    changed[20, 0, 3, 3] ^= 1
    for view in (lambda data: subset(data, first=10), lambda data: noisy(data, sigma=0.1)):
        digests = {view(load_data(images)).digest for images in (BYTES, BYTES.copy(), changed)}
        assert len(digests) == 2


RENDERED = [
    ("sprites(size=16)", "sprites(size=16, antialias=1)", "sprites(size=16, antialias=2)"),
    ("rooms(size=16)", "rooms(size=16)", "rooms(size=8)"),
    ("colour_sprites(size=16)", "colour_sprites(size=16, seed=0)", "colour_sprites(size=16, on='background')"),
    ("clips(size=16)", "clips(size=16, frames=16)", "clips(size=16, frames=8)"),
]


@pytest.mark.parametrize("text, same, other", RENDERED)
def test_rendered_data_are_identified_by_their_call(text, same, other, monkeypatch):
    data = load_data(text)
    monkeypatch.setattr(type(data), "images", None)  # no image is rendered
    first = data.digest
    assert load_data(same).digest == first != load_data(other).digest
    monkeypatch.setattr(type(data), "renderer_version", data.renderer_version + 1)
    assert load_data(text).digest != first


def test_the_options_of_rendered_data_are_complete():
    """Each parameter that the images depend on is in `options`, from which the digest is made."""
    for name in DATASETS.keys() - FILES.keys():
        data = load_data(name, size=16)
        assert set(data.options) == set(inspect.signature(DATASETS[name]).parameters), name


def test_published_files_are_identified_by_their_pixels(tmp_path, own_cache):
    for folder in ("a", "b", "c"):
        (tmp_path / folder).mkdir()
        write_mnist(tmp_path / folder, train=12 + (folder == "c"))
    first, moved, other = (load_data("mnist", path=tmp_path / folder).digest for folder in ("a", "b", "c"))
    assert first == moved != other and first.startswith("17-")
    assert load_data("mnist", path=tmp_path / "a", size=16).digest != first
    assert len(list((own_cache / "files").glob("mnist-*/pixels.digest"))) == 4


class Shades(Dataset):
    """A data set class of a user."""

    name, factor_names, factor_sizes, factor_values = "shades", ("shade",), (4,), ((0.0, 1.0, 2.0, 3.0),)
    shape, size, grid = (1, 16, 16), 100, False

    def __init__(self, brightness=1.0, shift=0):
        super().__init__()
        self.brightness, self.shift, self.options = brightness, shift, {}

    def images(self, index_B):
        return (index_B % 4 * self.brightness / 4).reshape(-1, 1, 1, 1).expand(-1, *self.shape).clone()

    def factors(self, index_B):
        return (index_B[:, None] + self.shift) % 4


class VersionedShades(Shades):
    renderer_version = 1


class OtherShades(VersionedShades):
    def images(self, index_B):
        return 1 - super().images(index_B)


def test_classes_of_users_are_identified_by_their_pixels():
    first = Shades().digest
    assert first == Shades().digest
    assert changed_parts(first, Shades(0.5).digest) == ("images",)
    assert changed_parts(first, Shades(shift=1).digest) == ("factors",)


def test_the_version_of_a_renderer_counts_for_its_own_images_only():
    """A subclass with other images that declares no version is identified by its pixels."""
    assert VersionedShades().digest == VersionedShades(0.5).digest  # `options` does not say so: an error of the class
    assert OtherShades().digest != OtherShades(0.5).digest


def test_a_slow_class_of_a_user_is_sampled(monkeypatch):
    monkeypatch.setattr(digest, "_SAMPLE_ROWS", (8, 8))
    monkeypatch.setattr(digest, "TIME_LIMIT", 0.0)
    drawn = []

    class Slow(Shades):
        size = 5_000_000

        def images(self, index_B):
            drawn.append(len(index_B))
            return super().images(index_B)

    assert Slow().digest.endswith("-sampled") and sum(drawn) < 100_000


def test_sampled_data_are_named_wherever_they_are_used(tmp_path, monkeypatch):
    """A run keeps the form of its digest: one of a sample is compared with one of a sample."""
    data = load_data(BYTES, factors=LABELS)
    with monkeypatch.context() as patch:
        patch.setattr(digest, "TIME_LIMIT", 0.0)
        run = uw.train("vae", load_data(BYTES, factors=LABELS), out=tmp_path / "run", **TINY)
        assert run.config.data_digest.endswith("-sampled")
        with pytest.warns(UserWarning, match=SAMPLED_NOTE):
            uw.evaluate(run, metrics=["mig"])
        with pytest.warns(UserWarning, match=SAMPLED_NOTE):
            frame = uw.score_runs([run], metrics=["mig"])
        assert frame.attrs["sampled"]
        with pytest.warns(UserWarning, match=SAMPLED_NOTE):
            page = report([run], tmp_path / "report.html").read_text()
        assert SAMPLED_NOTE[1:] in page
    assert not data.digest.endswith("-sampled")
    assert uw.resume(tmp_path / "run", data=data).folder.finished
    changed = BYTES.copy()
    changed[-1] ^= 1
    with pytest.raises(uw.UserError, match="images"):
        uw.resume(tmp_path / "run", data=load_data(changed, factors=LABELS))
    whole = uw.train("vae", data, out=tmp_path / "whole", **TINY)
    monkeypatch.setattr(digest, "TIME_LIMIT", 0.0)
    assert uw.resume(tmp_path / "whole", data=load_data(BYTES, factors=LABELS)).folder.finished
    assert json.loads((tmp_path / "whole" / "config.json").read_text())["data_digest"] == whole.config.data_digest


def test_the_digest_of_data_on_another_device_is_the_same():
    data = Shades()
    assert data.to(torch.device("cpu")).digest == Shades().digest
