"""Clients of the handshake era: their connections, what they are asked by upstreams, log messages to them (G7, G9)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

from pegboard.core.access.extensions import TASK_METHODS, TASK_STATUS, told_servers, with_related_task
from pegboard.core.model.tools import JsonObject
from pegboard.gateway.protocol.jsonrpc import Message
from pegboard.gateway.protocol.request_identity import is_modern
from pegboard.ports import LOG_LEVELS, AskRefusedError

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.session import ServerSession

    from pegboard.gateway.protocol.board_port import Caller

MOST: Final = 64
"""How many questions to one principal may be open at once."""
PATIENCE: Final = 600.0
"""How long a client may take to answer, in seconds."""
ACCEPTED_WITHIN: Final = 5.0
"""How long a client may take to accept a log message outside of calls, in seconds."""
MOST_WAITING: Final = 1000
"""How many of them may wait for a client that does not accept them."""
_FORWARDER: Final = "pegboard/log_forwarder"
_TASKS: Final = "pegboard/tasks"
_CAPABILITIES: Final = "pegboard/capabilities"
_DECLARES: Final = "pegboard/declares"

Notify = Callable[[Message], Awaitable[None]]
AskClient = Callable[[str, JsonObject], Awaitable[JsonObject]]

_CAPABILITY_OF: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
    **dict.fromkeys(TASK_METHODS, "tasks"),
}


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


# -- what upstreams ask of clients ------------------------------------------------------------------


def askable(capabilities: object) -> bool:
    """Return whether a client supports any request that an upstream may make."""
    if not isinstance(capabilities, Mapping):
        return False
    declared = cast("Mapping[str, Any]", capabilities)
    return any(declared.get(name) is not None for name in _CAPABILITY_OF.values())


def missing_capability(capabilities: Mapping[str, Any], method: str, params: JsonObject) -> str | None:
    """Return the capability that a client lacks for this request, or None.

    >>> missing_capability({"elicitation": {}}, "elicitation/create", {"mode": "url"})
    'elicitation by URL'
    """
    name = _CAPABILITY_OF.get(method, method)
    declared = capabilities.get(name)
    if declared is None:
        return name
    if name == "elicitation":
        mode = str(params.get("mode", "form"))
        if mode not in declared and not (mode == "form" and not declared):  # {} is that of forms alone
            return "elicitation by URL" if mode == "url" else f"elicitation of the mode {mode!r}"
    if name == "sampling" and ("tools" in params or "toolChoice" in params) and declared.get("tools") is None:
        return "sampling with tools"
    return None


def demand(capabilities: Mapping[str, Any], method: str, params: JsonObject) -> None:
    """Raise ``AskRefusedError`` where a client does not support a request."""
    missing = missing_capability(capabilities, method, params)
    if missing is not None:
        raise AskRefusedError(f"The client of this call does not take {missing}.")


class OpenQuestions:
    """The number of questions that each principal has not answered yet; at most ``MOST``."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    @contextmanager
    def one_more(self, principal: str) -> Generator[None]:
        """Count a question as open while the context lasts; raises ``AskRefusedError`` where there are too many."""
        if self._counts[principal] >= MOST:
            raise AskRefusedError(f"{MOST} questions to this client's owner are open: no more are asked.")
        self._counts[principal] += 1
        try:
            yield
        finally:
            self._counts[principal] -= 1
            if not self._counts[principal]:
                del self._counts[principal]


# -- log messages, and the client of a call --------------------------------------------------------


def requested_level(method: str, params: JsonObject, level: str | None, *, default: bool) -> bool:
    """Return whether a notification is to be passed on; ``default`` counts where no level was chosen.

    >>> requested_level("notifications/message", {"level": "info"}, "warning", default=True)
    False
    """
    if method != "notifications/message":
        return True
    if level is None:
        return default
    given = params.get("level")
    return given not in LOG_LEVELS or LOG_LEVELS.index(given) >= LOG_LEVELS.index(level)


