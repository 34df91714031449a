"""Ranges of numbers as people say them: where the classes of a continuous factor begin and end."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

Span = tuple[float, float]
_BEYOND = 0.1  # of its width: so far an outer class may reach beyond its numbers to end at a round one


def class_spans(numbers: np.ndarray, classes: np.ndarray) -> tuple[Span, ...]:
    """From where to where each class of numbers goes, the next one beginning where it ends, at the roundest number."""
    count = int(classes.max()) + 1
    low = [float(numbers[classes == c].min()) for c in range(count)]
    high = [float(numbers[classes == c].max()) for c in range(count)]
    inner = [_roundest(before, after) for before, after in zip(high, low[1:])]
    margin = _BEYOND * (high[-1] - low[0]) / count
    ends = [_roundest(low[0] - margin, low[0]), *inner, -_roundest(-high[-1] - margin, -high[-1])]
    return tuple((begin + 0.0, end + 0.0) for begin, end in pairwise(ends))  # no zero with a minus


def _roundest(low: float, high: float) -> float:
    """The number of fewest digits above `low` and up to `high`."""
    if low < 0 <= high:
        return 0.0
    first = -math.floor(math.log10(max(abs(low), abs(high)))) - 1 if low != high else 0
    for digits in range(first, first + 18):
        found = round(math.floor(high * 10.0**digits) / 10.0**digits, max(digits, 0))
        if low < found <= high:
            return found
    return high


def span_text(span: Span) -> str:
    """(0.25, 0.3) as 0.25 to 0.30."""
    texts = [f"{end:.12g}" for end in span]
    if not any("e" in text for text in texts):
        digits = max(len(text.partition(".")[2]) for text in texts)
        texts = [f"{end:.{digits}f}" for end in span]
    return " to ".join(texts)


def class_of(spans: tuple[Span, ...], numbers_N: np.ndarray) -> np.ndarray:
    """The class each number falls into, -1 where it falls into none."""
    found_N = np.searchsorted([low for low, _ in spans], numbers_N, side="right") - 1
    inside_N = (numbers_N >= spans[0][0]) & (numbers_N <= spans[-1][1])  # of what is not known, nan, neither is true
    return np.where(inside_N, found_N, -1)
