"""Where the nodes and bands of a picture of flows stand: three columns, as high as what flows through them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

LEAST: Final = 44.0
"""How high a node is at least: two lines of text."""
GAP: Final = 8.0
"""How far nodes stand apart."""
THINNEST: Final = 2.0
"""How high a band is at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What flows from a node of one column to one of the next: ``size`` of it, in the ``state``."""

    source: str
    target: str
    state: str
    size: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Where a node stands, and how high it is."""

    key: str
    y: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A link, with the upper ends of its band left and right, and how high it is there."""

    link: Link
    left: float
    right: float
    left_height: float
    right_height: float


def column(sizes: Mapping[str, float], height: float) -> dict[str, Node]:
    """Return where the nodes of a column stand, in order: each has the least height, and its share of the rest.

    Args:
        sizes: how large each is, by key.
        height: how high the column is at least; it is higher where the nodes have no room.
    """
    count, total = len(sizes), sum(sizes.values())
    rest = max(height - count * LEAST - max(count - 1, 0) * GAP, 0.0)
    found: dict[str, Node] = {}
    y = 0.0
    for key, size in sizes.items():
        own = LEAST + (rest * (size / total) if total else rest / count)
        found[key] = Node(key=key, y=y, height=own)
        y += own + GAP
    return found


def height_of(counts: Sequence[int], least: float) -> float:
    """Return how high a picture is whose columns have so many nodes."""
    return max(least, *(count * LEAST + max(count - 1, 0) * GAP for count in counts))


def bands(links: Sequence[Link], left: Mapping[str, Node], right: Mapping[str, Node]) -> list[Band]:
    """Return the band of each link, in order; those of a node fill it, and do not overlap.

    Where links of no size share a node with others, they are as thin as can be seen.
    """
    lefts = _parts(links, left, {id(link): link.source for link in links})
    rights = _parts(links, right, {id(link): link.target for link in links})
    return [
        Band(link=link, left=a, left_height=of_a, right=b, right_height=of_b)
        for link, (a, of_a), (b, of_b) in zip(links, lefts, rights, strict=True)
    ]


def _parts(links: Sequence[Link], nodes: Mapping[str, Node], key_of: Mapping[int, str]) -> list[tuple[float, float]]:
    """Return which part of its node each link has."""
    sums: dict[str, float] = dict.fromkeys(nodes, 0.0)
    counts: dict[str, int] = dict.fromkeys(nodes, 0)
    for link in links:
        sums[key_of[id(link)]] += link.size
        counts[key_of[id(link)]] += 1
    at = {key: node.y for key, node in nodes.items()}
    found: list[tuple[float, float]] = []
    for link in links:
        key = key_of[id(link)]
        height, total, count = nodes[key].height, sums[key], counts[key]
        thin = min(THINNEST, height / count)
        own = thin + (height - thin * count) * (link.size / total if total else 1 / count)
        found.append((at[key], own))
        at[key] += own
    return found
