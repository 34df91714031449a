"""Ranges of the classes of a binned factor, with round numbers as limits."""

import math
from itertools import pairwise

import numpy as np

Span = tuple[float, float]
_MARGIN = 0.1  # of the mean width of a class: how far the outer limits may be from the data to be round


def class_spans(numbers: np.ndarray, classes: np.ndarray) -> tuple[Span, ...]:
    """Return the range of each class; each begins where the one before ends, at the roundest number between them."""
    count = int(classes.max()) + 1
    low = [float(numbers[classes == c].min()) for c in range(count)]
    high = [float(numbers[classes == c].max()) for c in range(count)]
    inner = [_roundest(before, after) for before, after in zip(high, low[1:])]
    margin = _MARGIN * (high[-1] - low[0]) / count
    limits = [_roundest(low[0] - margin, low[0]), *inner, -_roundest(-high[-1] - margin, -high[-1])]
    return tuple((begin + 0.0, end + 0.0) for begin, end in pairwise(limits))  # + 0.0 removes the sign of -0.0


def _roundest(low: float, high: float) -> float:
    """Return the number with the fewest digits in (low, high]."""
    if low < 0 <= high:
        return 0.0
    first = -math.floor(math.log10(max(abs(low), abs(high)))) - 1 if low != high else 0
    for digits in range(first, first + 18):
        number = round(math.floor(high * 10.0**digits) / 10.0**digits, max(digits, 0))
        if low < number <= high:
            return number
    return high


def span_text(span: Span) -> str:
    """Format (0.25, 0.3) as "0.25 to 0.30"."""
    texts = [f"{limit:.12g}" for limit in span]
    if not any("e" in text for text in texts):
        digits = max(len(text.partition(".")[2]) for text in texts)
        texts = [f"{limit:.{digits}f}" for limit in span]
    return " to ".join(texts)


def class_of(spans: tuple[Span, ...], numbers_N: np.ndarray) -> np.ndarray:
    """Return the class of each number, -1 outside all ranges and for nan."""
    class_N = np.searchsorted([low for low, _ in spans], numbers_N, side="right") - 1
    inside_N = (numbers_N >= spans[0][0]) & (numbers_N <= spans[-1][1])  # False for nan
    return np.where(inside_N, class_N, -1)
