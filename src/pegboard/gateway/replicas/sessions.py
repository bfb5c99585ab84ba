"""Transport sessions of the handshake era whose ids name the replica that began them (G14)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from pegboard.gateway.replicas.session_ids import session_id_of

if TYPE_CHECKING:
    from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
    from mcp.server.lowlevel.server import Server
    from mcp.server.streamable_http import StreamableHTTPServerTransport


class NamedSessions(StreamableHTTPSessionManager):
    """The SDK's transport sessions, under ids that name a replica: the SDK has no public way to choose them."""

    def __init__(self, app: Server[Any], replica: str, *, max_request_body_size: int) -> None:
        super().__init__(app=app, max_request_body_size=max_request_body_size)
        self._replica = replica

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        """Return the transport of a new session, under its own id before anyone knows of it."""
        transport = super()._admit_session(requestor)
        if transport is None or transport.mcp_session_id is None:
            return transport
        random = transport.mcp_session_id
        named = transport.mcp_session_id = session_id_of(self._replica, random)
        self._server_instances[named] = self._server_instances.pop(random)
        if requestor is not None:
            self._session_owners[named] = self._session_owners.pop(random)
        return transport
