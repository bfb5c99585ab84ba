"""Errors and results as a client receives them: every key of a result, past the models of the SDK (G7).

What a handler of the SDK returns is validated against the SDK's model of that result, and keys which the
model does not have are dropped: those of a newer revision, and those that a server invented. So a handler
hands its whole result over with :func:`pass_on` and returns an empty model, which gives the SDK's envelope
(``resultType``, cache hints, ``serverInfo``). The middleware around every request collects what was handed
over, for that request alone (a ContextVar: the SDK runs the handler in the context of its middleware), and
lays it over the envelope::

    with collected() as raw:
        result = await call_next(ctx)
    return merged(result, raw)
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from mcp.shared.exceptions import MCPError

from pegboard.core.access.extensions import is_task
from pegboard.errors import PegboardError, UpstreamError
from pegboard.support.mcp_constants import INTERNAL_ERROR, INVALID_PARAMS

if TYPE_CHECKING:
    from pegboard.core.model.masking import Masker

_RESOURCE_NOT_FOUND: Final = -32002
"""The code for an unknown resource in the handshake era."""

_logger = logging.getLogger("mcp.pegboard")


def client_error(error: Exception, method: str, masker: Masker) -> MCPError:
    """Return the error that a client receives for any failure; one that no one foresaw is logged."""
    match error:
        case MCPError():
            return error
        case PegboardError():
            return MCPError(INTERNAL_ERROR, masker.text(str(error)), {"code": error.code})
        case _:
            _logger.error("%s failed", method, exc_info=error)
            return MCPError(INTERNAL_ERROR, f"Pegboard failed: {type(error).__name__}.")


def server_error(error: Mapping[str, Any]) -> MCPError:
    """Return the JSON-RPC error of a server as the server gave it (G7)."""
    return MCPError(error["code"], error["message"], error["data"])


def failed_upstream(error: UpstreamError) -> Exception:
    """Return the JSON-RPC error of a failed request to a server, where the server gave one, else the failure."""
    return error if error.answer is None else server_error(error.answer)


def unknown_resource(uri: str, masker: Masker, *, modern: bool) -> MCPError:
    """Return the error for a resource that there is not, or not for this agent (P9)."""
    masked = masker.text(uri)
    code = INVALID_PARAMS if modern else _RESOURCE_NOT_FOUND
    return MCPError(code, f"Unknown resource: {masked}", {"uri": masked})


_RESULT: ContextVar[dict[str, Any]] = ContextVar("pegboard_raw_result")


@contextmanager
def collect_raw_results() -> Generator[dict[str, Any]]:
    """Yield the mapping that is filled by :func:`pass_on` while the context lasts."""
    raw: dict[str, Any] = {}
    token = _RESULT.set(raw)
    try:
        yield raw
    finally:
        _RESULT.reset(token)


def pass_on(result: Mapping[str, Any]) -> None:
    """Hand over the result of the request that is being served."""
    _RESULT.get().update(result)


def merge_results(result: Mapping[str, Any], raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the SDK's result with what was handed over laid over it; ``_meta`` has the keys of both.

    >>> merge_results({"content": [], "_meta": {"a": 1}}, {"content": ["x"], "new": 2, "_meta": {"b": 3}})
    {'content': ['x'], '_meta': {'a': 1, 'b': 3}, 'new': 2}
    """
    meta = {**result.get("_meta", {}), **raw.get("_meta", {})}
    if is_task(raw):  # it has no content yet, and nothing failed
        result = {key: value for key, value in result.items() if key not in ("content", "isError")}
    return {**result, **raw, **({"_meta": meta} if meta else {})}
