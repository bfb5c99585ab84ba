"""Commands of thin clients, which the daemon runs over the board that is open there."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pegboard.cli.caller import CALLER, AgreementNeeded, CommandCaller
from pegboard.cli.exit_codes import NEEDS_PERSON
from pegboard.errors import UsageError
from pegboard.thin.wire import Message

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.daemon.requests import ClientFront, CommandOutput


_Pieces = asyncio.Queue[Message | None]
"""What is to be sent to a thin client, in order, and that it ends."""


class _Stream(io.TextIOBase):
    """A standard output whose texts go to a thin client, in the order in which they are written."""

    def __init__(self, pieces: _Pieces, name: str) -> None:
        self._pieces, self._name = pieces, name

    def write(self, text: str) -> int:
        self._pieces.put_nowait({self._name: text})
        return len(text)


async def run_command(front: ClientFront, board: Pegboard, output: CommandOutput) -> int:
    """Run the command of a thin client as its own process would, and return the exit code."""
    parse = await asyncio.to_thread(_parser)
    from pegboard.cli.call_results import forget_old_results  # it takes long, and is there once the parser is

    pieces: _Pieces = asyncio.Queue()
    deferred: list[Coroutine[Any, Any, int]] = []
    CALLER.set(_caller(front, board, pieces, deferred))
    forget_old_results()
    sending = asyncio.create_task(_send(pieces, output))
    try:
        code = parse(cast("Sequence[str]", front.fields.get("argv") or ()))
        for coroutine in deferred:
            code = await coroutine
    except AgreementNeeded as needed:
        pieces.put_nowait({"ask": needed.lines})
        code = NEEDS_PERSON
    finally:
        pieces.put_nowait(None)
    await sending
    return code


@cache
def _parser() -> Any:
    """Return what parses a command line: importing it takes as long as many commands."""
    from pegboard.cli.command_line import run_parsed

    return run_parsed


def _caller(
    front: ClientFront,
    board: Pegboard,
    pieces: _Pieces,
    deferred: list[Coroutine[Any, Any, int]],
) -> CommandCaller:
    """Return the process that has given a command; what the command does is deferred until its line is parsed."""

    @asynccontextmanager
    async def open_board_of_front(config: Path | None) -> AsyncGenerator[Pegboard]:
        if (None if config is None else str(config)) != front.text("config"):
            raise UsageError("--config is ambiguous here.", hint="Write --config=PATH.")
        yield board

    def defer(coroutine: Coroutine[Any, Any, int]) -> int:
        deferred.append(coroutine)
        return 0

    columns, given = front.fields.get("columns"), front.text("stdin")
    return CommandCaller(
        out=cast("Any", _Stream(pieces, "out")),
        err=cast("Any", _Stream(pieces, "err")),
        keeps_all=front.fields.get("file") is True,
        columns=columns if isinstance(columns, int) and columns > 0 else None,
        folder=Path(front.cwd),
        read_input=lambda: b"" if given is None else base64.b64decode(given),
        save=lambda path, data: pieces.put_nowait({"save": str(path), "data": base64.b64encode(data).decode()}),
        agreed=front.fields.get("agreed") is True,
        token=front.text("token") or "",
        board=open_board_of_front,
        defer=defer,
    )


async def _send(pieces: _Pieces, output: CommandOutput) -> None:
    while (piece := await pieces.get()) is not None:
        await output.send(piece)
