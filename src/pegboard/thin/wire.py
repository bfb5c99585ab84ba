"""What thin clients and the daemon say to each other: one JSON object on a line each, over a Unix socket.

::

    client: {"kind": "stdio" | "command" | "status" | "stop", "version", "secret", "cwd", "env", ...}
            the last two of any version
    daemon: {"ok": true, "secret", "pid"}            or {"ok": false, "code", "reason"}

    stdio:    the lines of MCP both ways as they are; a line of the daemon that begins with ``!`` is a note for people,
              or {"stop": true} before the daemon ends, or {"move": true} where another process has its board now;
              where the answer has "root", a client's one root in the hello, "root": path, is another board
    command:  daemon: {"out": text} | {"err": text} | {"save": path, "data": base64} ...,
              then {"exit": number}, or {"ask": lines} where a person has to agree first: the same again, "agreed"
    status:   daemon: one object
    stop:     daemon: {} once it takes no more clients

Each side has half of the secret file: a client shows the first half, the daemon the second one. A connection that
is closed cancels what it asked for.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False  # see the package `pegboard`
if TYPE_CHECKING:
    import socket
    from typing import Any, Final

NOTE: Final = b"!"
"""How a line of the daemon begins that is for people, between those of MCP: each of these begins with ``{``."""
LONGEST_HELLO: Final = 64 * 1024 * 1024
"""How long the first line of a client may be, in bytes: a command has its standard input there."""
_CHUNK: Final = 65536

Message = dict[str, "Any"]

# Why the daemon does not serve a client.
VERSION: Final = "version"
SECRET: Final = "secret"  # noqa: S105 - the name of a reason
ENDING: Final = "ending"
ELSEWHERE: Final = "elsewhere"
"""Its configuration has plugins in code: they run in a process of their own, whose name comes in ``own``."""
ALONE: Final = "alone"
"""It cannot be served here; a process that serves it alone says why, or does what cannot be done for several."""


class WireError(Exception):
    """What comes over the socket is no answer of a daemon of this version, or it has ended."""


def line_of(message: Message) -> bytes:
    """Return a message as a line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def message_of(line: bytes) -> Message:
    """Return the message on a line; raises ``WireError`` where it is none."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise WireError(f"this is not a message: {line[:40]!r}") from error
    if not isinstance(message, dict):
        raise WireError(f"this is not a message: {line[:40]!r}")
    return message


class LineReader:
    """The lines of a blocking socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._rest = bytearray()

    def read(self) -> bytes:
        """Return the next line with its end; empty where there is none any longer. Raises ``OSError``."""
        seen = 0
        while (end := self._rest.find(b"\n", seen)) < 0:
            seen = len(self._rest)
            chunk = self._connection.recv(_CHUNK)
            if not chunk:
                return b""
            self._rest += chunk
        line = bytes(self._rest[: end + 1])
        del self._rest[: end + 1]
        return line

    def rest(self) -> bytes:
        """Return what was read beyond the last line."""
        rest, self._rest = bytes(self._rest), bytearray()
        return rest
