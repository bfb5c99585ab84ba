"""A loopback address that a browser is sent back to, for as long as a login is pending."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from html import escape
from typing import Final
from urllib.parse import parse_qsl, urlsplit

PATH: Final = "/callback"
_LONGEST: Final = 16 * 1024
_WITHIN: Final = 10.0
_PAGE: Final = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Pegboard</title><h1>{title}</h1><p>{text}</p></html>'
)

Answered = Callable[[Mapping[str, str]], Awaitable[str]]
"""Takes the parameters of the address; returns what went wrong, in a sentence, or nothing."""


class CallbackServer:
    """A small HTTP server on loopback that takes answers to pending logins."""

    def __init__(self, answered: Answered) -> None:
        self._answered = answered
        self._server: asyncio.Server | None = None
        self._opening = asyncio.Lock()

    async def open(self, port: int = 0) -> int:
        """Listen, on this port if it is free; return on which."""
        async with self._opening:
            if self._server is None:
                try:
                    self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=_LONGEST)
                except OSError:
                    self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_LONGEST)
            return self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_WITHIN):
                head = await reader.readuntil(b"\r\n\r\n")
            writer.write(await self._answer_line(head.split(b"\r\n", 1)[0].decode("latin-1")))
            await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer_line(self, line: str) -> bytes:
        """Return the answer to a request: one address is known, by GET alone; the HEAD of a preview uses nothing up."""
        method, _, rest = line.partition(" ")
        target = urlsplit(rest.rpartition(" ")[0])
        if target.path != PATH or method != "GET":
            return _response(404, "Not found", "This address takes the answer to a login, and nothing else.")
        problem = await self._answered(dict(parse_qsl(target.query, keep_blank_values=True)))
        if problem:
            return _response(400, "The login did not work", problem)
        return _response(200, "Logged in", "You can close this page and go back.")


def _response(status: int, title: str, text: str) -> bytes:
    body = _PAGE.format(title=escape(title), text=escape(text)).encode()
    lines = (
        f"HTTP/1.1 {status} {'OK' if status == 200 else 'No'}",
        "Content-Type: text/html; charset=utf-8",
        f"Content-Length: {len(body)}",
        "Content-Security-Policy: default-src 'none'",
        "Referrer-Policy: no-referrer",
        "Cache-Control: no-store",
        "Connection: close",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
