"""What is asked for in a conversation, kept as long as the process lasts, and what was called after which need (X5)."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from pegboard.board.observability.open_runs import OpenRuns
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import Tool
from pegboard.core.state.sessions import ShownHints, State
from pegboard.core.state.subjects import excluded_by_loadout
from pegboard.ports import USE_LIFETIME, PastUse, Ranking, SessionKey, UseRecord, UseStore

MOST_TEXTS: Final = 3
"""How many messages and how many searches count as context."""
LONGEST_TEXT: Final = 2_000
MOST_NEEDS: Final = 16
"""How many needs of a turn a call may answer."""
MOST_CONVERSATIONS: Final = 4_096


@dataclass(slots=True)
class _SearchNeed:
    """A need of the turn: what was found for it, with which search it came, which tools were called for it."""

    text: str
    found: frozenset[str] = frozenset()
    search: int = 0
    called: set[str] = field(default_factory=set[str])


class Requests:
    """The requests of one session in this process: which of them started before the answer of which load (D2)."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.answers = 0
        """How many answers had something loaded."""
        self.brought: dict[str, tuple[float, float]] = {}
        """The number and time of the answer with which each tool came, where that is a matter."""

    def start(self, arrived: float | None = None) -> Request:
        """Return a request that starts now, or came at ``arrived`` (``time.monotonic()``); enter it at once."""
        return Request(self, arrived)

    def note_loads(self, tools: Iterable[str]) -> None:
        """Note what a request loads, before that is stored; what was answered before any other came is forgotten."""
        if self.in_flight <= 1:
            self.brought.clear()
        self.brought.update(dict.fromkeys(tools, _NOT_ANSWERED))

    def note_answered(self, tools: Iterable[str]) -> None:
        """Note that a request is answered that has loaded something."""
        self.answers += 1
        self.brought.update(dict.fromkeys(tools, (self.answers, time.monotonic())))


_NOT_ANSWERED: Final = (math.inf, math.inf)


class Request:
    """One request, from its start to its answer: it is in flight while it is entered, as a context manager."""

    __slots__ = ("_arrived", "_started", "_with", "brought")

    def __init__(self, others: Requests, arrived: float | None) -> None:
        self._with = others
        self._started = others.answers
        self._arrived = arrived
        self.brought: frozenset[str] = frozenset()
        """The ids of what it loaded."""

    def __enter__(self) -> Self:
        """Count it as in flight."""
        self._with.in_flight += 1
        return self

    def __exit__(self, *_: object) -> None:
        """Note that it is answered."""
        self._with.in_flight -= 1
        if self.brought:
            self._with.note_answered(self.brought)

    def note_loads(self, tools: Iterable[str]) -> None:
        """Note the ids of what it loads, before that is stored."""
        brought = frozenset(tools)
        self.brought |= brought
        self._with.note_loads(brought)

    @property
    def is_alone(self) -> bool:
        """Return whether no other request of the session is in flight."""
        return self._with.in_flight == 1

    async def let_others_start(self) -> None:
        """Let the calls of the same batch start before a load is answered."""
        await asyncio.sleep(0)

    def started_before_load_of(self, tool: str) -> bool:
        """Return whether another request loaded a tool whose answer was not returned when this one started (D2)."""
        came = self._with.brought.get(tool)
        if came is None or tool in self.brought:
            return False
        number, answered = came
        return number > self._started if self._arrived is None else answered > self._arrived


class Conversation:
    """The newest messages and searches of one session, and what was needed in its turn; its texts are masked (X5).

    ``requests`` are those in flight. ``hints`` are those that its model was shown first, until they are stored with it
    (F2). ``rejected`` are the tools that a provider of its models did not take, ``adapted`` those that were changed for
    one and reported, by wire name (D4). ``most_tools`` is how many a request has at most, where a refusal said so.
    ``runs`` are those of agents of a framework that are under way. ``policy`` is the one of what is loaded from the
    start that a client was given last; None is none yet (T6).
    """

    __slots__ = (
        "_message",
        "_messages",
        "_needs",
        "_searched",
        "_searches",
        "_turn",
        "adapted",
        "hints",
        "most_tools",
        "policy",
        "rejected",
        "requests",
        "runs",
    )

    def __init__(self) -> None:
        self.requests = Requests()
        self.hints: ShownHints | None = None
        self.policy: str | None = None
        self.rejected: dict[str, Tool] = {}
        self.most_tools: int | None = None
        self.adapted: dict[str, Tool] = {}
        self.runs = OpenRuns()
        self.forget()

    def forget(self) -> None:
        """Be as new."""
        self._messages: tuple[str, ...] = ()
        self._searches: tuple[str, ...] = ()
        self._turn = 0
        self._message: _SearchNeed | None = None
        self._needs: tuple[_SearchNeed, ...] = ()
        self._searched = 0

    def add_message(self, message: str, turn: int) -> None:
        """Take what the user wrote; the same message again is another step of its turn."""
        text = cut_context(message)
        if text and (turn != self._turn or not self._messages or text != self._messages[-1]):
            self._messages = newest(*self._messages, text)
            self._begin_turn(turn, _SearchNeed(text))

    def add_search(self, queries: Sequence[str], ranking: Ranking, turn: int) -> None:
        """Take what was searched for, and what was found for each."""
        if turn != self._turn:
            self._begin_turn(turn, None)
        found: list[set[str]] = [set() for _ in queries]
        for hit in ranking.hits:
            if isinstance(hit.found, Tool):
                found[hit.need].add(hit.found.id)
        self._searched += 1
        for query, ids in zip(queries, found, strict=True):
            if text := cut_context(query):
                self._searches = newest(*self._searches, text)
                self._add_need(text, frozenset(ids))

    def _add_need(self, text: str, found: frozenset[str]) -> None:
        """Take a need of the turn; one that was searched for before is the same need."""
        called = {tool for need in self._needs if need.text == text for tool in need.called}
        others = [need for need in self._needs if need.text != text]
        self._needs = (*others, _SearchNeed(text, found, self._searched, called))[-MOST_NEEDS:]

    def messages_before(self, queries: Iterable[str]) -> tuple[str, ...]:
        """Return what the user wrote and is not asked for itself now; the newest last."""
        asked = {cut_context(query) for query in queries}
        return tuple(text for text in self._messages if text not in asked)

    def searches_before(self, queries: Iterable[str]) -> tuple[str, ...]:
        """Return what was searched for and is not searched for now; the newest last."""
        asked = {cut_context(query) for query in queries}
        return tuple(text for text in self._searches if text not in asked)

    def add_call(self, tool: str, turn: int) -> tuple[str, ...]:
        """Take that a tool was called; return the needs that it was called for and was not before.

        They are the user's message and, of each search of the turn, the queries that found the tool; all queries of a
        search that did not find it and after which nothing was called yet.
        """
        if turn != self._turn or not (self._message or self._needs):
            return ()
        needs = [need for need in self._needs_answered(tool) if tool not in need.called]
        for need in needs:
            need.called.add(tool)
        return tuple(dict.fromkeys(need.text for need in needs))

    def _needs_answered(self, tool: str) -> Iterable[_SearchNeed]:
        if self._message is not None:
            yield self._message
        hit = {need.search for need in self._needs if tool in need.found}
        answered = {need.search for need in self._needs if need.called}
        for need in self._needs:
            if tool in need.found or need.search not in hit | answered:
                yield need

    def _begin_turn(self, turn: int, message: _SearchNeed | None) -> None:
        self._turn, self._message, self._needs = turn, message, ()


