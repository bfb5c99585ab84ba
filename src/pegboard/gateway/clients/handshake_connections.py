"""The connections of the handshake era that are open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pegboard.gateway.protocol.request_identity import is_modern

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.session import ServerSession

    from pegboard.gateway.protocol.board_port import Caller


def connection_of(session: ServerSession) -> Connection:
    """Return the connection that a request came over; the SDK has no public way to it."""
    return session._connection  # noqa: SLF001


class HandshakeConnections:
    """Each open connection with who opened it, by the session id of its transport; None on stdio."""

    def __init__(self) -> None:
        self._open: dict[str | None, tuple[Connection, Caller]] = {}

    def add(self, connection: Connection, caller: Caller) -> None:
        """Add a connection whose handshake was answered; it is removed when it closes."""
        if is_modern(connection.protocol_version):
            return
        transport_session = connection.session_id
        if transport_session not in self._open:
            connection.exit_stack.callback(self._open.pop, transport_session, None)
        self._open[transport_session] = connection, caller

    def find(self, transport_session: str | None, caller: Caller) -> Connection | None:
        """Return the connection of a transport session, if its handshake is done and it is this caller's."""
        connection, owner = self._open.get(transport_session, (None, None))
        if connection is None or owner is None or not connection.initialize_accepted:
            return None
        if owner is caller:
            return connection
        if (owner.principal, owner.agent, owner.sub_app) != (caller.principal, caller.agent, caller.sub_app):
            return None
        return connection
