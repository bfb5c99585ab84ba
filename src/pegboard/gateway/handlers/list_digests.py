"""Digests of tool lists, of which most are asked for again and again while nothing in them changes."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from pegboard.gateway.protocol.convert import digest, tools_of

if TYPE_CHECKING:
    from pegboard.core.surface.surfaces import Surface

MOST: Final = 1_000
"""Of how many lists a digest is kept; those that were asked for longest ago go first."""


class ListDigests:
    """The digests of lists by the surface that they are of, which is kept: no other object has its identity."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, bool], tuple[object, str]] = OrderedDict()

    def of(self, surface: Surface, *, modern: bool) -> str:
        """Return the digest of a surface as ``tools/list`` has it."""
        key = id(surface.tools), modern  # a focus is put around the same tools
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            return known[1]
        found = digest(tools_of(surface, modern=modern))
        self._known[key] = surface.tools, found
        if len(self._known) > MOST:
            self._known.popitem(last=False)
        return found
