"""One client over stdio, in front of whom a proxy copies lines (G1)."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pegboard.gateway.clients.only_client import asking_sources
from pegboard.gateway.handlers.client_sessions import end_client_sessions
from pegboard.gateway.protocol.board_port import declared_name
from pegboard.gateway.stdio.line_io import LineChannel
from pegboard.gateway.stdio.run import caller_of, folder_digest, serve_client
from pegboard.support.mcp_constants import CLIENT_KEY
from pegboard.thin import wire

if TYPE_CHECKING:
    from pegboard.daemon.open_board import OpenBoard
    from pegboard.daemon.requests import ClientFront
    from pegboard.gateway.protocol.board_port import Caller

FIRST_LINES: Final = 4
"""In how many of the first lines of a client its name is looked for."""
_NUMBERS: Final = itertools.count(1)


def caller_in_front(board: OpenBoard, front: ClientFront) -> Caller:
    """Return who calls; raises ``UnknownAgentError`` and ``UsageError``."""
    session = front.text("session")
    return caller_of(
        board.board,
        f"stdio-{next(_NUMBERS)}",
        agent=front.text("agent"),
        session=session,
        sub_app=front.text("sub_app"),
        folder="" if session is not None else folder_digest(Path(front.root)),
    )


class ProxyNotes:
    """What is shown on the standard error of a client; before it is served, once it is."""

    def __init__(self) -> None:
        self._early: list[str] = []
        self._write: Callable[[str], None] | None = None

    def __call__(self, text: str) -> None:
        """Show a text."""
        (self._early.append if self._write is None else self._write)(text)

    def begin(self, write: Callable[[bytes], None]) -> None:
        """Show from now on what there is to show."""
        self._write = lambda text: write(wire.NOTE + json.dumps({"note": text}).encode() + b"\n")
        for text in self._early:
            self._write(text)
        self._early.clear()


class ProxyChannel(LineChannel):
    """The lines of a client behind a proxy; ``declared`` takes the name that it gives itself."""

    def __init__(self, number: int, declared: Callable[[str], None]) -> None:
        self._first, self._declared = FIRST_LINES, declared
        super().__init__(number, number)

    def _take_line(self, line: bytes | None) -> None:
        if self._first and line is not None:
            self._first -= 1
            name = _client_name_in(line)
            if name:
                self._first = 0
                self._declared(name)
        super()._take_line(line)


def _client_name_in(line: bytes) -> str:
    """Return the name that a client gives itself in a message, or nothing."""
    try:
        params = json.loads(line)["params"]
        about = params.get("clientInfo") or params["_meta"][CLIENT_KEY]
        return declared_name(about["name"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ""


async def _move(board: OpenBoard, channel: LineChannel) -> None:
    """Let a proxy connect again, once nothing is under way, where its board is elsewhere."""
    await board.moves.wait()
    channel.write(wire.NOTE + json.dumps({"move": True}).encode() + b"\n")


async def serve_proxy(
    board: OpenBoard,
    number: int,
    caller: Caller,
    notes: ProxyNotes,
    stop: asyncio.Event,
    declared: Callable[[str], None],
) -> None:
    """Serve the client behind a proxy, over the descriptor of its socket, until it ends or ``stop`` is set."""
    channel = ProxyChannel(number, declared)
    notes.begin(channel.write)
    moving = asyncio.create_task(_move(board, channel), name="move a client")
    try:
        await serve_client(board.board, channel, caller, stop, board.note_settled)
    finally:
        moving.cancel()
        end_client_sessions(caller.client)
        for source in asking_sources(board.board):
            source.forget_client(caller.client)
    if stop.is_set():
        with contextlib.suppress(OSError):  # it is to start another daemon no sooner than it needs one
            os.write(number, wire.NOTE + json.dumps({"stop": True}).encode() + b"\n")
