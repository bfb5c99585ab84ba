"""How a server is reached, as far as it was learnt: tried first at its next start, also by another process (G8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pegboard.core.model.specs import ServerSpec
from pegboard.sources.mcp.connection.history import Fault

UNASKED: Final = "a server that is not asked"
"""What stands for the name of a server that ended, or let time run out, when it was asked for its era."""
_SILENT, _TRANSPORT = "handshake_only", "transport"
_GUESSED_WITHIN: Final = 10.0
"""Seconds in which an address that may be one of the older SSE transport has to answer as one."""
_NO_ENDPOINT: Final = (400, 404, 405)
"""Statuses by which a server of the older SSE transport refuses a POST to the address of its events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionWay:
    """How a server is reached.

    ``handshake_only`` is the name and version of a server that is not asked for its era, since the question is not
    answered or ends it; empty is any that is asked. ``sse``: the address is one of the older SSE transport, though the
    configuration does not say so.
    """

    handshake_only: str = ""
    sse: bool = False

    @classmethod
    def from_manifest(cls, learnt: Mapping[str, str]) -> ConnectionWay:
        """Return what is in a manifest."""
        return cls(handshake_only=str(learnt.get(_SILENT, "")), sse=learnt.get(_TRANSPORT) == "sse")

    @property
    def to_manifest(self) -> dict[str, str]:
        """Return what is kept in a manifest."""
        found = {_SILENT: self.handshake_only, _TRANSPORT: "sse" if self.sse else ""}
        return {key: value for key, value in found.items() if value}


class WaysToTry:
    """The ways that one start tries, each once: what was learnt first, others where a failure speaks for them."""

    def __init__(self, spec: ServerSpec, learnt: ConnectionWay) -> None:
        self._http = spec.url is not None and spec.transport != "sse"
        self._learnt = learnt
        self._next: list[ConnectionWay] = [learnt]
        self._tried: set[ConnectionWay] = set()

    def __iter__(self) -> Iterator[ConnectionWay]:
        while self._next:
            way = self._next.pop(0)
            self._tried.add(way)
            yield way

    def limit(self, way: ConnectionWay, start: float) -> float:
        """Return how long a way may take, in seconds, of a start that may take ``start``: a guess gets less."""
        return min(start, _GUESSED_WITHIN) if way.sse and way != self._learnt else start

    def note_failure(self, way: ConnectionWay, fault: Fault, *, left: bool) -> None:
        """Note a failure; ``left``: the process ended before it had printed anything."""
        if fault.timed_out:  # the time for a start is over
            return
        if left:  # some servers of the handshake era leave when anything comes before `initialize`
            self._add(replace(way, handshake_only=UNASKED))
        if self._http and fault.status in _NO_ENDPOINT:
            self._add(replace(way, sse=True))
        if way == self._learnt:  # it may have changed since
            self._add(ConnectionWay())

    def _add(self, way: ConnectionWay) -> None:
        if way not in self._tried and way not in self._next:
            self._next.append(way)
