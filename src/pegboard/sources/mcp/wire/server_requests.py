"""What a server asks and logs over one connection, and the call that it belongs to (G7, G9).

Over HTTP it comes on the stream of its call. Over stdio nothing says whose it is: there a request
belongs to the one call in flight. Imports the SDK: import late.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
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

from pegboard.core.access.extensions import TASK_METHODS, TASK_STATUS, related_task, with_related_task, with_task_ids
from pegboard.core.access.listed_items import alias
from pegboard.core.model.tools import JsonObject
from pegboard.ports import LOG_LEVELS, AskRefusedError, Client, Listener
from pegboard.sources.mcp.wire.only_client import ProcessClient
from pegboard.sources.mcp.wire.upstream_call import Call, Thunk
from pegboard.support.tasks import BackgroundTasks

log = logging.getLogger("pegboard.sources.mcp")

ROOTS: Final = "roots/list"
ASKED: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    ROOTS: "a request for its roots",
    **dict.fromkeys(TASK_METHODS, "a request about its tasks"),
}
"""The requests that a server may make of a client, and what they are called."""

MESSAGE: Final = "notifications/message"
_OF_CLIENT: Final = frozenset({ROOTS, *TASK_METHODS})
"""What is asked of a client whichever of its calls is under way."""
PASSED_ON: Final = frozenset({MESSAGE, TASK_STATUS, "notifications/elicitation/complete"})
"""The notifications that go to the client of a call, beside progress."""

NONE_IN_FLIGHT: Final = "No call is running over this connection, so there is no one to ask."
SEVERAL: Final = (
    "Several calls are under way over this connection and nothing says which of them this belongs to. "
    "From now on Pegboard makes one call at a time here."
)
_OVER = "The call that this belongs to is over."

RequestAnswer = JSONRPCResponse | JSONRPCError
ToServer = RequestAnswer | JSONRPCNotification


class ServerRequests:
    """The requests of a server to the clients of the calls over one connection.

    ``calls`` are the calls of tools under way, ``others`` what else may be asked back, each with its client.
    ``only_client`` is whom it means outside of calls, where there is one client alone; ``begun`` once it may be told.
    ``write`` sends it an answer, ``ambiguous`` is called where it asked while several calls were under way.
    ``logs`` takes what it logs.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: set[Call] = set()
        self.others: set[Call] = set()
        self.drained = asyncio.Event()
        self.drained.set()
        self._turn = asyncio.Lock()
        self._beside: Callable[[], Sequence[ServerRequests]] = lambda: (self,)
        self.only_client: ProcessClient | None = None
        self.begun = False
        self.write: Callable[[ToServer], Awaitable[None]] | None = None
        self.ambiguous: Callable[[], None] = _do_nothing
        self._tasks = BackgroundTasks()
        self.logs = LogMessages(self.calls, self._tasks)
        self._open: dict[int | str, asyncio.Task[JsonObject]] = {}
        self._outside_calls: set[asyncio.Task[JsonObject]] = set()

    def share_turns(self, turn: asyncio.Lock, users: Callable[[], Sequence[ServerRequests]]) -> None:
        """Take turns with the other users of a server that several boards use."""
        self._turn, self._beside = turn, users

    @asynccontextmanager
    async def wait_until_alone(self) -> AsyncGenerator[None]:
        """Wait until no other call is under way, in the order in which calls came."""
        async with self._turn:
            for each in self._beside():
                while each.calls:
                    each.drained.clear()
                    await each.drained.wait()
            yield

    def begin(self, call: Call) -> None:
        """Take a call that is being made."""
        self.calls.add(call)
        if self.logs.supported or (call.client is not None and call.client.wanted_task is not None):
            self.logs.watch(call)

    def begin_other(self, call: Call) -> None:
        """Take another request that is being made, and that its client may be asked back about."""
        self.others.add(call)
        self.logs.watch(call)

    def end(self, call: Call) -> bool:
        """Forget a call that is over, and cancel what it still asks; return whether it asks anything."""
        call.over = True
        for task in call.tasks:
            task.cancel()
        self.calls.discard(call)
        self.others.discard(call)
        if not self.calls and not self.drained.is_set():
            self.drained.set()
        return bool(call.tasks)

    def close(self) -> None:
        """Forget who listens and what is asked: the connection has ended."""
        self._unwatch()
        for task in self._outside_calls:
            task.cancel()
        self.logs.close()
        self.drained.set()

    async def ask_only_client(self, method: str, params: JsonObject) -> JsonObject:
        """Return what the client answers that is meant outside of calls; raises ``AskRefusedError``."""
        if self.only_client is None:
            raise AskRefusedError(NONE_IN_FLIGHT)
        return await self.only_client.ask(method, params)

    def take_client(self, client: ProcessClient | None) -> None:
        """Let the server mean this client outside of calls from now on."""
        watches = self.only_client is not None and self._tell_server in self.only_client.watchers
        self._unwatch()
        if self.only_client is not None and self.only_client is not client:
            self.only_client.become(client)
        self.only_client = client
        if watches or self.begun:
            self.watch_client()

    def watch_client(self) -> None:
        """Tell the server from now on what its only client says: that its roots have changed, how its tasks are."""
        self.begun = True
        if self.only_client is not None and not self.logs.modern:
            self.only_client.watchers.add(self._tell_server)

    def _unwatch(self) -> None:
        if self.only_client is not None:
            self.only_client.watchers.discard(self._tell_server)

    def _tell_server(self, method: str, params: JsonObject) -> None:
        given = dict(params) or None
        self._tasks.start(self._reply(JSONRPCNotification(jsonrpc="2.0", method=method, params=given)))

    def takes(self, message: object, call: Call | None = None) -> bool:
        """Take a message that is not of the protocol's own running; return whether it was one.

        ``call`` is the call on whose stream it came, where that is known.
        """
        match message:
            case JSONRPCRequest(method=method) if method in ASKED and not self.logs.modern:
                self._take_request(message, call)
                return True
            case JSONRPCNotification(method=method) if method in PASSED_ON:
                params = message.params
                if method == TASK_STATUS and params is not None:
                    params = with_task_ids(params, self._shown_task)
                return self.logs.pass_on(method, params, call)
            case JSONRPCNotification(method="notifications/cancelled", params={"requestId": str() | int() as number}):
                task = self._open.get(number)
                if task is not None:
                    task.cancel()
                return task is not None
            case _:
                return False

    def _take_request(self, request: JSONRPCRequest, call: Call | None) -> None:
        params = request.params or {}
        if call is None or (call not in self.calls and call not in self.others):
            call = self._call_of_request(params)
        only = self.only_client if not self.calls or request.method in _OF_CLIENT else None
        if only is not None and not only.means(request.method):
            only = None
        if request.method == ROOTS and only is not None and only.says_roots:
            call = None
        related = related_task(params)
        if related is not None:
            params = with_related_task(params, self._shown_task)
        if call is not None:
            asked, tasks = ask(call, request.method, params), call.tasks
        elif only is not None:
            asked, tasks = only.ask(request.method, params), self._outside_calls
        else:
            self._refuse(request)
            return
        task = asyncio.ensure_future(asked if related is None else _about_task(asked, related))
        self._open[request.id] = task
        tasks.add(task)

        def finish_request(task: asyncio.Task[JsonObject]) -> None:
            tasks.discard(task)
            if self._open.get(request.id) is task:
                del self._open[request.id]
            if not task.cancelled() or (call is not None and call.over):  # else the server took it back
                self._tasks.start(self._reply(_answer_to_server(request, task)))

        task.add_done_callback(finish_request)

    def _call_of_request(self, params: JsonObject) -> Call | None:
        """Return the call that a request belongs to: that of its task, else the one that is under way."""
        related = related_task(params)
        for other in self.others if related is not None else ():
            if other.arguments.get("taskId") == related:
                return other
        under_way = self.calls or self.others
        return next(iter(under_way)) if len(under_way) == 1 else None

    def _shown_task(self, number: str) -> str:
        return alias(self.name, number)

    def _refuse(self, request: JSONRPCRequest) -> None:
        """Answer a request that belongs to no call, or to no one knows which."""
        if self.calls:
            log.warning(
                "server %r asked for %s while %d calls were running: refused; from now on it gets one call at a time",
                self.name,
                ASKED[request.method],
                len(self.calls),
            )
            self.ambiguous()
        self._tasks.start(self._reply(_error(request, SEVERAL if self.calls else NONE_IN_FLIGHT)))

    async def _reply(self, answer: ToServer) -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            if self.write is not None:
                await self.write(answer)


