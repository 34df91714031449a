"""Arrays from a file, and errors for invalid files."""

import numpy as np
import pytest
from raises import raises

from unweave.metrics.npz import read_npz

CODES, FACTORS = np.zeros((4, 2)), np.arange(4)[:, None]


def test_all_arrays(tmp_path):
    np.savez(
        tmp_path / "a.npz", codes=CODES, factors=FACTORS, names=np.array(["hue"]), test_codes=CODES,
        test_factors=FACTORS, logvar=CODES, more=np.zeros(3),
    )  # fmt: skip
    found = read_npz(tmp_path / "a.npz")
    assert found.names == ("hue",) and found.test is not None and found.logvar is not None
    np.savez(tmp_path / "b.npz", codes=CODES, factors=FACTORS, names=np.array([b"hue"]))
    assert read_npz(str(tmp_path / "b.npz")).names == ("hue",) and read_npz(tmp_path / "b.npz").test is None


@pytest.mark.parametrize(
    "arrays",
    [
        {"codes": CODES},
        {"z": CODES},
        {"codes": CODES, "factors": FACTORS, "test_codes": CODES},
        {"codes": CODES, "factors": FACTORS, "names": np.array(["a", "b"])},
        {"codes": CODES, "factors": FACTORS, "names": np.array([1])},
        {"codes": np.array([object()]), "factors": FACTORS},
    ],
)
def test_invalid_arrays(arrays, tmp_path):
    np.savez(tmp_path / "a.npz", **arrays)
    with raises("file", value=str(tmp_path / "a.npz")):
        read_npz(tmp_path / "a.npz")


def test_missing_and_damaged_files(tmp_path):
    np.savez(tmp_path / "whole.npz", codes=CODES, factors=FACTORS)
    whole = (tmp_path / "whole.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.npz").write_bytes(b"rubbish")
    np.save(tmp_path / "array.npy", CODES)
    for name in ("missing.npz", "half.npz", "text.npz", "array.npy"):
        with raises("file", value=str(tmp_path / name)):
            read_npz(tmp_path / name)
