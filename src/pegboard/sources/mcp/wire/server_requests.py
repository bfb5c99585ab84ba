"""What a server asks and says over one connection, and the call that it belongs to (G7, G9).

Over HTTP it comes on the stream of its call. Over stdio nothing says whose it is: there a request
belongs to the one call in flight. Imports the SDK: import late.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from typing import Any, Final, cast

import anyio
from mcp_types import (
    INVALID_REQUEST,
    LOG_LEVEL_META_KEY,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from pegboard.core.model.tools import JsonObject
from pegboard.ports import LOG_LEVELS, AskRefusedError, Client, Listener, Progress
from pegboard.sources.mcp.wire.timeouts import TimeLimit

log = logging.getLogger("pegboard.sources.mcp")

ASKED: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "a request for its roots",
}
"""The requests that a server may make of a client, and what they are called."""
MESSAGE: Final = "notifications/message"
SAID: Final = frozenset({MESSAGE, "notifications/elicitation/complete"})
"""What a server says to the client of a call, beside progress."""

_NONE_IN_FLIGHT = "No call is under way over this connection: Pegboard has nobody to ask."
_SEVERAL = (
    "Several calls are under way over this connection and nothing says which of them this belongs to. "
    "From now on Pegboard makes one call at a time here."
)
_LAST_WORDS = 1.0
_OVER = "The call that this belongs to is over."

Thunk = Callable[[], Awaitable[None]]
Message = JSONRPCResponse | JSONRPCError


class Call:
    """Hold one call under way: what is sent, who can be asked, and the timeout, which does not run meanwhile.

    ``meta`` is the ``_meta`` that goes along, ``progress`` takes reports. ``limit`` is set before anything
    is sent. ``note`` takes what is to be passed on before the answer, in the order of arrival, where the
    call goes around the SDK; it returns False where the answer is there already.
    """

    __slots__ = (
        "_asking", "_last", "_left", "arguments", "client", "limit", "meta", "name", "note", "over",
        "progress", "tasks",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        arguments: JsonObject,
        meta: dict[str, Any] | None,
        progress: Progress | None,
        client: Client | None,
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.meta = meta
        self.progress = progress
        self.client = client
        self.limit: TimeLimit | None = None
        self.note: Callable[[Thunk], bool] | None = None
        self.over = False
        self.tasks: set[asyncio.Task[JsonObject]] = set()
        self._asking = 0
        self._left: float | None = None
        self._last: asyncio.Task[None] | None = None

    @contextmanager
    def asking(self) -> Generator[None]:
        """Hold the timeout of the call: it does not run while its client answers."""
        limit = self.limit
        self._asking += 1
        if self._asking == 1 and limit is not None:
            self._left = limit.hold()
        try:
            yield
        finally:
            self._asking -= 1
            if not self._asking and self._left is not None and limit is not None:
                limit.begin(self._left)
                self._left = None

    def pass_on(self, what: Thunk) -> None:
        """Pass something on to the client after what came before, and before the answer."""
        if self.note is None or not self.note(what):
            self._last = asyncio.ensure_future(_after(self._last, what))

    async def ended(self) -> None:
        """Wait until its client knows that nothing is asked any more: its stream ends with the call."""
        await asyncio.wait(self.tasks, timeout=_LAST_WORDS)

    async def settle(self) -> None:
        """Wait for what is still to be passed on."""
        while self._last is not None and not self._last.done():
            await asyncio.wait({self._last})


async def _after(before: asyncio.Task[None] | None, what: Thunk) -> None:
    if before is not None:
        await asyncio.wait({before})
    try:
        await what()
    except Exception:
        log.exception("passing a notification on failed")


class ServerRequests:
    """Take what a server asks and says over one connection.

    ``write`` sends it an answer, ``set_level`` tells it the lowest level of the log messages that are
    wanted, ``ambiguous`` is called where it asked while several calls were under way.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.modern = False
        self.logs = False
        self.calls: set[Call] = set()
        self.drained = asyncio.Event()
        self.drained.set()
        self.write: Callable[[Message], Awaitable[None]] | None = None
        self.set_level: Callable[[str], Awaitable[None]] | None = None
        self.ambiguous: Callable[[], None] = _nothing
        self._open: dict[int | str, asyncio.Task[JsonObject]] = {}
        self._listeners: dict[Listener, Callable[[], None]] = {}
        self._level: str | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, call: Call) -> None:
        """Take a call that is being made."""
        self.calls.add(call)
        if not self.logs or call.client is None:
            return
        listener = call.client.listener
        if listener is not None and listener not in self._listeners and listener.open:
            self._prune()
            self._listeners[listener] = listener.watch(self._level_changed)

    def end(self, call: Call) -> bool:
        """Forget a call that is over; what it still asks is asked no more. Return whether there is such."""
        call.over = True
        for task in call.tasks:
            task.cancel()
        self.calls.discard(call)
        if not self.calls and not self.drained.is_set():
            self.drained.set()
        return bool(call.tasks)

    def _prune(self) -> None:
        for listener in [listener for listener in self._listeners if not listener.open]:
            self._listeners.pop(listener)()

    def close(self) -> None:
        """Forget who listens: the connection has ended."""
        for end in self._listeners.values():
            end()
        self._listeners.clear()
        self.drained.set()

    # -- requests ----------------------------------------------------------------------------------

    def takes(self, message: object, call: Call | None = None) -> bool:
        """Take a message that is not of the protocol's own running; return whether it was one.

        ``call`` is the call on whose stream it came, where that is known.
        """
        match message:
            case JSONRPCRequest(method=method) if method in ASKED and not self.modern:
                self._asked(message, call)
                return True
            case JSONRPCNotification(method=method) if method in SAID:
                return self.said(method, message.params, call)
            case JSONRPCNotification(method="notifications/cancelled", params={"requestId": str() | int() as number}):
                task = self._open.get(number)
                if task is not None:
                    task.cancel()
                return task is not None
            case _:
                return False

    def _asked(self, request: JSONRPCRequest, call: Call | None) -> None:
        refused = ""
        if call is None or call not in self.calls:
            call = next(iter(self.calls)) if len(self.calls) == 1 else None
            refused = _SEVERAL if self.calls else _NONE_IN_FLIGHT
        if call is None and self.calls:
            log.warning(
                "server %r asked for %s while %d calls were under way: refused; from now on it gets one call at a time",
                self.name,
                ASKED[request.method],
                len(self.calls),
            )
            self.ambiguous()
        if call is None:
            self._start(self._reply(_error(request, refused)))
            return
        task = asyncio.ensure_future(ask(call, request.method, request.params or {}))
        self._open[request.id] = task
        call.tasks.add(task)

        def done(task: asyncio.Task[JsonObject]) -> None:
            call.tasks.discard(task)
            if self._open.get(request.id) is task:
                del self._open[request.id]
            if not task.cancelled() or call.over:  # else the server took it back
                self._start(self._reply(_answer(request, task)))

        task.add_done_callback(done)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that outlives the call."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reply(self, answer: Message) -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            if self.write is not None:
                await self.write(answer)

    # -- log messages ------------------------------------------------------------------------------

    def said(self, method: str, params: object, call: Call | None = None) -> bool:
        """Pass a notification on to whom it belongs to; return whether it is of this kind.

        That is the client of its call; with several in flight over stdio each of their clients gets it
        once. Outside of any call it goes to whoever has called over this connection and still listens.
        """
        if not isinstance(params, dict):
            return True
        given = cast("dict[str, Any]", params)
        calls = {call} if call is not None and call in self.calls else self.calls
        told: set[object] = set()
        for each in list(calls):
            client = each.client
            if client is not None and (client.listener or client) not in told:
                told.add(client.listener or client)
                each.pass_on(_telling(client, method, given))
        if not calls:
            self._prune()
            for listener in self._listeners:
                listener.tell(method, given)
        return True

    def meta(self, call: Call) -> dict[str, Any] | None:
        """Return the ``_meta`` of a call with the level that its client wants, in the era that has it there.

        One of the handshake era that has chosen none gets all that a server logs by itself.
        """
        meta, client = call.meta, call.client
        if not self.modern or client is None:
            return meta
        level = client.level or ("debug" if client.listener is not None and self.logs else None)
        return meta if level is None else {**(meta or {}), LOG_LEVEL_META_KEY: level}

    async def tell_level(self, client: Client) -> None:
        """Tell the server before a call what its client wants, where it does not know it yet."""
        if self.logs and not self.modern and client.level is not None and client.level != self._level:
            await self._agree(client.level)

    def _level_changed(self) -> None:
        if self.logs and not self.modern:
            self._start(self._agree())

    async def _agree(self, *more: str) -> None:
        """Tell the server the lowest level that anybody wants."""
        levels = {*more, *(listener.level for listener in self._listeners if listener.open)}
        levels |= {call.client.level for call in self.calls if call.client is not None}
        wanted = next((level for level in LOG_LEVELS if level in levels), None)
        if wanted is not None and wanted != self._level and self.set_level is not None:
            self._level = wanted
            await self.set_level(wanted)


async def ask(call: Call, method: str, params: JsonObject) -> JsonObject:
    """Return what the client of a call answers; raises ``AskRefusedError``."""
    if call.client is None:
        raise AskRefusedError(f"The client of this call does not take {ASKED[method]}.")
    with call.asking():
        return await call.client.ask(method, params)


def _answer(request: JSONRPCRequest, asked: asyncio.Task[JsonObject]) -> Message:
    """Return what a server is answered."""
    if asked.cancelled():
        return _error(request, _OVER)
    match asked.exception():
        case None:
            return JSONRPCResponse(jsonrpc="2.0", id=request.id, result=dict(asked.result()))
        case AskRefusedError() as error:
            return _error(request, error.message, error.code, error.data)
        case error:
            log.error("passing %s on failed", request.method, exc_info=error)
            return _error(request, "Pegboard could not pass this on.")


def _telling(client: Client, method: str, params: JsonObject) -> Thunk:
    async def tell() -> None:
        await client.tell(method, params)

    return tell


def _error(request: JSONRPCRequest, message: str, code: int = INVALID_REQUEST, data: object = None) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request.id, error=ErrorData(code=code, message=message, data=data))


def _nothing() -> None:
    """Do nothing."""
