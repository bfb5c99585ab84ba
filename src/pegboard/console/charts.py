"""Curves as SVG: drawn here and shown as they are, in the colours of the style sheet, with no script and no style."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Final

from markupsafe import Markup

WIDTH: Final = 600
HEIGHT: Final = 120
SPARK_WIDTH: Final = 120
SPARK_HEIGHT: Final = 24
_DAY: Final = 86_400
_GAP: Final = 0.15
"""Which part of a step is left free beside its bar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One value for each step; None where there is none. ``style`` is the class by which it is coloured."""

    style: str
    values: Sequence[float | None]


def bars(series: Sequence[Series], notes: Sequence[str], text: str) -> Markup:
    """Return bars of which each stands on the one before."""
    steps = len(notes)
    top = max((sum(one.values[at] or 0 for one in series) for at in range(steps)), default=0) or 1
    drawn: list[Markup] = []
    below = [0.0] * steps
    for one in series:
        for at, value in enumerate(one.values):
            if value:
                height = HEIGHT * value / top
                y = HEIGHT - below[at] - height
                left, wide = _slot(at, steps)
                drawn.append(_RECT.format(one.style, _n(left), _n(y), _n(wide), _n(height)))
                below[at] += height
    return _picture(drawn, notes, text)


def lines(series: Sequence[Series], notes: Sequence[str], text: str) -> Markup:
    """Return a line for each series, which is interrupted where there is no value; see :func:`bars`."""
    top = _top(series)
    drawn: list[Markup] = []
    for one in series:
        for points in _runs(one.values, top):
            (x, y), reach = points[0], WIDTH / len(one.values) / 4
            line = points if len(points) > 1 else [(x - reach, y), (x + reach, y)]  # a line of one point is none
            drawn.append(_LINE.format(one.style, " ".join(f"{_n(x)},{_n(y)}" for x, y in line)))
    return _picture(drawn, notes, text)


def areas(series: Sequence[Series], notes: Sequence[str], text: str) -> Markup:
    """Return an area below each series, the later ones in front; see :func:`bars`."""
    top = _top(series)
    drawn: list[Markup] = []
    for one in series:
        values = [value or 0.0 for value in one.values]
        for points in _runs(values, top) if any(values) else ():
            outline = [(0.0, float(HEIGHT)), (0.0, points[0][1]), *points, (WIDTH, points[-1][1]), (WIDTH, HEIGHT)]
            drawn.append(_AREA.format(one.style, " ".join(f"{_n(x)},{_n(y)}" for x, y in outline)))
    return _picture(drawn, notes, text)


def step_names(starts: Sequence[int], seconds: int) -> tuple[str, ...]:
    """Return when each step begins (UTC), as shortly as tells it from the others."""
    begins = [datetime.fromtimestamp(start, UTC) for start in starts]
    if seconds >= _DAY:
        form = "%Y-%m-%d"
    elif seconds * len(begins) > _DAY:
        form = "%a %d %b, %H:%M"
    else:
        form = "%H:%M"
    return tuple(begin.strftime(form) for begin in begins)


def spark(values: Sequence[float | None], text: str) -> Markup:
    """Return a small line without axes, which is interrupted where there is no value; see :func:`bars`."""
    top = _top([Series(style="", values=values)])
    wide, high = SPARK_WIDTH / max(len(values), 1), SPARK_HEIGHT - 2
    drawn: list[Markup] = []
    for points in _runs(values, top):
        small = [(x * SPARK_WIDTH / WIDTH, 1 + y * high / HEIGHT) for x, y in points]
        (x, y) = small[0]
        line = small if len(small) > 1 else [(x - wide / 2, y), (x + wide / 2, y)]
        drawn.append(_LINE.format("p95", " ".join(f"{_n(x)},{_n(y)}" for x, y in line)))
    return _SPARK.format(SPARK_WIDTH, SPARK_HEIGHT, text, Markup("").join(drawn))


_SPARK: Final = Markup(
    '<svg class="curve spark" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
)
_RECT: Final = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>')
_LINE: Final = Markup('<polyline class="line {}" points="{}"/>')
_AREA: Final = Markup('<polygon class="area {}" points="{}"/>')
_NOTE: Final = Markup('<rect class="note" x="{}" y="0" width="{}" height="{}"><title>{}</title></rect>')
_SVG: Final = Markup(
    '<svg class="curve" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
)


def _picture(drawn: Sequence[Markup], notes: Sequence[str], text: str) -> Markup:
    wide = WIDTH / max(len(notes), 1)
    hints = [_NOTE.format(_n(at * wide), _n(wide), HEIGHT, note) for at, note in enumerate(notes)]
    return _SVG.format(WIDTH, HEIGHT, text, Markup("").join((*drawn, *hints)))


def _slot(at: int, steps: int) -> tuple[float, float]:
    """Return where the bar of a step begins, and how wide it is."""
    whole = WIDTH / steps
    return whole * (at + _GAP / 2), whole * (1 - _GAP)


def _top(series: Sequence[Series]) -> float:
    return max((value for one in series for value in one.values if value is not None), default=0.0) or 1.0


def _runs(values: Sequence[float | None], top: float) -> list[list[tuple[float, float]]]:
    """Return the points of each stretch of values; each stands in the middle of its step."""
    wide = WIDTH / max(len(values), 1)
    points = [
        None if value is None else (wide * (at + 0.5), HEIGHT * (1 - max(value, 0.0) / top))
        for at, value in enumerate(values)
    ]
    return [[p for p in run if p is not None] for known, run in groupby(points, key=lambda p: p is not None) if known]


def _n(value: float) -> str:
    """Return a coordinate, shortly.

    >>> _n(12.0), _n(3.14159)
    ('12', '3.1')
    """
    return f"{value:.1f}".removesuffix(".0")
