"""One process of a server that several boards of the daemon use (G12). Imports the SDK: import late.

Each user has a connection of its own, with its own list of tools, pins, names and masks. They share what is written and
read: requests have numbers that no other user's have, an answer goes to who asked, and a notification to all. The
handshake happens once. What the server asks belongs to the user whose calls are under way; what the roots are is asked
of all.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
from mcp.shared.dispatcher import coerce_request_id
from mcp_types import (
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from pydantic_core import to_json

from pegboard.core.model.specs import ServerSpec
from pegboard.ports import LOG_LEVELS, AskRefusedError
from pegboard.sources.mcp.transports.server_process import ServerProcess
from pegboard.sources.mcp.wire.messages import Message, parse_message, requests_answered
from pegboard.sources.mcp.wire.only_client import DIFFERENT_ROOTS
from pegboard.sources.mcp.wire.request_outcomes import FIRST_OWN_ID, InFlight, RequestNumbers
from pegboard.sources.mcp.wire.server_requests import ASKED, NONE_IN_FLIGHT, PASSED_ON, ROOTS, SEVERAL
from pegboard.support.mcp_constants import SUBSCRIPTION_KEY
from pegboard.support.tasks import BackgroundTasks, detached_context, start_detached

if TYPE_CHECKING:
    from pegboard.core.model.tools import JsonObject
    from pegboard.sources.confinement import RefusalReader
    from pegboard.sources.mcp.transports.launch import Launches
    from pegboard.sources.mcp.wire.open_connection import OpenConnection

_ANSWER: Final = re.compile(rb'\{"jsonrpc":\s?"2\.0",\s?"id":\s?(\d{1,18}),\s?"(?:result|error)":')
_INITIALIZED: Final = "notifications/initialized"


class SharedProcess:
    """A process with those who use it; ``ended`` is called once it takes no more of them.

    It is to its ``process`` what the connection is to that of one user.
    """

    def __init__(self, message_limit: int, ended: Callable[[], None]) -> None:
        self.message_limit = message_limit
        self.refusals: RefusalReader | None = None
        self.shares: list[ProcessShare] = []
        self.numbers = itertools.count(FIRST_OWN_ID)
        self.owners: dict[int, ProcessShare] = {}
        self.process = ServerProcess(self, self._take_oversized)
        self.process.route = self._route
        self.process.on_end = self._note_end
        self.turn = asyncio.Lock()
        self.one_at_a_time = False
        self.takes_users = True
        self._ended = ended
        self._starting: asyncio.Future[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._pid: int | None = None
        self._greeting: int | None = None
        self._greeted: asyncio.Future[Message] | None = None
        self._initialized = False
        self._tasks = BackgroundTasks()

    # -- what a process reports to its connection --------------------------------------------------

    def note_pid(self, number: int) -> None:
        """Note the number of the process."""
        self._pid = number
        for share in self.shares:
            share.live.note_pid(number)

    def note_exit(self, how: str) -> None:
        """Note how it ended."""
        for share in self.shares:
            share.live.note_exit(how)

    @property
    def up(self) -> bool:
        """Return whether it has answered any of its users."""
        return any(share.live.up for share in self.shares)

    def add_stderr(self, text: str) -> None:
        """Let each user keep a line that it wrote to its standard error."""
        for share in self.shares:
            share.live.add_stderr(text)

    # -- its users ---------------------------------------------------------------------------------

    async def start(self, share: ProcessShare, spec: ServerSpec, launches: Launches) -> None:
        """Take a user, and start the process with the first one; raises as the start does, for all who wait for it."""
        self.shares.append(share)
        share.live.server_requests.share_turns(self.turn, lambda: [one.live.server_requests for one in self.shares])
        if self.one_at_a_time:
            share.live.server_requests.ambiguous()
        if self._starting is None:
            self._starting = asyncio.ensure_future(self.process.start(spec, launches))
            self._starting.add_done_callback(self._note_start)
        try:
            await asyncio.shield(self._starting)
        except BaseException:
            await self.leave(share, ends=False)
            raise
        if self._pid is not None:
            share.live.note_pid(self._pid)

    def _note_start(self, starting: asyncio.Future[None]) -> None:
        if starting.cancelled() or starting.exception() is not None:
            self.close()

    def close(self) -> None:
        """Take no more users."""
        self.takes_users = False
        self._ended()

    def _note_end(self) -> None:
        self.close()
        for share in tuple(self.shares):
            share.fresh.set()

    async def leave(self, share: ProcessShare, *, ends: bool) -> None:
        """Let a user go; the process ends with the last one, or where this one found that it is of no use."""
        self.owners = {number: owner for number, owner in self.owners.items() if owner is not share}
        try:
            if self.shares == [share] or ends or self.process.eof:
                if self._stopping is None:
                    self.close()
                    self._tasks.cancel()
                    self._stopping = start_detached(self._stop())
                await asyncio.shield(self._stopping)
        finally:
            self.shares.remove(share)  # only now: how the process ended is noted for it, too

    async def _stop(self) -> None:
        assert self._starting is not None
        await asyncio.wait({self._starting})
        if not self._starting.cancelled() and self._starting.exception() is None:
            await self.process.stop(up=self.up)

    # -- what it prints ----------------------------------------------------------------------------

    def _route(self, line: bytes) -> bool:
        """Give a line to those whom it is for; always returns that it was taken."""
        if (found := _ANSWER.match(line)) is not None:
            self._take_answer(int(found[1]), line)
            return True
        message = parse_message(line)
        if message is None:
            named = [number for number in map(coerce_request_id, requests_answered(line)) if number in self.owners]
            for number in named:
                self._take_answer(number, line)
            if not named:
                self._give_line(self.shares, line)
        elif "method" not in message:
            self._take_answer(coerce_request_id(message.get("id") or 0), line)
        elif "id" in message:
            self._take_request(message, line)
        else:
            self._give_line(self._recipients_of(message), line)
        return True

    def _take_answer(self, number: Any, line: bytes) -> None:
        if number == self._greeting and self._greeted is not None and not self._greeted.done():
            self._note_greeting(line)
        owner = self.owners.get(number) if isinstance(number, int) else None
        if owner is not None:
            owner.take(line)

    def _note_greeting(self, line: bytes) -> None:
        assert self._greeted is not None
        answer = parse_message(line) or {}
        self._greeted.set_result({name: answer[name] for name in ("result", "error") if name in answer})
        if "result" not in answer:
            self._greeting = self._greeted = None

    @staticmethod
    def _give_line(shares: Sequence[ProcessShare], line: bytes) -> None:
        for share in tuple(shares):
            share.take(line)

    def _recipients_of(self, message: Message) -> Sequence[ProcessShare]:
        """Return whom a notification is for."""
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        number = meta.get(SUBSCRIPTION_KEY) if isinstance(meta, dict) else None
        if message["method"] == "notifications/progress":
            number = params.get("progressToken")
        if isinstance(number, int | str) and (owner := self.owners.get(cast("int", coerce_request_id(number)))):
            return (owner,)
        if message["method"] in PASSED_ON:
            return self._busy_shares() or self.shares
        return self.shares

    def _busy_shares(self) -> list[ProcessShare]:
        """Return those with calls under way, else those with other requests."""
        calling = [share for share in self.shares if share.live.server_requests.calls]
        return calling or [share for share in self.shares if share.live.server_requests.others]

    def _take_oversized(self, start: bytes) -> None:
        owners = {self.owners[number] for number in requests_answered(start) if isinstance(number, int)}
        for share in owners or tuple(self.shares):
            share.oversized(start)

    # -- what it asks ------------------------------------------------------------------------------

    def _take_request(self, message: Message, line: bytes) -> None:
        """Give a request to the user whom it is about; roots are asked of all, and have to be the same."""
        method, busy, shares = message["method"], self._busy_shares(), self._shares_with_clients()
        if len(self.shares) == 1 or method not in ASKED:
            self._give_line(self.shares[:1], line)
        elif method == ROOTS and len(shares) == 1:
            self._give_line(shares, line)
        elif method == ROOTS:
            self._tasks.start(self._answer_roots(message, shares))
        elif len(busy) == 1:
            self._give_line(busy, line)
        else:
            if busy:
                self.one_at_a_time = True
                for share in self.shares:
                    share.live.server_requests.ambiguous()
            self._refuse(message["id"], SEVERAL if busy else NONE_IN_FLIGHT)

    def _shares_with_clients(self) -> list[ProcessShare]:
        """Return those with clients, else all."""
        users = [(share, share.live.server_requests.only_client) for share in self.shares]
        return [share for share, client in users if client is not None and client.is_connected] or self.shares

    async def _answer_roots(self, message: Message, shares: Sequence[ProcessShare]) -> None:
        asked = [share.live.server_requests.ask_only_client(ROOTS, {}) for share in shares]
        answers: list[JsonObject | BaseException] = await asyncio.gather(*asked, return_exceptions=True)
        first = answers[0]
        if isinstance(first, dict) and all(answer == first for answer in answers):
            self.write_message(JSONRPCResponse(jsonrpc="2.0", id=message["id"], result=dict(first)))
            return
        refused = next((one.message for one in answers if isinstance(one, AskRefusedError)), DIFFERENT_ROOTS)
        self._refuse(message["id"], refused)

    def _refuse(self, number: int | str, text: str) -> None:
        self.write_message(JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=INVALID_REQUEST, message=text)))

    def write_message(self, message: JSONRPCMessage) -> None:
        """Write a message that is no request."""
        with suppress(anyio.ClosedResourceError):
            self.process.write(message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    # -- what happens once for all -----------------------------------------------------------------

    def needs_handshake(self, share: ProcessShare, number: int) -> bool:
        """Return whether a user's handshake is to be sent; else it gets the answer of the first one."""
        if self._greeted is None:
            self._greeting, self._greeted = number, asyncio.get_running_loop().create_future()
            return True

        def answer(greeted: asyncio.Future[Message]) -> None:
            if not greeted.cancelled():
                share.take(to_json({"jsonrpc": "2.0", "id": number, **greeted.result()}))

        self._greeted.add_done_callback(answer)
        return False

    def initializes(self) -> bool:
        """Return whether the end of a handshake is to be sent: it has been for the first one only."""
        first, self._initialized = not self._initialized, True
        return first

    def lowest_level(self) -> str | None:
        """Return the lowest level of logs that any user has asked for."""
        return next((level for level in LOG_LEVELS if any(share.level == level for share in self.shares)), None)

    def is_subscribed(self, uri: object, *, besides: ProcessShare) -> bool:
        """Return whether another user is subscribed to a resource."""
        return any(uri in share.subscribed for share in self.shares if share is not besides)


