"""The caller, the session and the turn of a request (G1, G2, G3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

from pegboard.core.model.delivery import GATEWAY, GATEWAY_HANDSHAKE, Host
from pegboard.core.model.known_clients import declared_client
from pegboard.core.model.naming import label_problem
from pegboard.core.model.tools import EMPTY
from pegboard.gateway.protocol.board_port import Caller, declared_name
from pegboard.support import mcp_constants
from pegboard.support.mcp_constants import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    INVALID_PARAMS,
    META_PREFIX,
    MODERN,
    PEGBOARD_PREFIX,
    SESSION_KEY,
    TURN_KEY,
)

if TYPE_CHECKING:
    from mcp.server.connection import Connection

TTL_MS: Final = 2_000
"""For how long a client may take a list as fresh; whoever subscribes is notified of changes at once."""

_NOT_PASSED_ON: Final = (PEGBOARD_PREFIX, META_PREFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestIdentity:
    """The caller, session and turn of a request; ``meta`` is what of its ``_meta`` upstreams get."""

    caller: Caller
    session: str
    turn: str | None
    modern: bool
    meta: Mapping[str, Any]


def is_modern(version: str) -> bool:
    """Return whether a protocol version is of the era without a handshake."""
    return version >= MODERN


def declares_ui(capabilities: Any) -> bool:
    """Return whether a client with these capabilities, as they stand on the wire, draws tools' user interfaces."""
    match capabilities:
        case {"extensions": {mcp_constants.UI_EXTENSION: {"mimeTypes": [*types]}}}:
            return mcp_constants.UI_MIME_TYPE in types
        case _:
            return False


def on_connection(caller: Caller, connection: Connection | None) -> Caller:
    """Return a caller with what the client of its connection, if it has one, declared in the handshake."""
    params = connection.client_params if connection is not None else None
    if params is not None:
        known = params.client_info
        caller = replace(caller, declared=declared_name(known.name), version=declared_name(known.version))
    declared = connection.client_capabilities if connection is not None else None
    if declared is None or not declared.extensions:
        return caller
    return replace(caller, draws_ui=declares_ui({"extensions": declared.extensions}))


def with_client(caller: Caller, declared: object) -> Caller:
    """Return a caller with the name that its client gives itself, as it stands on the wire."""
    if not isinstance(declared, Mapping):
        return caller
    known = cast("Mapping[str, Any]", declared)
    return replace(caller, declared=declared_name(known.get("name")), version=declared_name(known.get("version")))


def host_of(caller: Caller, *, modern: bool) -> Host:
    """Return what a client can do with a change of tools, in its era (D1)."""
    host, client = GATEWAY if modern else GATEWAY_HANDSHAKE, declared_client(caller.declared)
    if not caller.draws_ui and client is host.client:
        return host
    return replace(host, draws_ui=caller.draws_ui, client=client)


def request_of(caller: Caller, version: str, params: Mapping[str, Any] | None) -> RequestIdentity:
    """Return what a request belongs to; raises ``MCPError`` where its ``_meta`` cannot be meant.

    In the 2026-07-28 era ``_meta`` also declares what the client can do; for the other see :func:`on_connection`.
    The session is named by ``_meta``, else by the URL or the command, else by the transport of the
    handshake era, else it is that of the client and its folder on stdio, else ``default`` (G1).
    """
    modern = is_modern(version)
    found = (params or {}).get("_meta")
    meta = cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else EMPTY
    own = _label(meta, SESSION_KEY)
    if modern:
        caller = with_client(caller, meta.get(CLIENT_KEY))
    session = own or caller.session or (None if modern else caller.transport_session) or caller.usual_session
    if modern and declares_ui(meta.get(CAPABILITIES_KEY)):
        caller = replace(caller, draws_ui=True)
    passed = {k: v for k, v in meta.items() if k != "progressToken" and not k.startswith(_NOT_PASSED_ON)}
    return RequestIdentity(caller=caller, session=session, turn=_label(meta, TURN_KEY), modern=modern, meta=passed)


def _label(meta: Mapping[str, Any], key: str) -> str | None:
    if key not in meta:
        return None
    problem = label_problem(meta[key])
    if problem:
        from mcp.shared.exceptions import MCPError

        raise MCPError(INVALID_PARAMS, f'_meta["{key}"] {problem}')
    return meta[key]
