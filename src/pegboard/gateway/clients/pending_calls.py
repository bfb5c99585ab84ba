"""Calls of the 2026-07-28 era that wait for their client: it is asked in the answer, and its next request goes on.

There a server sends no requests. What an upstream asks is answered as ``input_required``; the client
sends its call again with the answers and the opaque ``requestState``, which stands for the very call
that is under way (G7).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

from mcp.shared.exceptions import MCPError

from pegboard.core.access.extensions import told_servers
from pegboard.core.model.tools import EMPTY, JsonObject
from pegboard.gateway.clients.handshake import PATIENCE, Notify, OpenQuestions, askable, demand, requested_level
from pegboard.gateway.protocol.jsonrpc import Message
from pegboard.ports import LOG_LEVELS, AskRefusedError, Client, Progress
from pegboard.support.mcp_constants import CAPABILITIES_KEY, INVALID_PARAMS, LOG_LEVEL_KEY
from pegboard.support.tasks import call_later_detached

if TYPE_CHECKING:
    from pegboard.gateway.replicas.peers import ReplicaPeers
    from pegboard.gateway.replicas.request_state import RequestState, StateSeal
    from pegboard.ports import SessionKey

GATHER: Final = 0.01
"""How long further questions are waited for, so that they go in one round, in seconds."""
GRACE: Final = 5.0
"""How long a call whose client did not come back may take to end by itself, in seconds."""
_ENDED: Final = (
    "The replica of Pegboard that made this call has ended, and what its server asked has ended with it. Call the tool "
    "again without this requestState."
)
_ELSEWHERE: Final = "This requestState is of a call that is under way at another replica of Pegboard. Try again."
_UNKNOWN: Final = (
    "This requestState stands for no call of yours that is under way: it has ended, or was answered already. "
    "Call the tool again without it."
)

Work = Callable[[Client, Progress | None], Awaitable[Message]]
"""Make the call and return its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOwner:
    """The session and the call that a request must name to go on with it."""

    key: SessionKey
    name: str
    arguments: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """Return a text that differs where anything of it does."""
        parts = [self.key.principal, self.key.agent, self.key.session, self.name, self.arguments]
        return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(slots=True)
class _Question:
    request: Message
    about: str
    answer: asyncio.Future[JsonObject]
    sent: bool = False


class ModernClient:
    """The client of a call that cannot wait: it gets log messages before the answer, if it asked for any."""

    __slots__ = ("_capabilities", "_notify", "declares", "level")

    listener = None
    wanted_task = None

    def __init__(self, meta: Mapping[str, Any], notify: Notify) -> None:
        level: object = meta.get(LOG_LEVEL_KEY)
        self.level = level if isinstance(level, str) and level in LOG_LEVELS else None
        self._capabilities: Mapping[str, Any] = meta.get(CAPABILITIES_KEY) or {}
        self.declares = told_servers(self._capabilities, modern=True) if "extensions" in self._capabilities else EMPTY
        self._notify = notify

    @property
    def askable(self) -> bool:
        """Return whether the client supports any request that an upstream may make."""
        return bool(self._capabilities) and askable(self._capabilities)

    async def ask(self, method: str, params: JsonObject, *, about: str = "") -> JsonObject:  # noqa: ARG002
        """Refuse; raises ``AskRefusedError``."""
        self.demand(method, params)
        raise AskRefusedError("This call cannot wait for its client.")

    def demand(self, method: str, params: JsonObject) -> None:
        """Raise ``AskRefusedError`` where the client does not support a request."""
        demand(self._capabilities, method, params)

    async def tell(self, method: str, params: JsonObject) -> None:
        """Pass a notification on, on the stream of the request."""
        if requested_level(method, params, self.level, default=False):
            await self._notify({"jsonrpc": "2.0", "method": method, "params": dict(params)})


