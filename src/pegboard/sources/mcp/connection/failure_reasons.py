"""Why a connection could not be opened, or a request failed on its way, in words. Imports the SDK: import late."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, cast

import httpx2
import mcp_types as types
from mcp import MCPError
from pydantic import ValidationError

from pegboard.core.model.naming import one_line
from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ToolUnavailableError
from pegboard.sources.mcp.login.challenge import login_hint
from pegboard.sources.mcp.proxies import ProxyUnusableError
from pegboard.sources.mcp.wire.http_client import (
    LOGIN,
    MARK,
    REDIRECT,
    RENEWAL,
    STATUS,
    TOO_LARGE,
    UNREACHED,
    describe,
)
from pegboard.sources.mcp.wire.messages import EVENT_TOO_LARGE
from pegboard.sources.mcp.wire.redirects import RedirectError
from pegboard.sources.mcp.wire.request_outcomes import too_large_clause

_REDIRECTED = "Set `url` to the address where the server answers."


def reason_of(error: BaseException, spec: ServerSpec) -> tuple[str, str]:
    """Return why a connection could not be opened, and what to do."""
    leaf = next(_leaf_errors(error))
    match leaf:
        case FileNotFoundError() | NotADirectoryError() if spec.cwd and not os.path.isdir(spec.cwd):  # noqa: PTH112
            return f"its folder {spec.cwd!r} does not exist", "Correct `cwd`."
        case ToolUnavailableError():
            return leaf.message, leaf.hint
        case FileNotFoundError() if spec.command:
            return f"the command {spec.command!r} was not found", "Install it, or correct `command`."
        case PermissionError() if spec.command:
            return f"the command {spec.command!r} may not be executed", "Make it executable, or correct `command`."
        case MCPError():
            return _refusal(leaf, spec)
        case RedirectError():
            return str(leaf), _REDIRECTED
        case httpx2.HTTPStatusError():
            return _status(leaf.response.status_code, leaf.response.reason_phrase)
        case ProxyUnusableError():
            return str(leaf), leaf.hint
        case httpx2.TransportError():
            return describe(leaf), "Start the server, or correct `url`."
        case ValidationError():
            return f"its answer does not follow the protocol: {_first_fault(leaf)}", "Update the server."
        case OSError() | ValueError() | RuntimeError():
            return one_line(str(leaf), limit=300), ""
        case _:
            return one_line(f"{type(leaf).__name__}: {leaf}", limit=300), ""


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return one_line(": ".join([".".join(map(str, first["loc"])), first["msg"]]), limit=300)


def _refusal(error: MCPError, spec: ServerSpec) -> tuple[str, str]:
    match http_failure(error):
        case (kind, status) if kind == STATUS:
            return _status(status, error.message)
        case (kind, _) if kind == TOO_LARGE:
            return error.message, spec.limit_hint
        case (kind, _) if kind == LOGIN:
            return error.message, login_hint(spec)
        case (kind, _) if kind == REDIRECT:
            return error.message, _REDIRECTED
        case (kind, _) if kind == RENEWAL:
            return error.message, "Call again then."
        case None if error.message.startswith(EVENT_TOO_LARGE):
            return too_large_clause(spec.message_limit), spec.limit_hint
        case None if error.code == types.CONNECTION_CLOSED:
            return "", ""
        case None:
            return f"it answered: {one_line(error.message, limit=300)}", ""
        case _:
            return error.message, "Start the server, or correct `url`."


def http_failure(error: MCPError) -> tuple[str, int] | None:
    """Return the kind and the status of an error that :mod:`..wire.http_client` marked."""
    data: Any = error.data
    if isinstance(data, dict) and MARK in data:
        marked = cast("dict[str, Any]", data)
        return str(marked[MARK]), int(marked.get("status", 0))
    return None


def wanted_scopes(error: BaseException) -> tuple[str, ...] | None:
    """Return what a login has to allow, where a server answered that someone has to log in; else None.

    Empty is what the issuer gives.
    """
    leaf = next(_leaf_errors(error))
    marked = http_failure(leaf) if isinstance(leaf, MCPError) else None
    if not isinstance(leaf, MCPError) or marked is None or marked[0] != LOGIN:
        return None
    scopes: object = cast("dict[str, Any]", leaf.data).get("scopes")
    return tuple(str(scope) for scope in cast("list[Any]", scopes)) if isinstance(scopes, list) else ()


def refused_status(error: BaseException) -> int:
    """Return the status of HTTP by which a request was refused, 0 where it was not."""
    leaf = next(_leaf_errors(error))
    if isinstance(leaf, httpx2.HTTPStatusError):
        return leaf.response.status_code
    marked = http_failure(leaf) if isinstance(leaf, MCPError) else None
    return marked[1] if marked is not None and marked[0] == STATUS else 0


def was_not_sent(error: MCPError) -> bool:
    """Return whether nothing of the request was taken."""
    marked = http_failure(error)
    return marked is not None and marked[0] in (UNREACHED, RENEWAL)


def _status(status: int, text: str) -> tuple[str, str]:
    answer = f"it answered HTTP {status} ({one_line(text, limit=200)})" if text else f"it answered HTTP {status}"
    match status:
        case 401 | 403:
            return f"{answer}: the credentials are missing or refused", "Correct `headers`."
        case 404 | 405:
            return answer, "Correct `url`: no MCP endpoint is there, of either transport."
        case _:
            return answer, "See the server's own log."


def _leaf_errors(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _leaf_errors(inner)
    else:
        yield error
