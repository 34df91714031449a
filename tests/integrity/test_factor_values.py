"""Values of factors keep their meaning: texts, numbers, integers of 64 bits, times, missing values."""

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset as TorchDataset

import unweave as uw
from unweave.data import Sampler, load_data

COUNT = 6
PIXELS = np.random.default_rng(0).integers(0, 255, (300, 16, 16)).astype(np.uint8)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))


def from_table(tmp_path, file="t.csv", separator=",", **columns):
    """Data whose factors are the columns of a file, one row per image."""
    path, rows = tmp_path / file, list(zip(*columns.values(), strict=True))
    if file.endswith(".parquet"):
        pd.DataFrame(columns).to_parquet(path)
    else:
        lines = [separator.join(columns), *(separator.join(map(str, row)) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
    np.save(tmp_path / "images.npy", PIXELS[: len(rows)])
    return load_data(tmp_path / "images.npy", factors=path)


def classes(data, name):
    """The value of each observation's class; None if missing."""
    k = data.factor_names.index(name)
    return [None if c < 0 else data.factor_values[k][c] for c in data.factors(torch.arange(data.size))[:, k].tolist()]


def test_none_and_na_are_classes_of_texts(tmp_path):
    """Glasses may be 'None' and a country 'NA'; only empty cells and nan are missing in columns of texts (A9)."""
    glasses, country = ["None", "reading", "sun", "None", "", "sun"], ["NA", "DE", "NA", "nan", "DE", "null"]
    data = from_table(tmp_path, glasses=glasses, country=country)
    assert classes(data, "glasses") == ["None", "reading", "sun", "None", None, "sun"]
    assert classes(data, "country") == ["NA", "DE", "NA", None, "DE", "null"]


@pytest.mark.parametrize("marker", ["NA", "N/A", "None", "null", "nan", "NaN", "", "#N/A"])
def test_the_same_words_are_missing_among_numbers(tmp_path, marker):
    """A column of which everything else is a number stays numeric, and the entry is missing (A9)."""
    data = from_table(tmp_path, x=["0.5", marker, "1.25", "0.10", marker, "2"], other=list("abcabc"))
    values = data.values(torch.arange(COUNT))[:, 0]
    assert values.isnan().tolist() == [False, True, False, False, True, False]
    assert values[~values.isnan()].tolist() == pytest.approx([0.5, 1.25, 0.1, 2.0], abs=1e-6)


def test_texts_that_are_the_same_number_stay_different(tmp_path):
    """Versions 1.1 and 1.10 are two classes, and so are 01, 1 and 1e0 (A9)."""
    version, name = ["1.1", "1.10", "1.2", "1.1", "1.10", "1.2"], ["01", "1", "1e0", "2", "01", "1"]
    data = from_table(tmp_path, version=version, name=name)
    assert classes(data, "version") == version and classes(data, "name") == name


def test_sub_folders_of_similar_names_stay_different(tmp_path):
    """Sub-folders 1, 01, 1e0 and 2 are four classes; nan and None are names like others (A9)."""
    names = ["1", "01", "1e0", "2", "nan", "None", "NA"]
    for number, name in enumerate(names * 2):
        path = tmp_path / "pics" / name / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (16, 16), number * 9).save(path)
    data = load_data(tmp_path / "pics", size=16)
    assert set(data.factor_values[0]) == set(names)
    assert classes(data, "folder") == [file.split("/")[0] for file in data.source_info.file_names]


def test_measured_values_with_fixed_decimals_stay_numbers(tmp_path):
    """0.10 and 0.25 are numbers; so are texts with exponents, signs and decimal commas (A9)."""
    columns = {"fixed": ["0.10", "0.25", "-0.00", "0.00", "12.50", "3.00"], "sci": [f"{2.5 + k:.3e}" for k in range(6)]}
    data = from_table(tmp_path, **columns, sign=["+1.5", "-2.5", "+0.5", "+1.5", "-2.5", "+3.5"])
    assert classes(data, "fixed") == [0.1, 0.25, 0.0, 0.0, 12.5, 3.0]
    assert classes(data, "sci") == [2.5 + k for k in range(6)]
    assert classes(data, "sign") == [1.5, -2.5, 0.5, 1.5, -2.5, 3.5]
    comma = from_table(tmp_path, "c.csv", ";", x=["0,10", "0,25", "NA", "-1,50", "2", "0,10"], y=list("abcabc"))
    assert classes(comma, "x") == [0.1, 0.25, None, -1.5, 2.0, 0.1]


IDS = [10**17 + k for k in (1, 2, 3, 1, 2, 3)]


@pytest.mark.parametrize("source", ["csv", "parquet", "parquet with gaps", "array", "list", "items", "uint64"])
def test_integers_of_64_bits_stay_different(tmp_path, source):
    """Ids of 18 digits are different classes from every source of factors (A9)."""
    ids = [2**64 - 1 - k for k in (0, 1, 2, 0, 1, 2)] if source == "uint64" else IDS
    if source == "csv":
        data = from_table(tmp_path, id=ids, x=range(COUNT))
    elif source.startswith("parquet"):
        gap = pd.array([*ids[:-1], None], dtype="Int64")
        column = pd.Series(ids) if source == "parquet" else gap
        data = from_table(tmp_path, "t.parquet", id=column, x=range(COUNT))
    elif source in ("array", "uint64"):
        table = np.array(ids, np.uint64 if source == "uint64" else np.int64)
        data = load_data(PIXELS[:COUNT], factors=table, names=["id"])
    elif source == "list":
        data = load_data(PIXELS[:COUNT], factors=[[number, k + 0.5] for k, number in enumerate(ids)], names=["id", "x"])
    else:
        data = load_data(Items([(PIXELS[k], ids[k]) for k in range(COUNT)]))
    expected = [*ids[:-1], None] if source == "parquet with gaps" else ids
    assert classes(data, data.factor_names[0]) == expected


class Items(TorchDataset):
    def __init__(self, rows, **attributes):
        self.rows = rows
        vars(self).update(attributes)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


def test_class_names_of_other_libraries(tmp_path):
    """Class names None, NA and 01 are classes; two classes of one name stay two (A9)."""
    names = ["None", "NA", "01", "1", "crane", "crane"]
    data = load_data(Items([(PIXELS[k], k % 6) for k in range(12)], classes=names))
    assert data.factor_sizes == (6,) and {"None", "NA", "01", "1"} < set(data.factor_values[0])


def seconds(start):
    times = start + np.random.default_rng(1).random(300) * 60
    return load_data(PIXELS, factors=np.column_stack([times, np.arange(300) % 3]), names=["time", "kind"])


def test_times_in_seconds_keep_their_resolution(tmp_path):
    """Times of one minute in seconds since 1970 have as many values as rows, and the same scores as from 0 (A9)."""
    late, early = seconds(1.7e9), seconds(0.0)
    assert len(late.values(torch.arange(300))[:, 0].unique()) == 300
    run = uw.train("beta_vae", late, net="small", steps=2, batch=8, latents=2, device="cpu", out=tmp_path / "run")
    metrics = ["mig", "dci", "sap", "infomec", "irs", "modularity"]
    of_late, of_early = (uw.evaluate(run, data, metrics=metrics, save=False).scores for data in (late, early))
    assert of_late.keys() == of_early.keys()
    assert all(of_late[name] == pytest.approx(of_early[name], abs=1e-4) for name in of_late), (of_late, of_early)


def test_the_order_of_times_is_exact():
    """Rank supervision orders times that differ by less than a float32 can tell (A9)."""
    late = seconds(1.7e9)
    plan = Sampler(late, ("x", "order"), "rank(factor='time')").plan(torch.tensor(3), 500)
    times, other = late.table.numbers_NK[:, 0], plan.get("x_other", plan.get("second"))
    assert plan["order"].tolist() == np.sign(times[plan["x"]] - times[other]).astype(int).tolist()


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_dates_are_texts(tmp_path, name):
    """A date is a class in text files and in Parquet, and a missing date is missing (A9)."""
    dates = ["2024-01-01", "2024-01-02", "", "2024-01-01", "2024-01-02", "2024-03-01"]
    column = dates if name == "t.csv" else pd.to_datetime(pd.Series(dates).replace("", None))
    data = from_table(tmp_path, name, day=column, x=range(COUNT))
    found = classes(data, "day")
    assert found[2] is None
    assert [str(text)[:10] for text in found if text is not None] == [day for day in dates if day]


def test_what_is_not_read_as_written_is_named(tmp_path):
    """Columns and entries that are left out or kept as texts for a reason are reported with it (A9)."""
    version, size = ["1.1", "1.10", "1.2"] * 10, ["0.5", "NA", "1.5"] * 10
    path = tmp_path / "t.csv"
    rows = [f"{version[k]},{size[k]},{'None' if k % 2 else 'sun'},note {k}" for k in range(30)]
    path.write_text("version,size,glasses,remark\n" + "\n".join(rows) + "\n")
    np.save(tmp_path / "images.npy", PIXELS[:30])
    data = load_data(tmp_path / "images.npy", factors=path)
    with pytest.warns(UserWarning) as caught:
        uw.train("vae", data, net="small", steps=1, batch=4, latents=2, device="cpu", out=tmp_path / "run")
    said = [str(warning.message) for warning in caught]
    assert any("'version'" in line and "'1.1' and '1.10' are the same number" in line for line in said), said
    assert any("'size'" in line and "10 entries 'NA'" in line for line in said), said
    assert any("'glasses'" in line and "15 entries 'None'" in line for line in said), said
    assert "remark" in data.source_info.excluded_columns
    numbers = load_data(tmp_path / "images.npy", factors=path, factor_types={"version": "continuous"})
    assert numbers.factor_values[0] == (1.1, 1.2)


def test_labels_that_are_no_values_are_named():
    """Boxes and masks of items are not factors, and are listed as left out (A9)."""
    rows = [{"image": PIXELS[k], "label": k % 2, "box": [[1, 2, 3, 4]]} for k in range(COUNT)]
    assert set(load_data(Items(rows)).source_info.excluded_columns) == {"box"}


def test_complex_factors_are_refused():
    """Complex numbers are an error, not real numbers (A9)."""
    with pytest.raises(uw.UserError, match="complex"):
        load_data(PIXELS[:4], factors=np.arange(4)[:, None] * 1j)


@pytest.mark.parametrize("text", ["x,x\n1,2\n", "a,b\n1,2,3\n4,5,6\n"])
def test_tables_that_would_be_read_shifted_are_refused(tmp_path, text):
    """A column that is there twice, or rows with more entries than the header, are an error (A9)."""
    (tmp_path / "t.csv").write_text(text)
    np.save(tmp_path / "images.npy", PIXELS[: text.count("\n") - 1])
    with pytest.raises(uw.UserError):
        load_data(tmp_path / "images.npy", factors=tmp_path / "t.csv")


FINGERPRINTS = {"folder": "4-0c74a7b6c87c-7d2bae87", "arrays": "4-1610ec7b0b86-6e36f96f"}  # written by commit d4802f3


@pytest.mark.parametrize("kind", FINGERPRINTS)
def test_a_run_keeps_the_factors_it_was_trained_with(tmp_path, kind):
    """The data of a run from before these rules have the factors of the run, and one line says so (A9)."""
    if kind == "folder":
        for number, name in enumerate(["00", "00", "01", "01"]):
            path = tmp_path / "pics" / name / f"{number}.ppm"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"P6 16 16 255\n" + bytes([number * 9]) * 768)
        options, earlier = {"path": tmp_path / "pics", "size": 16}, ((0.0, 1.0),)
    else:
        pixels = np.arange(4, dtype=np.uint8)[:, None, None] * np.ones((16, 16), np.uint8) * 9
        np.save(tmp_path / "images.npy", pixels)
        (tmp_path / "t.csv").write_text("version,kind\n1.1,cat\n1.10,None\n1.2,dog\n1.2,cat\n")
        options = {"path": tmp_path / "images.npy", "factors": tmp_path / "t.csv"}
        earlier = ((1.1, 1.2), ("cat", "dog"))
    with pytest.warns(UserWarning, match="earlier version"):
        assert load_data(kind, **options, fingerprint=FINGERPRINTS[kind]).factor_values == earlier
    assert load_data(kind, **options).factor_values != earlier


@pytest.mark.parametrize("source", ["table", "array"])
def test_factors_of_very_many_columns_are_refused(tmp_path, source):
    """More than 10,000 columns are one error before any of them is examined (B-H11)."""
    columns = [f"c{k}" for k in range(10_001)]
    with pytest.raises(uw.UserError, match=r"10,001 columns"):
        if source == "table":
            from_table(tmp_path, **{name: [0, 1] for name in columns})
        else:
            load_data(PIXELS[:2], factors=np.zeros((2, 10_001)), names=columns)
