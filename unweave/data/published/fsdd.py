"""The Free Spoken Digit Dataset (Jackson et al. 2016) as images: log-mel spectrograms of the recordings.

Shape letters: M mel bands, T frames in time, F frequencies of the Fourier transform, S samples of a window.
"""

import io
import re
import wave
from functools import cache
from pathlib import Path

import numpy as np

from unweave.data.dataset import Dataset
from unweave.data.storage.archive import FileTree
from unweave.data.storage.array_store import Factors, grid_values, in_chunks, write_rows
from unweave.data.storage.download import RemoteFile
from unweave.data.storage.source import DataPath, open_files
from unweave.errors import invalid

REMOTE = RemoteFile(
    "free-spoken-digit-dataset-master.zip",
    ("https://github.com/Jakobovski/free-spoken-digit-dataset/archive/refs/heads/master.zip",),
)
NAMES = ("digit", "speaker", "take")
SIZES = (32, 64, 128)
RATE = 8000  # samples per second
SPAN = 8192  # samples per image: 1.024 seconds, longer than all but 17 of the recordings
_WINDOW = 256  # samples, 32 ms
_POINTS = 512  # of the Fourier transform; windows are padded with zeros so that no mel band is empty
_RANGE = 80.0  # decibels below the loudest point of the recording that are shown
_LOWEST = 50.0  # Hz
_NAME = re.compile(r"(\d)_(\w+)_(\d+)\.wav$")


def fsdd(*, path: DataPath = None, size: int = 64) -> Dataset:
    """Free Spoken Digits: 3000 recordings of digits by 6 speakers, as log-mel spectrograms of 64 x 64.

    `size` is the number of mel bands and of time frames: 32, 64 or 128. `path` is the .zip of the repository, its
    folder, or the folder `recordings` in it.
    """
    if size not in SIZES or isinstance(size, bool):
        raise invalid("size", size, "32, 64 or 128")
    return open_files("fsdd", [REMOTE], path, {"size": size}, _read, tree=True)


def _read(files: list[Path], folder: Path, size: int) -> Factors:
    with FileTree(files[0]) as tree:
        found = {match.groups(): name for name in tree.names if (match := _NAME.search(name))}
        if not found:
            raise ValueError("there are no recordings named like 7_jackson_32.wav")
        speakers = sorted({speaker for _, speaker, _ in found})
        rows = {(int(d), speakers.index(s), int(take)): name for (d, s, take), name in found.items()}
        digits, _, takes = grid_values(np.array(sorted(rows)))
        sounds = (read_sound(tree.read(rows[row]), rows[row]) for row in sorted(rows))
        images = in_chunks(spectrogram(sound, size) for sound in sounds)
        write_rows(folder / "pixels.npy", len(rows), images, "fsdd")
    return Factors(NAMES, (digits, tuple(speakers), takes))


def read_sound(content: bytes, name: str) -> np.ndarray:
    """Return the samples of a recording, int16."""
    try:
        with wave.open(io.BytesIO(content)) as file:
            form = (file.getnchannels(), file.getsampwidth(), file.getframerate())
            sound = np.frombuffer(file.readframes(file.getnframes()), "<i2") if form == (1, 2, RATE) else None
            expected = file.getnframes()
    except (wave.Error, EOFError, ValueError) as error:
        raise ValueError(f"recording {name} cannot be read ({error})") from error
    if sound is None:
        raise ValueError(f"recording {name} has {form} channels, bytes and samples per second, not (1, 2, {RATE})")
    if len(sound) != expected or not expected:
        raise ValueError(f"recording {name} has {len(sound)} samples instead of the {expected} in its header")
    return sound


@cache
def mel_filters(bands: int) -> np.ndarray:
    """Return triangular filters [M, F] with corners evenly spaced on the mel scale, 2595 log10(1 + f / 700)."""
    lowest, highest = (2595.0 * np.log10(1.0 + hertz / 700.0) for hertz in (_LOWEST, RATE / 2.0))
    corner = 700.0 * (10.0 ** (np.linspace(lowest, highest, bands + 2) / 2595.0) - 1.0)
    frequency_F = np.arange(_POINTS // 2 + 1) * (RATE / _POINTS)
    low, middle, high = corner[:-2, None], corner[1:-1, None], corner[2:, None]
    rising, falling = (frequency_F - low) / (middle - low), (high - frequency_F) / (high - middle)
    return np.maximum(0.0, np.minimum(rising, falling))


def spectrogram(sound: np.ndarray, size: int) -> np.ndarray:
    """Return the loudness [M, T] in bytes: 255 is the loudest point of the recording, 0 is 80 dB below it or silence.

    Time increases to the right from the start of the recording, frequency upwards; longer recordings are cut.
    """
    hop = SPAN // size
    padded = np.zeros(SPAN + _WINDOW)
    padded[_WINDOW // 2 :][: min(len(sound), SPAN)] = sound[:SPAN] / 32768.0
    frames_TS = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[:SPAN:hop]
    power_TF = np.abs(np.fft.rfft(frames_TS * np.hanning(_WINDOW), _POINTS)) ** 2
    mel_MT = mel_filters(size) @ power_TF.T
    decibels = 10.0 * np.log10(np.maximum(mel_MT, 1e-12))
    shown = np.clip(1.0 + (decibels - decibels.max()) / _RANGE, 0.0, 1.0)
    return np.round(255.0 * shown[::-1]).astype(np.uint8)
