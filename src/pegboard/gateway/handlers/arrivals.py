"""When a request came that is served by way of the SDK: what was loaded after that does not count for it (D2)."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from mcp.shared.message import ServerMessageMetadata

from pegboard.core.model.tools import EMPTY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Scope

_ARRIVED: Final = "pegboard.arrived"


@dataclass(frozen=True, slots=True)
class _StdioArrival:
    arrived: float


def came_at(arrived: float) -> ServerMessageMetadata:
    """Return what the SDK carries to the handler of a message over stdio (``time.monotonic()``)."""
    return ServerMessageMetadata(request_context=_StdioArrival(arrived))


def note_arrival(scope: Scope) -> None:
    """Note that a request over HTTP has come now."""
    scope[_ARRIVED] = monotonic()


def arrival_of(request: object) -> float | None:
    """Return when a request came, by what the SDK carried to its handler; None where that was not noted."""
    if isinstance(request, _StdioArrival):
        return request.arrived
    scope: Mapping[str, Any] = getattr(request, "scope", EMPTY)  # of Starlette, which no start over stdio imports
    return scope.get(_ARRIVED)