class PendingCall:
    """A call that may ask its client, and the client of that call: the request that waits for it changes."""

    listener = None
    wanted_task = None

    def __init__(
        self, owner: CallOwner, questions: OpenQuestions, client: ModernClient, given: Mapping[str, JsonObject]
    ) -> None:
        self.owner = owner
        self.task: asyncio.Task[Message]
        self.timer: asyncio.TimerHandle | None = None
        self._questions = questions
        self._client = client
        self._given = dict(given)
        self._progress: Progress | None = None
        self._attached = False
        self._refusal = ""
        self._open: dict[str, _Question] = {}
        self._count = 0
        self._waiter: asyncio.Future[None] | None = None

    @property
    def level(self) -> str | None:
        """Return the level that the request wants."""
        return self._client.level

    @property
    def declares(self) -> JsonObject:
        """Return what its server is told that the client can do besides."""
        return self._client.declares

    async def ask(self, method: str, params: JsonObject, *, about: str = "") -> JsonObject:
        """Return what the client answers in one of its next requests, or has answered; raises ``AskRefusedError``."""
        if (given := self._given.pop(about, None)) is not None:
            return given
        self._client.demand(method, params)
        if self._refusal:
            raise AskRefusedError(self._refusal)
        with self._questions.one_more(self.owner.key.principal):
            self._count += 1
            key = f"ask_{self._count}"
            request: Message = {"method": method, "params": dict(params)} if params else {"method": method}
            question = _Question(request, about, asyncio.get_running_loop().create_future())
            self._open[key] = question
            self.wake()
            try:
                return await question.answer
            finally:
                del self._open[key]

    async def tell(self, method: str, params: JsonObject) -> None:
        """Pass a notification on, where a request waits."""
        if self._attached:
            await self._client.tell(method, params)

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Pass progress on, where a request waits that wants it."""
        if self._attached and self._progress is not None:
            await self._progress(progress, total, message)

    def wake(self) -> None:
        """Wake the request that waits."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def attach(self, client: ModernClient, progress: Progress | None) -> None:
        """Attach a request of the client that waits for this call."""
        self._client, self._progress, self._attached = client, progress, True

    def answer(self, answers: Mapping[str, Any]) -> None:
        """Answer the open questions; those that the client did not answer are asked again."""
        for key, question in self._open.items():
            question.sent = False
            answer: object = answers.get(key)
            if isinstance(answer, Mapping) and not question.answer.done():
                question.answer.set_result(cast("JsonObject", answer))

    def unsent(self) -> bool:
        """Return whether a question has not been sent to the client."""
        return any(not question.sent and not question.answer.done() for question in self._open.values())

    async def next(self) -> dict[str, Message]:
        """Return what is asked next, by key; nothing where the call has ended."""
        while not self.task.done():
            if self.unsent():
                await asyncio.wait({self.task}, timeout=GATHER)
                asked = {k: q for k, q in self._open.items() if not q.answer.done()}
                if asked and not self.task.done():
                    for question in asked.values():
                        question.sent = True
                    return {key: question.request for key, question in asked.items()}
                continue
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return {}

    @property
    def open_about(self) -> dict[str, str]:
        """Return under what the answer to each open question is kept, by key."""
        return {key: question.about for key, question in self._open.items() if not question.answer.done()}

    def detach(self) -> None:
        """Detach the request: none waits for the moment."""
        self._attached = False

    def reject(self, why: str) -> None:
        """Refuse the open questions, and later ones."""
        self._refusal = why
        for question in self._open.values():
            if not question.answer.done():
                question.answer.set_exception(AskRefusedError(why))