class ProcessShare(RequestNumbers):
    """One user of a shared process: to its transport it is a process."""

    def __init__(self, shared: SharedProcess, live: OpenConnection, oversized: Callable[[bytes], None]) -> None:
        self.live, self.oversized = live, oversized
        self.route: Callable[[bytes], bool] | None = None
        self.fresh = asyncio.Event()
        self.level: str | None = None
        self.subscribed: set[object] = set()
        self._shared = shared
        self._lines: deque[bytes] = deque()
        self._context = detached_context()
        self._own: dict[int, int | str] = {}  # the SDK's id of each of its requests, by the number on the wire

    # -- as a process ------------------------------------------------------------------------------

    @property
    def writable(self) -> asyncio.Event:
        """Return what is set while the process reads."""
        return self._shared.process.writable

    @property
    def eof(self) -> bool:
        """Return whether its output has ended."""
        return self._shared.process.eof

    async def start(self, spec: ServerSpec, launches: Launches) -> None:
        """Start the process, where no user has; raises as ``ServerProcess.start``."""
        await self._shared.start(self, spec, launches)

    def alive(self) -> bool:
        """Return whether the process runs."""
        return self._shared.process.alive()

    async def is_ending(self) -> bool:
        """Return whether the process ends now that its output has."""
        return await self._shared.process.is_ending()

    def note_unread(self, *, final: bool) -> None:
        """Note which requests were read, where no more can be."""
        if final or self.eof:
            self._shared.process.note_unread(final=final)

    def write(self, data: bytes, in_flight: Sequence[tuple[int, InFlight]] = ()) -> None:
        """Write messages; raises as ``ServerProcess.write``."""
        self._shared.process.write(data, in_flight)

    def take(self, line: bytes) -> None:
        """Take a line that is for this user."""
        if self.route is None or not self._context.run(self.route, line):
            self.add_line(line)

    def add_line(self, line: bytes) -> None:
        """Give the session a line to read."""
        self._lines.append(line)
        self._shared.process.count_unread(len(line))
        self.fresh.set()

    def next_line(self) -> bytes | None:
        """Return the next line for the session, or None where there is none yet."""
        if not self._lines:
            return None
        line = self._lines.popleft()
        self._shared.process.count_unread(-len(line))
        return line

    async def stop(self, *, up: bool) -> None:  # noqa: ARG002 - as a process has it
        """Use it no more; one that is of no use, or that an operator restarts, ends for all."""
        while self.next_line() is not None:
            pass
        await self._shared.leave(self, ends=self.live.ends_process or not self.live.stopped)

    # -- numbers -----------------------------------------------------------------------------------

    def begin_request(self) -> int:
        """Return the number of a new request."""
        number = next(self._shared.numbers)
        self._shared.owners[number] = self
        return number

    def end_request(self, number: int) -> None:
        """Forget a request: it is answered, or its answer is not waited for."""
        self._shared.owners.pop(number, None)

    # -- messages of the SDK -----------------------------------------------------------------------

    def outgoing(self, message: JSONRPCMessage) -> JSONRPCMessage | None:
        """Return a message of the SDK as it is to be written; None where it is not to be."""
        if isinstance(message, JSONRPCRequest):
            return self._request(message)
        if isinstance(message, JSONRPCNotification):
            if message.method == _INITIALIZED:
                return message if self._shared.initializes() else None
            if message.method == "notifications/cancelled":
                return self._translate_cancellation(message)
        return message

    def _request(self, message: JSONRPCRequest) -> JSONRPCRequest | None:
        number, params = self.begin_request(), dict(message.params or {})
        self._own[number] = message.id
        match message.method:
            case "initialize" if not self._shared.needs_handshake(self, number):
                return None
            case "logging/setLevel":
                self.level = str(params.get("level"))
                params["level"] = self._shared.lowest_level() or self.level
            case "resources/subscribe":
                self.subscribed.add(params.get("uri"))
            case "resources/unsubscribe":
                self.subscribed.discard(params.get("uri"))
                if self._shared.is_subscribed(params.get("uri"), besides=self):
                    self.add_line(to_json({"jsonrpc": "2.0", "id": number, "result": {}}))
                    return None
            case _:
                pass
        meta = params.get("_meta")
        if isinstance(meta, dict) and "progressToken" in meta:
            params["_meta"] = {**meta, "progressToken": number}
        return message.model_copy(update={"id": number, **({"params": params} if params else {})})

    def _translate_cancellation(self, message: JSONRPCNotification) -> JSONRPCNotification | None:
        params = message.params or {}
        number = next((number for number, own in self._own.items() if own == params.get("requestId")), None)
        if number is None:
            return None
        del self._own[number]
        self.end_request(number)
        return message.model_copy(update={"params": {**params, "requestId": number}})

    def translate_incoming(self, message: JSONRPCMessage) -> JSONRPCMessage:
        """Return a message of the server as the SDK reads it: with its own ids."""
        match message:
            case JSONRPCResponse() | JSONRPCError():
                number = coerce_request_id(message.id) if message.id is not None else None
                if isinstance(number, int) and number in self._own:
                    self.end_request(number)
                    return message.model_copy(update={"id": self._own.pop(number)})
            case JSONRPCNotification(params={**params}):
                return self._with_own_ids(message, params)
            case _:
                pass
        return message

    def _with_own_ids(self, message: JSONRPCNotification, params: dict[str, Any]) -> JSONRPCNotification:
        meta = params.get("_meta")
        if params.get("progressToken") in self._own:
            params = {**params, "progressToken": self._own[params["progressToken"]]}
        if isinstance(meta, dict) and meta.get(SUBSCRIPTION_KEY) in self._own:
            params = {**params, "_meta": {**meta, SUBSCRIPTION_KEY: self._own[meta[SUBSCRIPTION_KEY]]}}
        return message.model_copy(update={"params": params})
