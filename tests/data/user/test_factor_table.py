"""Columns are converted to factors, and rows are matched to files, in all variants that spreadsheets write."""

import sys

import numpy as np
import pandas as pd
import pytest
from raises import raises

from unweave.data.user.factor_table import factor_table
from unweave.data.user.row_matching import match_files
from unweave.data.user.table_file import read_table


def write_text(tmp_path, text, name="t.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


def test_types_classes_numbers_and_missing_values():
    columns = {
        "shape": ["disc", None, " square", "disc"],
        "count": ["3", "10", "", "3"],
        "angle": ["0.5", "nan", "-1.25", "0.5"],
    }
    table, left_out = factor_table(columns)
    assert table.names == ("shape", "count", "angle") and not left_out
    assert table.factor_types == ("discrete", "discrete", "continuous")
    assert table.values == (("disc", "square"), (3.0, 10.0), (-1.25, 0.5))
    assert table.classes_NK.tolist() == [[0, 0, 1], [-1, 1, -1], [1, -1, 0], [0, 0, 1]]
    assert np.array_equal(table.numbers_NK[:, 2], [0.5, np.nan, -1.25, 0.5], equal_nan=True)
    assert np.array_equal(table.numbers_NK[:, 0], [0, np.nan, 1, 0], equal_nan=True)
    assert (table.classes_NK < 0).sum(0).tolist() == [1, 1, 1]


def test_a_continuous_factor_of_many_values_is_binned_evenly():
    values = np.concatenate([np.random.default_rng(0).normal(size=999), [1e9]])
    table, _ = factor_table({"x": values})
    counts = np.bincount(table.classes_NK[:, 0])
    assert len(counts) == 20 and counts.min() >= 49 and counts.max() <= 51
    assert list(table.values[0]) == sorted(table.values[0])
    assert np.array_equal(table.numbers_NK[:, 0], values)
    few, _ = factor_table({"x": np.linspace(0, 1, 40).repeat(3)})
    assert few.factor_types == ("continuous",) and len(few.values[0]) == 40


def test_columns_that_are_not_factors_are_left_out_with_the_reason():
    count = 30
    columns = {
        "empty": [None] * count,
        "same": [7] * count,
        "words": [f"text {i}" for i in range(count)],
        "number": list(range(count)),
    }
    table, left_out = factor_table(columns)
    assert table.names == ("number",)
    assert left_out == {"empty": "no values", "same": "always 7", "words": "a different text in every row"}
    assert factor_table(columns, keep=True)[0].names == tuple(columns)
    assert factor_table(columns, {"words": "discrete"})[0].names == ("words", "number")


def test_types_can_be_given():
    table, _ = factor_table({"a": [1, 2, 3], "b": [0.5, 1.5, 0.5]}, {"a": "continuous", "b": "discrete"})
    assert table.factor_types == ("continuous", "discrete")
    assert table.numbers_NK.tolist() == [[1, 0], [2, 1], [3, 0]]
    with raises("factor", value="c", accepted=["a"]):
        factor_table({"a": [1, 2]}, {"c": "discrete"})
    with raises("factor_types", value="ordinal", accepted=["discrete", "continuous"]):
        factor_table({"a": [1, 2]}, {"a": "ordinal"})
    with raises("factor_types"):
        factor_table({"a": ["x", "y"]}, {"a": "continuous"})


def test_pandas_types():
    columns = {
        "flag": pd.Series([True, False, None], dtype="boolean"),
        "whole": pd.Series([1, None, 2], dtype="Int64"),
        "group": pd.Categorical(["x", "y", "x"]),
        "endless": [np.inf, 0.25, 0.5],
    }
    table, _ = factor_table(columns)
    assert table.factor_types == ("discrete", "discrete", "discrete", "continuous")
    assert (table.classes_NK < 0).sum(0).tolist() == [1, 1, 0, 1]


def test_the_digest_changes_with_the_factors():
    one = factor_table({"a": [1, 2, 1]})[0]
    assert one.digest() == factor_table({"a": ["1", "2", "1"]})[0].digest()
    assert one.digest() != factor_table({"a": [1, 2, 2]})[0].digest() != factor_table({"b": [1, 2, 2]})[0].digest()


@pytest.mark.parametrize(
    "text, encoding",
    [
        ("file,x,y\na.png,0.5,grün\nb.png,1.5,rot\n", "utf-8"),
        ("\ufefffile;x;y\r\na.png;0,5;grün\r\nb.png;1,5;rot\r\n", "utf-8"),
        ("file\tx\ty\na.png\t0.5\tgrün\nb.png\t1.5\trot\n", "latin-1"),
        ('"file", "x", "y"\n"a.png", 0.5, "grün"\n"b.png", 1.5, "rot"\n', "utf-8"),
    ],
)
def test_separators_quotes_and_encodings(tmp_path, text, encoding):
    frame = read_table(write_text(tmp_path, text, encoding=encoding))
    assert list(frame.columns) == ["file", "x", "y"]
    table, _ = factor_table({n: frame[n] for n in ("x", "y")})
    assert table.factor_types == ("continuous", "discrete") and table.values[1] == ("grün", "rot")


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = write_text(tmp_path, "x", "t.parquet")
    with raises("factors", value=str(path), accepted="a .csv file"):
        read_table(path)


def test_parquet(tmp_path):
    frame = pd.DataFrame({"file": ["a.png", "b.png"], "x": [0.5, None], "n": [1, 2]})
    frame.to_parquet(tmp_path / "t.parquet")
    again = read_table(tmp_path / "t.parquet")
    assert match_files(again, ["b.png", "a.png"], "t").frame["n"].tolist() == [2, 1]


@pytest.mark.parametrize(
    "name, text, argument",
    [
        ("t.csv", "", "factors"),
        ("t.csv", "file,x\n", "factors"),
        ("t.csv", "file,x ,x\na,1,2\n", "columns"),
        ("t.csv", 'file,x\n"a,1\n', "factors"),
        ("t.xlsx", "file,x", "factors"),
        (".", "", "factors"),
    ],
)
def test_invalid_tables_are_refused(tmp_path, name, text, argument):
    with raises(argument):
        read_table(tmp_path if name == "." else write_text(tmp_path, text, name))
    with raises("factors", value=str(tmp_path / "other.csv")):
        read_table(tmp_path / "other.csv")


FILES = ["a/1.png", "a/2.JPG", "b/1.png", "b/007.png"]


@pytest.mark.parametrize(
    "entries",
    [
        ["a/1.png", "a/2.JPG", "b/1.png", "b/007.png"],
        ["./a/1.png", "a\\2.JPG", "/home/me/pics/b/1.png", "pics/b/007.png"],
        ["a/1", "2", "b/1", "007"],
        ["A/1.PNG", "2.jpg", "b/1.png", " 007.png "],
    ],
)
def test_rows_are_matched_to_files(entries):
    frame = pd.DataFrame({"n": [1, 2, 3, 4], "photo": entries})
    matched = match_files(frame, FILES, "t.csv")
    assert matched.column == "photo"
    assert matched.frame["n"].tolist() == [1, 2, 3, 4]
    assert not matched.files_without_row and not any(matched.unused_rows.values()) and not matched.duplicates.files


def test_files_and_rows_without_a_match():
    frame = pd.DataFrame(
        {"file": ["2.jpg", "1.png", "nine.png", "bad.png", None, "a/2.JPG", "c/007"], "n": list("abcdefg")}
    )
    matched = match_files(frame, FILES, "t.csv", unreadable=["x/bad.png"])
    assert matched.files_without_row == ["a/1.png", "b/1.png", "b/007.png"]
    unknown, ambiguous, elsewhere = matched.unused_rows.values()
    assert unknown == ["nine.png", "(row 6 is blank)"] and ambiguous == ["1.png"] and elsewhere == ["c/007"]
    assert matched.less_exact_rows == ["2.jpg"]  # a/2.JPG has a row with its path
    assert matched.frame["n"].isna().tolist() == [True, False, True, True] and matched.frame["n"][1] == "f"


def test_the_column_with_most_file_names_is_used():
    frame = pd.DataFrame({"n": ["1", "2", "1", "7"], "path": FILES, "copy": FILES})
    assert match_files(frame, FILES, "t.csv").column == "path"


def test_a_number_is_not_a_file_name():
    frame = pd.DataFrame({"stars": ["7", "1"], "file": ["a/2.JPG", "nothing"]})
    assert match_files(frame, ["a/2.JPG", "1.png", "7.png"], "t.csv").column == "file"
    with raises("factors", value="t.csv"):
        match_files(frame[["stars"]], ["1.png", "7.png"], "t.csv")
    assert match_files(pd.DataFrame({"id": ["7", "1"]}), ["1.png", "7.png"], "t.csv").files_without_row == []


def test_a_table_of_other_files_is_refused():
    frame = pd.DataFrame({"n": ["x", "y"], "file": ["img_1.png", "img_2.png"]})
    with raises("factors", value="t.csv"):
        match_files(frame, FILES, "t.csv")