class PendingCalls:
    """The calls that wait for their clients, by the name in their ``requestState``; none longer than ``PATIENCE`` s.

    Those of a replica that has ended are gone on with here, where they hang on nothing that ended with it.
    """

    def __init__(self, questions: OpenQuestions, seal: StateSeal, others: ReplicaPeers | None = None) -> None:
        self._questions = questions
        self._seal = seal
        self._others = others
        self._waiting: dict[str, PendingCall] = {}

    async def begin(self, owner: CallOwner, client: ModernClient, progress: Progress | None, work: Work) -> Message:
        """Make a call and return its result, or what its client is asked first."""
        return await self._begin_call(owner, client, progress, work, {})

    async def _begin_call(
        self,
        owner: CallOwner,
        client: ModernClient,
        progress: Progress | None,
        work: Work,
        given: Mapping[str, JsonObject],
    ) -> Message:
        call = PendingCall(owner, self._questions, client, given)
        report = call.report if progress is not None else None
        call.task = asyncio.get_running_loop().create_task(_run_work(work, call, report))
        call.task.add_done_callback(lambda _: call.wake())
        return await self._wait_for_call(call, client, progress)

    async def resume(
        self,
        text: str,
        answers: Mapping[str, Any],
        owner: CallOwner,
        client: ModernClient,
        progress: Progress | None,
        work: Work,
    ) -> Message:
        """Go on with a call; raises ``MCPError`` where there is none of this owner's."""
        state = self._seal.open(text)
        call = self._waiting.get(state.call) if state is not None else None
        if call is not None and state is not None and call.owner == owner:
            del self._waiting[state.call]
            assert call.timer is not None
            call.timer.cancel()
            call.answer(answers)
            return await self._wait_for_call(call, client, progress)
        if state is None or state.owner == self._seal.own or state.whose != owner.digest or self._others is None:
            raise MCPError(INVALID_PARAMS, _UNKNOWN)
        await self._take_over(state, self._others)
        given = {about: answers[key] for key, about in state.asked.items() if isinstance(answers.get(key), Mapping)}
        return await self._begin_call(owner, client, progress, work, given)

    async def _take_over(self, state: RequestState, others: ReplicaPeers) -> None:
        """Return once the call of another replica is to be made here, with the answers that its client gives.

        It has not run. Raises ``MCPError`` where it may have, or where its owner lives, or someone took it over.
        """
        if state.hangs_on_owner:
            raise MCPError(INVALID_PARAMS, _ENDED)
        if not await others.has_ended(state.owner):
            raise MCPError(INVALID_PARAMS, _ELSEWHERE)
        if not await others.claim(state.call, PATIENCE):
            raise MCPError(INVALID_PARAMS, _UNKNOWN)

    async def _wait_for_call(self, call: PendingCall, client: ModernClient, progress: Progress | None) -> Message:
        call.attach(client, progress)
        try:
            asked = await call.next()
        except asyncio.CancelledError:
            call.task.cancel()
            await asyncio.wait({call.task})
            raise
        finally:
            call.detach()
        if not asked:
            return call.task.result()
        name, state = self._seal.seal(call.owner.digest, PATIENCE, call.open_about)
        self._waiting[name] = call
        call.timer = call_later_detached(PATIENCE, self._expire_call, name)
        return {"resultType": "input_required", "inputRequests": asked, "requestState": state}

    def _expire_call(self, name: str) -> None:
        call = self._waiting.pop(name)
        call.reject(f"The client of this call did not answer within {PATIENCE:g} s.")
        timer = asyncio.get_running_loop().call_later(GRACE, call.task.cancel)

        def finish_call(task: asyncio.Task[Message]) -> None:
            timer.cancel()
            _ = task.cancelled() or task.exception()  # no one waits for it

        call.task.add_done_callback(finish_call)

    async def close(self) -> None:
        """End every call that waits for its client."""
        tasks: set[asyncio.Task[Message]] = set()
        for call in self._waiting.values():
            assert call.timer is not None
            call.timer.cancel()
            call.reject("The gateway is stopping.")
            call.task.cancel()
            tasks.add(call.task)
        self._waiting.clear()
        if tasks:
            await asyncio.wait(tasks)
        for task in tasks:
            _ = task.cancelled() or task.exception()  # no one waits for it


async def _run_work(work: Work, call: PendingCall, progress: Progress | None) -> Message:
    return await work(call, progress)
