"""Tools whose arguments also travel in HTTP headers (``x-mcp-header``), for the checks of the SDK."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from pegboard.gateway.protocol.board_port import CALLER, Caller

if TYPE_CHECKING:
    from pegboard.board import Session
    from pegboard.core.model.tools import Tool
    from pegboard.gateway.handlers.session_pool import SessionPool

_SESSION: ContextVar[Session | None] = ContextVar("pegboard_schemas", default=None)
"""A session of the caller: the SDK looks schemas up without a way to wait."""


class HeaderSchemas:
    """Input schemas by wire name, as the caller of the current request may see them."""

    def __init__(self, sessions: SessionPool) -> None:
        self._sessions = sessions
        self._judged: dict[str, tuple[Tool, bool]] = {}

    async def prepare(self, caller: Caller) -> None:
        """Set the caller of a request and the session of its lookups; call it in the context of the request."""
        CALLER.set(caller)
        _SESSION.set(await self._sessions.get(caller, caller.usual_session, modern=True))

    def find(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema against which the SDK checks ``Mcp-Param-*`` headers before a call."""
        session = _SESSION.get()
        tool = session.known_tool(name) if session is not None else None
        return tool.input_schema if tool is not None else None

    async def needed(self, caller: Caller, name: str) -> bool:
        """Return whether the schema of a tool puts arguments of it in headers."""
        session = await self._sessions.get(caller, caller.usual_session, modern=True)
        tool = session.known_tool(name)
        if tool is None:
            return False
        judged = self._judged.get(tool.id)
        if judged is None or judged[0] is not tool:
            judged = self._judged[tool.id] = (tool, "x-mcp-header" in json.dumps(tool.input_schema, default=str))
        return judged[1]
