"""Public names of earlier versions that are gone, and what takes their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

__all__ = ["NamesReplacements", "missing"]

_SESSION: Final[Mapping[str, str]] = {
    "access": "(await session.snapshot()).access",
    "board": "the board that gave the session",
    "carry_out": "session.load, session.unload or session.fallback",
    "change": "session.load, session.unload, session.use_loadout or session.end_turn",
    "circumstances": "session.info.constraints",
    "dialect": "session.agent.dialect",
    "focus": "(await session.surface()).focus",
    "looked": "await session.surface()",
    "out_wants": "(await session.surface()).tools",
    "own": "session.known_tool(name)",
    "owner_of": "await session.explain(name)",
    "parent": "session.info.parent",
    "planned": "await session.wire()",
    "remembered": "(await session.snapshot()).stored",
    "schema_of": "session.known_tool(name).input_schema",
    "seen": "(await session.snapshot()).stored",
    "settled": "(await session.snapshot()).state",
    "stable": "session.info.stable",
    "start": "session.info.start",
    "state": "(await session.snapshot()).state",
    "stored": "(await session.snapshot()).stored",
    "terms": "session.host and session.agent",
    "text_of": "(await session.snapshot()).stored",
    "unloaded": "outcome.removed",
    "wired": "await session.wire()",
}
_BOARD: Final[Mapping[str, str]] = {
    "access_now": "(await session.snapshot()).access",
    "claims": "board.services.trust",
    "events": "board.on(event, callback)",
    "keeper": "board.services.loader",
    "look": "await board.ready(*plugins)",
    "look_everywhere": "await board.ready()",
    "look_in_background": "await board.ready()",
    "look_later": "await board.ready()",
    "masker": "board.services.masker",
    "meter": "board.metrics()",
    "offers": "board.resources",
    "parts": "board.services",
    "price": "board.services.prices(tools)",
    "pulse": "(await session.snapshot()).as_of",
    "recorder": "board.services.recorder",
    "refresh": "await session.snapshot()",
    "routes": "(await session.snapshot()).decided",
    "store": "board.services.store",
}
_ASYNC_ONLY: Final[Mapping[str, str]] = {
    name: f"board.{name}" for name in ("aclose", "adopt", "configuration", "quickstart", "upstream_states", "world")
}
_PORTS: Final[Mapping[str, str]] = {
    "ClaimStore": "ReadOnlyTrustStore",
    "Clock": "time.monotonic",
    "EventSink": "board.on(event, callback)",
    "HasOffers": "HasResources",
    "OfferSource": "ResourceSource",
}
_REMOVED: Final[Mapping[str, Mapping[str, str]]] = {
    "Board": _BOARD,
    "Host": {"warm": "host.cache.tokens"},
    "Pegboard": _BOARD,
    "Plugin": {"takes_overrides": "plugin.parameters", "without_fault": "plugin.with_manifest(key, manifest)"},
    "Session": _SESSION,
    "SyncPegboard": {**_BOARD, **_ASYNC_ONLY},
    "SyncSession": _SESSION,
    "pegboard.ports": _PORTS,
}


class NamesReplacements:
    """A class whose removed attributes raise an error that names what takes their place."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            raise AttributeError(missing(type(self).__name__, name))


def missing(owner: str, name: str) -> str:
    """Return what is wrong with asking an object of this class, or a module, for this attribute.

    >>> missing("Session", "stored")
    'Session.stored was removed; use `(await session.snapshot()).stored`.'
    >>> missing("Session", "no_such")
    "'Session' has no attribute 'no_such'"
    """
    instead = _REMOVED.get(owner, {}).get(name)
    if instead is None:
        return f"'{owner}' has no attribute '{name}'"
    where = " in a coroutine, under `Pegboard.open`" if owner.startswith("Sync") else ""
    return f"{owner}.{name} was removed; use `{instead}`{where}."