class LogForwarder:
    """The way of upstreams' log messages outside of calls to a connection of the handshake era."""

    def __init__(self, connection: Connection) -> None:
        self.level: str | None = None
        self.open = True
        self._connection = connection
        self._watchers: list[Callable[[], None]] = []
        self._waiting = 0
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def choose(self, level: str) -> None:
        """Set the lowest level that the client receives from now on."""
        self.level = level
        for changed in tuple(self._watchers):
            changed()

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call back when the level changes; returns what ends that."""
        self._watchers.append(changed)

        def end() -> None:
            if changed in self._watchers:
                self._watchers.remove(changed)

        return end

    def tell(self, method: str, params: JsonObject) -> None:
        """Pass a notification on, after those before; a client that accepts none loses the rest."""
        if method == TASK_STATUS:
            known = tasks_of(self._connection).get(params.get("taskId", ""))
            if known is None:  # it is another client's
                return
            params = {**params, "taskId": known}
        if (
            not self.open
            or self._waiting >= MOST_WAITING
            or not requested_level(method, params, self.level, default=True)
        ):
            return
        self._waiting += 1
        task = asyncio.ensure_future(self._send(method, params))
        self._tasks.add(task)
        task.add_done_callback(self._finish_task)

    def _finish_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._waiting -= 1

    async def _send(self, method: str, params: JsonObject) -> None:
        try:
            async with self._turn, asyncio.timeout(ACCEPTED_WITHIN):
                await self._connection.notify(method, params)
        except TimeoutError:
            pass

    def close(self) -> None:
        """Stop: the connection is closed."""
        self.open = False
        self._watchers.clear()
        for task in self._tasks:
            task.cancel()


def forwarder_of(connection: Connection) -> LogForwarder:
    """Return what passes notifications on to a connection; the same as long as it is open."""
    known = connection.state.get(_FORWARDER)
    if known is None:
        known = connection.state[_FORWARDER] = LogForwarder(connection)
        connection.exit_stack.callback(known.close)
    return known


def tasks_of(connection: Connection) -> dict[str, str]:
    """Return the tasks that a connection has begun: how its client knows each, by how Pegboard does."""
    return connection.state.setdefault(_TASKS, {})


def capabilities_of(connection: Connection) -> dict[str, Any]:
    """Return the capabilities that a client has declared in its handshake, as they stand on the wire."""
    known: dict[str, Any] | None = connection.state.get(_CAPABILITIES)
    if known is None:
        declared = connection.client_capabilities
        if declared is None:
            return {}
        known = connection.state[_CAPABILITIES] = declared.model_dump(by_alias=True, exclude_none=True)
    return known


class HandshakeClient:
    """The client of one call in the handshake era: asked by requests on the stream of the call."""

    __slots__ = ("_caller", "_connection", "_notify", "_questions", "_send", "listener", "wanted_task")

    def __init__(
        self,
        connection: Connection,
        caller: Caller,
        questions: OpenQuestions,
        listener: LogForwarder,
        notify: Notify,
        send: AskClient,
        task: JsonObject | None = None,
    ) -> None:
        self.listener = listener
        self.wanted_task = task
        self._connection = connection
        self._caller = caller
        self._questions = questions
        self._notify = notify
        self._send = send

    @property
    def level(self) -> str | None:
        """Return the level that the connection has chosen."""
        return self.listener.level

    @property
    def declares(self) -> JsonObject:
        """Return what its servers are told that it can do besides."""
        state = self._connection.state
        known: JsonObject | None = state.get(_DECLARES)
        if known is None:
            known = state[_DECLARES] = told_servers(capabilities_of(self._connection), modern=False)
        return known

    async def ask(self, method: str, params: JsonObject, *, about: str = "") -> JsonObject:  # noqa: ARG002
        """Return what the client answers; raises ``AskRefusedError``."""
        demand(capabilities_of(self._connection), method, params)
        params = with_related_task(params, lambda number: tasks_of(self._connection).get(number, number))
        if params.get("mode") == "url" and "elicitationId" not in params:  # demanded before 2026-07-28
            params = {**params, "elicitationId": uuid4().hex}
        with self._questions.one_more(self._caller.principal):
            try:
                async with asyncio.timeout(PATIENCE):
                    return await self._send(method, params)
            except TimeoutError:
                raise AskRefusedError(f"The client of this call did not answer within {PATIENCE:g} s.") from None

    async def tell(self, method: str, params: JsonObject) -> None:
        """Pass a notification on, on the stream of the call; how a task is belongs to no call."""
        if method == TASK_STATUS:
            self.listener.tell(method, params)
        elif requested_level(method, params, self.level, default=True):
            await self._notify({"jsonrpc": "2.0", "method": method, "params": dict(params)})
