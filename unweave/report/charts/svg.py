"""Elements of SVG drawings, and their axes.

Drawings take the width of the page: horizontal positions are percentages, vertical ones pixels, so that text keeps its
size. Colours come from the style sheet.
"""

import math
from collections.abc import Sequence

from markupsafe import Markup


def text(kind: str, x: str, y: float, content: str, anchor: str = "middle") -> Markup:
    return Markup('<text class="{}" x="{}" y="{:.1f}" text-anchor="{}">{}</text>').format(kind, x, y, anchor, content)


def line(kind: str, x: tuple[float, float], y: tuple[float, float], title: str = "") -> Markup:
    """Return a line between two points, x in per cent."""
    element = Markup('<line class="{}" x1="{:.2f}%" x2="{:.2f}%" y1="{:.1f}" y2="{:.1f}"')
    end = Markup("><title>{}</title></line>").format(title) if title else Markup("/>")
    return element.format(kind, *x, *y) + end


def dot(kind: str, x: float, y: float, radius: float, title: str) -> Markup:
    """Return a circle with a tooltip, x in per cent."""
    element = Markup('<circle class="{}" cx="{:.2f}%" cy="{:.1f}" r="{}"><title>{}</title></circle>')
    return element.format(kind, x, y, radius, title)


def axis_limits(values: Sequence[float]) -> tuple[float, float]:
    """Return both ends of an axis with a margin around the values, starting at 0 unless all lie far above it."""
    low, high = min(values), max(values)
    margin = 0.06 * (high - low) or 0.05 * max(abs(high), 0.1)
    return 0.0 if 0.0 <= low < high / 3 else low - margin, high + margin


def ticks(low: float, high: float, logarithmic: bool = False) -> list[float]:
    """Return two to six round values inside the range."""
    if logarithmic:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for mantissas in ((1,), (1, 3), (1, 2, 5), (1, 2, 4, 7)):
            inside = [m * 10.0**p for p in powers for m in mantissas if low <= m * 10.0**p <= high]
            if 3 <= len(inside) <= 6:
                return inside
    step = 10.0 ** math.floor(math.log10((high - low) / 2))
    for factor in (5, 2, 1):
        first = math.ceil(low / (factor * step))
        inside = [i * factor * step for i in range(first, math.floor(high / (factor * step)) + 1)]
        if len(inside) >= 3:
            return inside
    return inside
