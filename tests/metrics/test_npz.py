"""Arrays from a file: what may be in it, and one clear line for what may not."""

import numpy as np
import pytest

from unweave.errors import UserError
from unweave.metrics.npz import read_npz

CODES, FACTORS = np.zeros((4, 2)), np.arange(4)[:, None]


def test_everything_that_may_be_there(tmp_path):
    np.savez(
        tmp_path / "a.npz", codes=CODES, factors=FACTORS, names=np.array(["hue"]), test_codes=CODES,
        test_factors=FACTORS, logvar=CODES, more=np.zeros(3),
    )  # fmt: skip
    found = read_npz(tmp_path / "a.npz")
    assert found.names == ("hue",) and found.test is not None and found.logvar is not None
    np.savez(tmp_path / "b.npz", codes=CODES, factors=FACTORS, names=np.array([b"hue"]))
    assert read_npz(str(tmp_path / "b.npz")).names == ("hue",) and read_npz(tmp_path / "b.npz").test is None


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"codes": CODES}, "has no array 'factors' \\(there is codes\\)"),
        ({"z": CODES}, "has no array 'codes' \\(there is nothing\\)"),
        ({"codes": CODES, "factors": FACTORS, "test_codes": CODES}, "only one of test_codes and test_factors"),
        ({"codes": CODES, "factors": FACTORS, "names": np.array(["a", "b"])}, "names has 2 entries but factors 1"),
        ({"codes": CODES, "factors": FACTORS, "names": np.array([1])}, "accepted is a list of texts"),
        ({"codes": np.array([object()]), "factors": FACTORS}, "Python objects"),
    ],
)
def test_what_is_wrong_is_named(arrays, message, tmp_path):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(UserError, match=message):
        read_npz(tmp_path / "a.npz")


def test_no_file_no_npz_and_half_a_file(tmp_path):
    with pytest.raises(UserError, match="is not there; give an .npz"):
        read_npz(tmp_path / "a.npz")
    (tmp_path / "b.npz").write_bytes(b"rubbish")
    with pytest.raises(UserError, match="cannot be read as an .npz"):
        read_npz(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", codes=CODES, factors=FACTORS)
    whole = (tmp_path / "c.npz").read_bytes()
    (tmp_path / "c.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="cannot be read as an .npz"):
        read_npz(tmp_path / "c.npz")
    np.save(tmp_path / "d.npy", CODES)
    with pytest.raises(UserError, match="it is no .npz; save codes and factors with numpy.savez"):
        read_npz(tmp_path / "d.npy")
