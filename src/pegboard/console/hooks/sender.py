"""When messages are sent: beside calls and never before them, in order, tried again, and given up in the end."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote

from pegboard.console.console_board import ConsoleBoard
from pegboard.console.hooks.http_messenger import HttpMessenger
from pegboard.console.hooks.messages import HookMessage, of_approval, of_approvals, of_attention, write_message
from pegboard.core.model.hooks import Hook
from pegboard.errors import StoreError, UsageError
from pegboard.operators.approvals import ApprovalOverview, OperatorApprovals
from pegboard.operators.attention import AttentionItem, HookFault, find_attention
from pegboard.operators.known_problems import KnownProblems
from pegboard.support.backoff import Backoff
from pegboard.support.tasks import BackgroundTasks, start_detached

log = logging.getLogger("pegboard.hooks")

WAITING: Final = 100
"""How many messages wait for one hook; the oldest give way."""
ATTEMPTS: Final = 5
"""How often a message is tried."""
LOOK_EVERY: Final = 10.0
"""How often it is looked at what needs someone, in seconds."""
GATHER: Final = 60.0
"""In how many seconds one agent has at most one message of calls that wait."""
_MOST: Final = 50
_REMEMBERED: Final = 1_000
_TOLD_ONCE: Final = 600.0
"""For how long other processes on the store do not tell of what one of them has told, in seconds."""
_PATHS: Final[Mapping[str, str]] = {"server": "/server?name=", "pin": "/pins?server="}


class HookSender:
    """Tells the hooks of a configuration what waits for a person; a failing hook does nothing but be reported.

    Args:
        console: the address at which the console is served, or nothing.
    """

    def __init__(
        self,
        board: ConsoleBoard,
        messenger: HttpMessenger,
        console: Callable[[], str] = lambda: "",
        *,
        pauses: Callable[[], Backoff] = lambda: Backoff(first=1.0, longest=60.0, factor=4.0, jitter=0.2),
        look_every: float = LOOK_EVERY,
        gather: float = GATHER,
    ) -> None:
        self._board = board
        self._messenger = messenger
        self._console = console
        self._pauses = pauses
        self._look_every = look_every
        self._gather = gather
        self._gathered: dict[str, list[str]] = {}
        self._approvals = OperatorApprovals(board.services)
        self._problems = KnownProblems(board.services)
        self._lines: dict[Hook, _HookQueue] = {}
        self._known: set[tuple[str, ...]] = set()
        self._holder = secrets.token_hex(8)
        self._told: deque[str] = deque(maxlen=_REMEMBERED)
        self._tasks = BackgroundTasks()
        self._ends: list[Callable[[], None]] = []

    def start(self) -> None:
        """Listen, and tell at once what waits already: a message may have been lost with another process."""
        self._follow_hooks({})
        self._ends = [
            self._board.on("approval_asked", self._on_approval_asked),
            self._board.on("configuration_changed", self._follow_hooks),
        ]
        self._tasks.start(self._queue_waiting_calls(), name="hooks: what waits")
        self._tasks.start(self._look_on(), name="hooks: what needs somebody")

    async def aclose(self) -> None:
        """End; what has not arrived is dropped."""
        for end in self._ends:
            end()
        for line in self._lines.values():
            line.stop()
        await self._tasks.aclose()
        await self._problems.aclose()
        await self._messenger.aclose()

    def faults(self) -> Sequence[HookFault]:
        """Return the hooks that do not take messages."""
        return [line.fault for line in self._lines.values() if line.fault is not None]

    def _follow_hooks(self, _: Mapping[str, Any]) -> None:
        """Have one line for each hook that is configured now."""
        hooks = self._board.configuration.notify
        for hook in [hook for hook in self._lines if hook not in hooks]:
            self._lines.pop(hook).stop()
        for hook in hooks:
            if hook not in self._lines:
                self._lines[hook] = _HookQueue(hook, self._messenger, self._pauses)

    def _lines_for(self, event: str) -> list[_HookQueue]:
        return [line for hook, line in self._lines.items() if event in hook.events]

    def _on_approval_asked(self, asked: Mapping[str, Any]) -> None:
        if self._lines_for("approval"):
            self._tasks.start(self._tell_of(str(asked["outcome"])), name="hooks: a call that waits")

    async def _tell_of(self, approval: str) -> None:
        """Tell of a call that waits, once, where it still does; with others of its agent where one was just told."""
        if approval in self._told:
            return
        self._told.append(approval)
        if (one := await self._still_waiting(approval)) is None:
            return
        later = self._gathered.get(one.agent)
        if later is not None:
            later.append(approval)
            return
        self._gathered[one.agent] = []
        self._queue_approvals([one])
        self._tasks.start(self._tell_gathered(one.agent), name="hooks: calls of one agent")

    async def _tell_gathered(self, agent: str) -> None:
        """Tell of what has come of an agent meanwhile, in one message each time, until nothing comes."""
        while True:
            await asyncio.sleep(self._gather)
            ids, self._gathered[agent] = self._gathered[agent], []
            found = [one for each in ids if (one := await self._still_waiting(each)) is not None]
            if found:
                self._queue_approvals(found)
            elif not self._gathered[agent]:
                del self._gathered[agent]
                return

    async def _still_waiting(self, approval: str) -> ApprovalOverview | None:
        try:
            one = await self._approvals.one(approval)
        except (UsageError, StoreError) as error:
            log.debug("no one was notified of approval %s: %s", approval, error)
            return None
        return one if one.status == "waiting" else None

    def _queue_approvals(self, ones: Sequence[ApprovalOverview]) -> None:
        path = f"/approvals/{quote(ones[0].id, safe='')}" if len(ones) == 1 else "/approvals"
        for line in self._lines_for("approval"):
            link, arguments = self._link(path), line.hook.arguments
            line.put(of_approvals(ones, link) if len(ones) > 1 else of_approval(ones[0], link, arguments=arguments))

    async def _queue_waiting_calls(self) -> None:
        if not self._lines_for("approval"):
            return
        with suppress(StoreError):
            found = await self._approvals.open(limit=_MOST)
            for one in reversed(found.waiting):
                await self._tell_of(one.id)

    async def _look_on(self) -> None:
        while True:
            if self._lines_for("attention"):
                with suppress(StoreError):
                    await self._send_news()
            await asyncio.sleep(self._look_every)

    async def _send_news(self) -> None:
        """Tell of what needs someone since the last look; warnings and calls are not among it."""
        edits = [str(change) for change in self._board.waiting]
        found = await find_attention(
            self._board.services, self._problems, self._board.configuration_state, edits, limit=_MOST
        )
        grave = {_key(item): item for item in found.items if item.severity != "warning" and item.kind != "approval"}
        for key, item in grave.items():
            if key not in self._known and await self._claims_message(key):
                for line in self._lines_for("attention"):
                    line.put(of_attention(item, self._link(_path(item))))
        self._known = set(grave)

    async def _claims_message(self, key: tuple[str, ...]) -> bool:
        """Return whether this process tells of something that several on one store may see: the first of them does."""
        name = f"hooks: {sha256(repr(key).encode()).hexdigest()[:32]}"
        return await self._board.services.store.take_lease(name, self._holder, seconds=_TOLD_ONCE)

    def _link(self, path: str) -> str:
        """Return the address of a page of the console, or nothing where none is served."""
        home = (self._board.configuration.console_url or self._console()).rstrip("/")
        return f"{home}{path}" if home else ""


def _key(item: AttentionItem) -> tuple[str, ...]:
    return item.kind, item.subject, item.agent, item.place


def _path(item: AttentionItem) -> str:
    begin = _PATHS.get(item.kind)
    return f"{begin}{quote(item.subject, safe='')}" if begin else ""


class _HookQueue:
    """The messages that wait for one hook, sent one after the other."""

    def __init__(self, hook: Hook, messenger: HttpMessenger, pauses: Callable[[], Backoff]) -> None:
        self.hook = hook
        self.fault: HookFault | None = None
        self._messenger = messenger
        self._pauses = pauses
        self._messages: deque[HookMessage] = deque()
        self._dropped = 0
        self._task: asyncio.Task[None] | None = None

    def put(self, message: HookMessage) -> None:
        """Have a message sent; where too many wait the oldest is dropped."""
        self._messages.append(message)
        if len(self._messages) > WAITING:
            self._messages.popleft()
            self._note_failure("too many messages are pending for it", dropped=True)
        if self._task is None or self._task.done():
            self._task = start_detached(self._send_messages(), name="hooks: send")

    def stop(self) -> None:
        """Send nothing more."""
        if self._task is not None:
            self._task.cancel()

    async def _send_messages(self) -> None:
        while self._messages:
            await self._send(self._messages.popleft())

    async def _send(self, message: HookMessage) -> None:
        body, headers = write_message(message, self.hook)
        pauses = self._pauses()
        for attempt in range(1, ATTEMPTS + 1):
            try:
                why = await self._messenger.deliver(self.hook.url, body, headers)
            except Exception:  # whatever a messenger does, a hook stops nothing
                log.exception("a message to %s failed", self.hook.host)
                why = "it failed inside Pegboard; the log has it"
            if not why:
                self.fault = None
                return
            self._note_failure(why, dropped=attempt == ATTEMPTS)
            if attempt < ATTEMPTS:
                await pauses.wait()

    def _note_failure(self, why: str, *, dropped: bool) -> None:
        if self.fault is None:
            log.warning("a message to %s did not arrive: %s", self.hook.host, why)
        self._dropped += dropped
        since = self.fault.since if self.fault is not None else time.time()
        place = str(self.hook.place or "")
        self.fault = HookFault(host=self.hook.host, why=why, since=since, dropped=self._dropped, place=place)
