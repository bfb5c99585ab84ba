"""What joins and leaves the tools of a session from one request to the next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pegboard.core.model.tools import Tool
from pegboard.core.surface.surfaces import Surface


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceChanges:
    """What changed of the tools since the last request.

    Attributes:
        joined: the tools that are new, in the order of the surface, or whose definition is another one now.
        left: the wire names of those that are gone, in the order that they stood in.
    """

    joined: tuple[Tool, ...] = ()
    left: tuple[str, ...] = ()


def changes_between(before: Iterable[Tool], now: Surface) -> SurfaceChanges:
    """Return what joined and left between the tools of one surface and those of a later one."""
    known = {tool.wire: tool for tool in before}
    names = frozenset(now.names)
    joined = tuple(one.tool for one in now.tools if known.get(one.tool.wire) != one.tool)
    return SurfaceChanges(joined=joined, left=tuple(wire for wire in known if wire not in names))
