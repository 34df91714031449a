import io
import wave
import zipfile

import numpy as np
import pytest
import torch

from unweave.data import load_data
from unweave.data.published.fsdd import mel_filters, spectrogram


def wav(sound, channels=1, width=2, rate=8000):
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(sound.astype("<i2").tobytes())
    return buffer.getvalue()


def write(path, sounds):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("free-spoken-digit-dataset-master/README.md", b"# FSDD")
        for (digit, speaker, take), sound in sounds.items():
            name = f"free-spoken-digit-dataset-master/recordings/{digit}_{speaker}_{take}.wav"
            archive.writestr(name, wav(sound))


def tone(hertz, seconds=0.5):
    return 10000 * np.sin(2 * np.pi * hertz * np.arange(int(8000 * seconds)) / 8000)


def sounds(takes=11):
    rows = [(d, s, t) for d in (0, 7) for s in ("theo", "george") for t in range(takes)]
    return {row: tone(200 + 50 * i) for i, row in enumerate(rows)}


def test_read_as_written(tmp_path, own_cache, well_formed):
    made = sounds()
    write(tmp_path / "f.zip", made)
    data = well_formed(load_data("fsdd", path=tmp_path / "f.zip"))
    assert data.grid and data.shape == (1, 64, 64) and data.factor_names == ("digit", "speaker", "take")
    assert data.factor_values == ((0, 7), ("george", "theo"), tuple(range(11)))
    found = data.images(data.index(torch.tensor([[1, 0, 10]])))
    expected = spectrogram(made[7, "george", 10].astype(np.int16), 64)
    assert np.array_equal((found[0, 0] * 255).round().byte(), expected)


def test_folders_and_sizes(tmp_path, own_cache):
    write(tmp_path / "f.zip", sounds(2))
    with zipfile.ZipFile(tmp_path / "f.zip") as archive:
        archive.extractall(tmp_path)
    folder = tmp_path / "free-spoken-digit-dataset-master"
    assert load_data("fsdd", path=folder, size=32).shape == (1, 32, 32)
    assert load_data("fsdd", path=folder / "recordings", size=128).shape == (1, 128, 128)


def test_pitch_goes_up_and_time_to_the_right():
    """A tone lights one row; the row is higher for a higher tone; silence after it is black."""
    rows = []
    for hertz in (300, 600, 1200, 2400):
        image = spectrogram(tone(hertz).astype(np.int16), 64)
        assert image.shape == (64, 64) and image.max() == 255
        rows.append(int(image[:, 15].argmax()))
        assert image[:, 15].max() > 250 and not image[:, 34:].any()
        assert (image[:, 15] > 128).mean() < 0.5
    assert rows == sorted(rows, reverse=True) and rows[0] > 40 and rows[-1] < 20


def test_loudness_does_not_matter_and_long_sounds_are_cut():
    sound = np.random.default_rng(0).normal(0, 3000, 20000)
    loud, soft = spectrogram(sound.astype(np.int16), 64), spectrogram((sound / 4).astype(np.int16), 64)
    assert np.abs(loud.astype(int) - soft).max() <= 2
    assert np.array_equal(loud, spectrogram(sound[:8192].astype(np.int16), 64))
    assert spectrogram(np.zeros(100, np.int16), 64).min() == 255  # nothing is louder than anything else


@pytest.mark.parametrize("bands", [32, 64, 128])
def test_every_band_hears_something(bands):
    filters = mel_filters(bands)
    assert filters.shape == (bands, 257) and filters.max() <= 1
    assert (filters.sum(1) > 0).mean() > (0.99 if bands < 128 else 0.9)


@pytest.mark.parametrize(
    "content, said",
    [
        (wav(tone(300))[:-100], "samples where its header announces"),
        (wav(tone(300))[:20], "cannot be read"),
        (b"hello", "cannot be read"),
        (wav(tone(300), rate=16000), "channels, bytes and samples a second"),
        (wav(tone(300), channels=2), "channels, bytes and samples a second"),
        (wav(np.zeros(0)), "0 samples"),
    ],
)
def test_damaged_recordings_are_refused(tmp_path, own_cache, refused, content, said):
    folder = tmp_path / "recordings"
    folder.mkdir()
    (folder / "3_theo_0.wav").write_bytes(content)
    refused(f"3_theo_0.wav .*{said}|3_theo_0.wav {said}", "fsdd", path=folder)


def test_missing_recordings_are_refused(tmp_path, own_cache, refused):
    made = sounds(2)
    made.pop((7, "theo", 1))
    write(tmp_path / "f.zip", made)
    refused("its 7 rows are not every combination", "fsdd", path=tmp_path / "f.zip")
    write(tmp_path / "f.zip", {})
    refused("no recordings named like", "fsdd", path=tmp_path / "f.zip")


def test_sizes_refused(own_cache):
    with pytest.raises(ValueError, match="size=48 is not accepted; give one of 32, 64, 128"):
        load_data("fsdd", size=48)


def test_the_real_recordings(tmp_path, own_cache, well_formed, reference):
    with np.load(reference("fsdd.npz")) as stored:
        audio, ends, digit, take = stored["audio"], stored["offsets"], stored["digit"], stored["take"]
        speaker = stored["speakers"][stored["speaker"]]
    rows = [(int(d), str(s), int(t)) for d, s, t in zip(digit, speaker, take, strict=True)]
    write(tmp_path / "f.zip", {row: audio[ends[i] : ends[i + 1]] for i, row in enumerate(rows)})
    data = well_formed(load_data("fsdd", path=tmp_path / "f.zip"))
    assert data.size == 3000 and data.factor_sizes == (10, 6, 50)
    assert data.factor_values[1] == ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")
    means = data.pixels.float().mean((1, 2)) / 255
    assert 0.1 < means.mean() < 0.5 and means.min() > 0.02