class Conversations:
    """The conversations of a board's sessions; the one that was looked for longest ago goes first."""

    def __init__(self) -> None:
        self._known: OrderedDict[SessionKey, Conversation] = OrderedDict()

    def conversation_of(self, key: SessionKey) -> Conversation:
        """Return the conversation of a session: the same object for all that stand for it."""
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Conversation()
            if len(self._known) > MOST_CONVERSATIONS:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return known

    def begin_anew(self, key: SessionKey) -> None:
        """Forget everything of a session that was deleted, the hints that it was shown too."""
        if (known := self._known.get(key)) is not None:
            known.forget()
            known.hints = known.policy = None

    def forget(self, principal: str | None, agent: str | None) -> None:
        """Forget those of a principal and agent; None is every one."""
        for key, known in self._known.items():
            if principal in (None, key.principal) and agent in (None, key.agent):
                known.forget()


def cut_context(text: str) -> str:
    """Return the beginning of a text, as much as counts as context."""
    return text[:LONGEST_TEXT].strip()


def newest(*texts: str) -> tuple[str, ...]:
    """Return the newest of these texts, which are the last, none of them twice."""
    distinct = dict.fromkeys(reversed(texts))
    return tuple(distinct)[MOST_TEXTS - 1 :: -1]


LONGEST_NEED: Final = 300
_MOST: Final = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class _UsesInReach:
    """The uses that count for a session: of which records, under which permissions and loadout, and until when."""

    records: Sequence[UseRecord]
    permissions: CompiledPermissions
    loadout: str | None
    until: float
    uses: tuple[PastUse, ...]


class RememberedUse:
    """What was called after which need, in the store; ``clock`` gives seconds since the epoch."""

    def __init__(self, store: UseStore, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[tuple[str, str], _UsesInReach] = {}

    def remember(self, key: SessionKey, needs: Sequence[str], tool: str) -> None:
        """Store within 50 ms that a tool was called for these needs, whose secrets are masked already (S2, X5)."""
        now, texts = self._clock(), dict.fromkeys(one_line(need, limit=LONGEST_NEED) for need in needs)
        self._store.remember_later(
            *(
                UseRecord(now, key.principal, key.agent, text, tool)
                for text in texts
                if any(character.isalnum() for character in text)
            )
        )

    async def within_reach(
        self, key: SessionKey, permissions: CompiledPermissions, state: State
    ) -> tuple[PastUse, ...]:
        """Return what counts now: of tools within the session's reach, and not too old; the newest last (P9).

        The same object as long as nothing has changed.
        """
        who, now = (key.principal, key.agent), self._clock()
        records = await self._store.uses(*who)
        known = self._known.get(who)
        if known is None or known.records is not records or known.permissions is not permissions or now >= known.until:
            known = None
        if known is None or known.loadout != state.loadout:
            known = _within_reach(records, permissions, state, now)
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[who] = known
        return known.uses

    async def forget(self, principal: str | None, agent: str | None) -> int:
        """Remove what is remembered of a principal and agent (None: any); return how many uses there were."""
        return await self._store.forget_uses(principal=principal, agent=agent)


def _within_reach(
    records: Sequence[UseRecord], permissions: CompiledPermissions, state: State, now: float
) -> _UsesInReach:
    reached = {tool for tool in {record.tool for record in records} if _can_reach(permissions, state, tool)}
    kept = [record for record in records if record.at > now - USE_LIFETIME and record.tool in reached]
    return _UsesInReach(
        records=records,
        permissions=permissions,
        loadout=state.loadout,
        until=min((record.at for record in kept), default=now) + USE_LIFETIME,
        uses=tuple(PastUse(need=record.need, tool=record.tool) for record in kept),
    )


def _can_reach(permissions: CompiledPermissions, state: State, tool_id: str) -> bool:
    tool = permissions.world.catalog.by_id(tool_id)
    return tool is not None and permissions.permits(tool) and not excluded_by_loadout(permissions, state, tool)
