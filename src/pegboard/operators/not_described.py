"""Plugins that nobody asked for their tools yet: an operator may (P9, G8)."""

from __future__ import annotations

from pegboard.board.catalog.loader import PluginRequest
from pegboard.board.discover import ASKED, discover_every
from pegboard.board.services import Services


def unasked(services: Services) -> tuple[str, ...]:
    """Return the names of the plugins whose tools nobody asked for, as far as they can be asked."""
    plugins = (plugin for plugin in services.world.catalog.plugins.values() if not plugin.tools)
    missing = services.loader.missing
    return tuple(p.name for p in plugins if p.kind in ASKED and missing(PluginRequest(plugin=p.name)))


async def ask(services: Services) -> tuple[str, ...]:
    """Ask all of them, and return those that have not answered within the time of a request."""
    await discover_every(services)
    return unasked(services)
