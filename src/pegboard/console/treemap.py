"""Rectangles whose areas are as sizes: a squarified treemap, and what of a name has room in one of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

WIDE: Final = 1.05
"""How wide a character of two columns is at most, in heights of the letters."""
NARROW: Final = 0.62
"""How wide a character of the fonts of names is, likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle; ``x`` and ``y`` are its upper left corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def area(self) -> float:
        """Return its area."""
        return self.width * self.height

    def within(self, margin: float, top: float = 0.0) -> Box:
        """Return what is left of it inside of a margin, and below ``top`` more."""
        width, height = max(self.width - 2 * margin, 0.0), max(self.height - 2 * margin - top, 0.0)
        return Box(x=self.x + margin, y=self.y + margin + top, width=width, height=height)


def squarified(sizes: Sequence[float], into: Box) -> list[Box]:
    """Return a box for each size, as near to a square as may be, that fill a box together (Bruls and others, 2000).

    Args:
        sizes: how large each is, in any order; what is not positive gets no area.
        into: what is filled.
    """
    total = sum(size for size in sizes if size > 0)
    boxes = [Box(x=into.x, y=into.y, width=0.0, height=0.0)] * len(sizes)
    if not total or not into.area:
        return boxes
    order = sorted((at for at, size in enumerate(sizes) if size > 0), key=lambda at: (-sizes[at], at))
    scale, free, start = into.area / total, into, 0
    while start < len(order):
        short = min(free.width, free.height)
        end, row = start + 1, sizes[order[start]] * scale
        while end < len(order):
            more = row + sizes[order[end]] * scale
            if _worst(sizes, order[start : end + 1], scale, more, short) > _worst(
                sizes, order[start:end], scale, row, short
            ):
                break
            end, row = end + 1, more
        free = _placed(boxes, [(at, sizes[at] * scale) for at in order[start:end]], row, free, last=end == len(order))
        start = end
    return boxes


def _worst(sizes: Sequence[float], row: Sequence[int], scale: float, area: float, side: float) -> float:
    """Return how far from a square the worst of a row is that is laid along a side."""
    largest, smallest = sizes[row[0]] * scale, sizes[row[-1]] * scale
    return max(side * side * largest / (area * area), area * area / (side * side * smallest))


def _placed(boxes: list[Box], row: Sequence[tuple[int, float]], area: float, free: Box, *, last: bool) -> Box:
    """Lay a row along the short side of what is free, and return what is free behind it; the last one fills it."""
    upright = free.width >= free.height
    side = free.height if upright else free.width
    depth = (free.width if upright else free.height) if last else area / side
    done = 0.0
    for at, size in row:
        length = side * size / area
        boxes[at] = (
            Box(x=free.x, y=free.y + done, width=depth, height=length)
            if upright
            else Box(x=free.x + done, y=free.y, width=length, height=depth)
        )
        done += length
    if upright:
        return Box(x=free.x + depth, y=free.y, width=max(free.width - depth, 0.0), height=free.height)
    return Box(x=free.x, y=free.y + depth, width=free.width, height=max(free.height - depth, 0.0))


def fitting(text: str, width: float, size: float) -> str:
    """Return a text where it has room in a width, else its beginning and an ellipsis; nothing where not even that has.

    >>> fitting("notes__search", 200, 14), fitting("notes__search", 80, 14), fitting("notes__search", 20, 14)
    ('notes__search', 'notes__s…', '')
    """
    room = width / size
    taken, fits = 0.0, 0
    for at, character in enumerate(text):
        taken += _width(character)
        if taken > room:
            break
        if taken + NARROW <= room:
            fits = at + 1
    else:
        return text
    return f"{text[:fits].rstrip()}…" if fits >= 3 else ""


def _width(character: str) -> float:
    if character.isascii():
        return NARROW
    if unicodedata.combining(character):
        return 0.0
    narrow = unicodedata.east_asian_width(character) in "NaHA" and unicodedata.category(character)[0] == "L"
    return WIDE if not narrow else max(NARROW, 0.75)