class LogMessages:
    """The log messages of one server and those who take them.

    ``calls`` are the calls under way. ``supported``: the server logs. ``modern``: its level is in the
    ``_meta`` of each call; else ``set_level`` tells it the lowest level that anyone wants.
    """

    def __init__(self, calls: set[Call], tasks: BackgroundTasks) -> None:
        self.supported = False
        self.modern = False
        self.set_level: Callable[[str], Awaitable[None]] | None = None
        self._calls = calls
        self._tasks = tasks
        self._listeners: dict[Listener, Callable[[], None]] = {}
        self._level: str | None = None

    def watch(self, call: Call) -> None:
        """Let whoever makes a call hear what the server logs outside of calls too."""
        listener = call.client.listener if call.client is not None else None
        if listener is not None and listener not in self._listeners and listener.open:
            self._prune()
            self._listeners[listener] = listener.watch(self._level_changed)

    def _prune(self) -> None:
        for listener in [listener for listener in self._listeners if not listener.open]:
            self._listeners.pop(listener)()

    def close(self) -> None:
        """Forget who listens: the connection has ended."""
        for end in self._listeners.values():
            end()
        self._listeners.clear()

    def pass_on(self, method: str, params: object, call: Call | None = None) -> bool:
        """Pass a notification on to whom it belongs to; return that it was taken.

        That is the client of its call; with several in flight over stdio each of their clients gets it
        once. Outside of any call it goes to whoever has called over this connection and still listens.
        """
        if not isinstance(params, dict):
            return True
        given = cast("dict[str, Any]", params)
        calls = {call} if call is not None and call in self._calls else self._calls
        notified: set[object] = set()
        for each in list(calls):
            client = each.client
            if client is not None and (client.listener or client) not in notified:
                notified.add(client.listener or client)
                each.pass_on(_notification(client, method, given))
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
        level = client.level or ("debug" if client.listener is not None and self.supported else None)
        return meta if level is None else {**(meta or {}), LOG_LEVEL_META_KEY: level}

    async def set_log_level_for(self, client: Client) -> None:
        """Tell the server before a call what its client wants, where it does not know it yet."""
        if self.supported and not self.modern and client.level is not None and client.level != self._level:
            await self._set_lowest_level(client.level)

    def _level_changed(self) -> None:
        if self.supported and not self.modern:
            self._tasks.start(self._set_lowest_level())

    async def _set_lowest_level(self, *more: str) -> None:
        """Tell the server the lowest level that anyone wants."""
        levels = {*more, *(listener.level for listener in self._listeners if listener.open)}
        levels |= {call.client.level for call in self._calls if call.client is not None}
        wanted = next((level for level in LOG_LEVELS if level in levels), None)
        if wanted is not None and wanted != self._level and self.set_level is not None:
            self._level = wanted
            await self.set_level(wanted)


async def ask(call: Call, method: str, params: JsonObject) -> JsonObject:
    """Return what the client of a call answers; raises ``AskRefusedError``."""
    if call.client is None:
        raise AskRefusedError(f"The client of this call does not take {ASKED[method]}.")
    with call.pause_timeout():
        return await call.client.ask(method, params)


async def _about_task(asked: Awaitable[JsonObject], number: str) -> JsonObject:
    """Return an answer about a task, with the id by which the server knows it."""
    return with_related_task(await asked, lambda _: number)


def _answer_to_server(request: JSONRPCRequest, asked: asyncio.Task[JsonObject]) -> RequestAnswer:
    """Return the answer to a request of the server."""
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


def _error(request: JSONRPCRequest, message: str, code: int = INVALID_REQUEST, data: object = None) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request.id, error=ErrorData(code=code, message=message, data=data))


def _do_nothing() -> None:
    """Do nothing."""


def _notification(client: Client, method: str, params: JsonObject) -> Thunk:
    async def tell_client() -> None:
        await client.tell(method, params)

    return tell_client
