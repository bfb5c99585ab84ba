"""New connections, taken one by one: each once there is room for it, the others wait with the system (G2)."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import Final

from pegboard.gateway.http.connections import LimitedProtocol, OpenConnections

PAUSE: Final = 0.1
"""How long no connection is taken after the system had nothing left for one, in seconds."""
_NOTHING_LEFT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


async def accept_connections(
    listening: socket.socket, connections: OpenConnections, make: Callable[[bool], LimitedProtocol]
) -> None:
    """Take connections until this is cancelled; ``make`` is told whether one is to be served or to be refused."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            taken, _ = await loop.sock_accept(listening)
        except OSError as error:
            if error.errno in _NOTHING_LEFT:
                connections.make_room()
            await asyncio.sleep(PAUSE)
            continue
        try:
            served = await connections.wait_for_room()
            await loop.connect_accepted_socket(lambda served=served: make(served), taken)
        except asyncio.CancelledError:
            taken.close()
            raise
        except OSError:  # its client has gone
            taken.close()
