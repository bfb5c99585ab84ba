"""Where the gateway listens, and what that is called: the socket, the URL, the address for other replicas."""

from __future__ import annotations

import errno
import socket
from typing import Final
from urllib.parse import urlsplit

from pegboard.errors import PegboardError, UsageError
from pegboard.gateway.http.auth import ANY_ADDRESS

BACKLOG: Final = 2048
"""How many connections may wait to be taken."""


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raises ``PegboardError`` with what to do where it cannot."""
    if not 0 <= port <= 65535:
        raise UsageError(f"{port} is not a port.", hint="Choose one from 1 to 65535, or 0 for any that is free.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(BACKLOG)
            listening.setblocking(False)
        except OSError:
            listening.close()
            raise
    except (OSError, UnicodeError) as error:
        raise _unbound(host, port, error) from None
    return listening


def _unbound(host: str, port: int, error: OSError | UnicodeError) -> PegboardError:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return PegboardError(
            f"Port {port} on {host} is in use.", code="port_in_use", hint="Choose another with --port; 0 takes any."
        )
    why = error.strerror or str(error) if isinstance(error, OSError) else "it is not a name"
    return PegboardError(
        f"Cannot listen on {host}, port {port}: {why}.", code="address_unavailable", hint="Check --host and --port."
    )


def url_of(host: str, port: int) -> str:
    """Return where a client reaches the default agent.

    >>> url_of("::1", 8321)
    'http://[::1]:8321/mcp'
    """
    return f"http://[{host}]:{port}/mcp" if ":" in host else f"http://{host}:{port}/mcp"


def reached_at(url: str) -> str:
    """Return below which address other processes reach what is served at a URL, as far as this machine knows.

    What is bound to every address is reached at that of this machine.
    """
    parts = urlsplit(url)
    if parts.hostname not in ANY_ADDRESS:
        return f"{parts.scheme}://{parts.netloc}"
    try:
        own = socket.gethostbyname(socket.gethostname())
    except OSError:  # a machine that does not know its own name
        own = "127.0.0.1"
    return f"{parts.scheme}://{own}:{parts.port}"
