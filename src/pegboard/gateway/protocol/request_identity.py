"""The caller, the session and the turn of a request (G1, G2, G3)."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from pegboard.core.model.labels import label_problem
from pegboard.core.model.tools import EMPTY
from pegboard.gateway.protocol.board_port import Caller, Token
from pegboard.mcp_constants import INVALID_PARAMS, META_PREFIX, MODERN, PEGBOARD_PREFIX, SESSION_KEY, TURN_KEY

DEFAULT_SESSION: Final = "default"
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


def request_of(caller: Caller, version: str, params: Mapping[str, Any] | None) -> RequestIdentity:
    """Return what a request belongs to; raises ``MCPError`` where its ``_meta`` cannot be meant.

    The session is named by ``_meta``, else by the URL or the command, else by the transport of the
    handshake era, else it is ``default`` (G1).
    """
    modern = is_modern(version)
    found = (params or {}).get("_meta")
    meta = cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else EMPTY
    own = _label(meta, SESSION_KEY)
    session = own or caller.session or (None if modern else caller.transport_session) or DEFAULT_SESSION
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


def owner_of(authorization: str | None, tokens: Sequence[Token]) -> Token | None:
    """Return the token that an ``Authorization`` header bears; each is compared in constant time."""
    scheme, _, given = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not given.strip():
        return None
    offered = given.strip().encode()
    found = [token for token in tokens if hmac.compare_digest(offered, token.value.encode())]
    return found[0] if found else None


def opens(token: Token | None, agent: str) -> bool:
    """Return whether an agent may be used with this token; without tokens every agent may (G2)."""
    return token is None or token.agents is None or agent in token.agents
