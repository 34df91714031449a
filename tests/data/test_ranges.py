import numpy as np
import pytest

from unweave.data.ranges import class_of, class_spans, span_text
from unweave.data.user.factor_table import factor_table


@pytest.mark.parametrize(
    "numbers",
    [
        np.random.default_rng(0).random(100),
        np.random.default_rng(1).normal(size=3000) * 1e-4,
        np.random.default_rng(2).normal(size=300) - 7e5,
        np.r_[np.zeros(50), np.random.default_rng(3).exponential(size=200)],
        np.linspace(-1, 1, 101),
    ],
)
def test_numbers_are_in_the_range_of_their_class(numbers):
    (spans,) = (table := factor_table({"kind": numbers}, {"kind": "continuous"})[0]).spans
    assert len(spans) == len(table.values[0]) > 10
    assert [high for _, high in spans[:-1]] == [low for low, _ in spans[1:]]
    assert all(low < high for low, high in spans)
    assert (class_of(spans, numbers) == table.classes_NK[:, 0]).all()
    assert len({span_text(span) for span in spans}) == len(spans)


def test_limits_are_round():
    numbers = np.array([0.013, 0.11, 0.2481, 0.2533, 0.2944, 0.301, 0.44])
    spans = class_spans(numbers, np.array([0, 0, 0, 1, 1, 2, 2]))
    assert spans == ((0.0, 0.25), (0.25, 0.3), (0.3, 0.44))
    assert [span_text(span) for span in spans] == ["0.00 to 0.25", "0.25 to 0.30", "0.30 to 0.44"]
    assert class_of(spans, np.array([0.25, 0.3, 0.44, -0.009, 0.46, np.nan])).tolist() == [1, 2, 2, -1, -1, -1]


@pytest.mark.parametrize(
    "span, text",
    [((-1.0, 0.0), "-1 to 0"), ((100.0, 250.5), "100.0 to 250.5"), ((1e-9, 2e-9), "1e-09 to 2e-09")],
)
def test_span_text(span, text):
    assert span_text(span) == text


def test_only_binned_factors_have_ranges():
    few, many = np.arange(100) % 7 / 4, np.random.default_rng(0).random(100)
    table, _ = factor_table({"few": few, "many": many, "text": np.array(["a", "b"] * 50, dtype=object)})
    assert [len(spans) for spans in table.spans] == [0, 20, 0]
