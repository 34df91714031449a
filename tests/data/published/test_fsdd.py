import zipfile

import numpy as np
import pytest
import torch
from published_files import fsdd_sounds, tone, wav, write_fsdd
from raises import raises

from unweave.data import load_data
from unweave.data.published.fsdd import mel_filters, spectrogram


def test_files_are_read(tmp_path, own_cache):
    sounds = write_fsdd(tmp_path)
    data = load_data("fsdd", path=tmp_path)
    assert data.grid and data.shape == (1, 64, 64) and data.factor_names == ("digit", "speaker", "take")
    assert data.factor_values == ((0, 7), ("george", "theo"), tuple(range(11)))
    x = data.images(data.index(torch.tensor([[1, 0, 10]])))
    expected = spectrogram(sounds[7, "george", 10].astype(np.int16), 64)
    assert np.array_equal((x[0, 0] * 255).round().byte(), expected)


def test_folders_and_sizes(tmp_path, own_cache):
    write_fsdd(tmp_path, fsdd_sounds(2))
    with zipfile.ZipFile(tmp_path / "free-spoken-digit-dataset-master.zip") as archive:
        archive.extractall(tmp_path)
    folder = tmp_path / "free-spoken-digit-dataset-master"
    assert load_data("fsdd", path=folder, size=32).shape == (1, 32, 32)
    assert load_data("fsdd", path=folder / "recordings", size=128).shape == (1, 128, 128)


def test_frequency_increases_upwards_and_time_to_the_right():
    """A tone is one bright row, higher for a higher tone; the silence after it is black."""
    rows = []
    for hertz in (300, 600, 1200, 2400):
        image = spectrogram(tone(hertz).astype(np.int16), 64)
        assert image.shape == (64, 64) and image.max() == 255
        rows.append(int(image[:, 15].argmax()))
        assert image[:, 15].max() > 250 and not image[:, 34:].any()
        assert (image[:, 15] > 128).mean() < 0.5
    assert rows == sorted(rows, reverse=True) and rows[0] > 40 and rows[-1] < 20


def test_loudness_is_normalised_and_long_sounds_are_cut():
    sound = np.random.default_rng(0).normal(0, 3000, 20000)
    loud, soft = spectrogram(sound.astype(np.int16), 64), spectrogram((sound / 4).astype(np.int16), 64)
    assert np.abs(loud.astype(int) - soft).max() <= 2
    assert np.array_equal(loud, spectrogram(sound[:8192].astype(np.int16), 64))
    assert spectrogram(np.zeros(100, np.int16), 64).min() == 255  # all points are equally loud


@pytest.mark.parametrize("bands", [32, 64, 128])
def test_no_band_is_empty(bands):
    filters = mel_filters(bands)
    assert filters.shape == (bands, 257) and filters.max() <= 1
    assert (filters.sum(1) > 0).mean() > (0.99 if bands < 128 else 0.9)


@pytest.mark.parametrize(
    "content, fact",
    [
        (wav(tone(300))[:-100], "3950 samples"),
        (wav(tone(300))[:20], ""),
        (b"hello", ""),
        (wav(tone(300), rate=16000), "(1, 2, 16000)"),
        (wav(tone(300), channels=2), "(2, 2, 8000)"),
        (wav(np.zeros(0)), "0 samples"),
    ],
    ids=["truncated", "header", "text", "rate", "stereo", "empty"],
)
def test_damaged_recordings_are_refused(tmp_path, own_cache, refused, content, fact):
    folder = tmp_path / "recordings"
    folder.mkdir()
    (folder / "3_theo_0.wav").write_bytes(content)
    refused("3_theo_0.wav", "fsdd", path=folder)
    refused(fact, "fsdd", path=folder)


def test_missing_recordings_are_refused(tmp_path, own_cache, refused):
    sounds = fsdd_sounds(2)
    sounds.pop((7, "theo", 1))
    write_fsdd(tmp_path, sounds)
    refused("7 rows", "fsdd", path=tmp_path)
    write_fsdd(tmp_path, {})
    refused("7_jackson_32.wav", "fsdd", path=tmp_path)


def test_invalid_sizes_are_refused(own_cache):
    with raises("size", value=48):
        load_data("fsdd", size=48)
