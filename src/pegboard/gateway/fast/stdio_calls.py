"""Calls over stdio that go around the SDK, in both eras (see :mod:`pegboard.gateway.fast.tools_call`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from mcp.shared.dispatcher import coerce_request_id
from mcp_types import CONNECTION_CLOSED

from pegboard.gateway.fast.questions import PREFIX
from pegboard.gateway.fast.tools_call import FastCall, FastToolCalls
from pegboard.gateway.protocol.jsonrpc import Message, dump_message, parse_message

if TYPE_CHECKING:
    from mcp.server.connection import Connection

    from pegboard.gateway.handlers.server import Gateway
    from pegboard.gateway.protocol.board_port import Caller

_PREFIX: Final = PREFIX.encode()


class LineWriter(Protocol):
    """The writer of lines to the client."""

    def __call__(self, data: bytes, /, *, more: bool = False) -> None:
        """Write, in order, without waiting; ``more``: other lines are likely to follow at once."""
        ...


class FastStdioCalls:
    """The plain calls of one client, each run in a task of its own and answered by a line.

    ``started`` and ``ended`` are called with the id of each.
    """

    def __init__(
        self,
        gateway: Gateway,
        caller: Caller,
        write: LineWriter,
        started: Callable[[str | int], None],
        ended: Callable[[str | int], None],
    ) -> None:
        self._gateway = gateway
        self._caller = caller
        self._write = write
        self._started = started
        self._ended = ended
        self._calls = FastToolCalls(gateway)
        self._back = self._calls.ways_back(caller, self._notify)
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[str | int, asyncio.Task[None]] = {}
        self._cancelled: set[asyncio.Task[None]] = set()

    def accept(self, line: bytes, *, modern: bool) -> bool:
        """Return whether a line is answered here: a plain call, or the answer to a question of one."""
        if b'"tools/call"' in line and self._start(line, modern=modern):
            return True
        questions = self._calls.questions
        if questions.open and _PREFIX in line and questions.resolve(parse_message(line), self._caller):
            return True
        if self._tasks and b'"notifications/cancelled"' in line:
            self._cancel(parse_message(line))
        return False

    async def close(self, within: float) -> None:
        """Cancel every call; wait for their ends for as many seconds."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=within)

    def _start(self, line: bytes, *, modern: bool) -> bool:
        connection = None if modern else self._gateway.connections.find(None, self._caller)
        if not modern and connection is None:
            return False
        call = self._calls.parse(parse_message(line), modern=modern)
        if call is None:
            return False
        given = call.number
        number = given if type(given) is int else coerce_request_id(given)
        if number in self._tasks:
            return False
        self._tasks[number] = self._loop.create_task(self._answer_call(call, number, connection), name="call")
        self._started(given)
        return True

    async def _answer_call(self, call: FastCall, number: str | int, connection: Connection | None) -> None:
        """Run a call and write its answer; one that the client cancelled must no longer be answered.

        ``number`` is its id as the SDK keeps it: a number that is written as a text is the number.
        """
        message: Message | None = None
        try:
            message = await self._calls.answer(self._caller, call, connection, self._back)
        finally:
            task = self._tasks.pop(number)
            if message is None and task not in self._cancelled:
                error = {"code": CONNECTION_CLOSED, "message": "Connection closed"}
                message = {"jsonrpc": "2.0", "id": call.number, "error": error}
            self._cancelled.discard(task)
            if message is not None:
                self._write(dump_message(message) + b"\n", more=bool(self._tasks))
            self._ended(call.number)

    async def _notify(self, message: dict[str, Any]) -> None:
        self._write(dump_message(message) + b"\n")

    def _cancel(self, message: Message | None) -> None:
        match message:
            case {"method": "notifications/cancelled", "params": {"requestId": str() | int() as number}}:
                task = self._tasks.get(coerce_request_id(number))
                if task is not None:
                    self._cancelled.add(task)
                    asyncio.get_running_loop().call_soon(task.cancel)  # not before its first step
            case _:
                pass
