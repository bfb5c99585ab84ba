"""Count what sessions do and are sent: loads, searches, calls, lists of tools, and the tokens that are saved (F4)."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pegboard.board.observability.call_texts import CallTexts, Key
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.delivery import LIBRARY, Host
from pegboard.core.model.known_clients import ANY_CLIENT, KnownClient
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.core.state.call_plans import CallAnswer
from pegboard.core.surface.surfaces import Surface
from pegboard.ports import AuditRecord, CountRecord, Counts, SessionKey, UsageOutcome
from pegboard.ports.counts import bucket_of

Price = Callable[[Iterable[Tool]], int]
SentTexts = tuple[tuple[Tool, ...], tuple[str, ...]]
"""Tools, and the texts that go to the model beside them."""
Everything = Sequence[Tool] | None
"""Everything that an agent may use, or None where some of it is unknown, or the agent is gone."""
PluginOf = Callable[[str], str | None]
"""Gives the plugin of a tool by its wire name, or None where no tool has the name."""
KEPT: Final = 10_000
"""Of how many sessions the numbers are kept; the one without news for longest goes first."""
MOST_COUNTED: Final = 10_000
"""How many combinations are told apart until the next hand-over; the name of a refused call may be any text."""
MOST_STEPS: Final = 20
"""How many lists of a session are kept, the newest."""
STEPS_OF_SESSIONS: Final = 200
"""Of how many sessions lists are kept; the one without another list for longest goes first."""


@dataclass(frozen=True, slots=True)
class SentStep:
    """A list of tools and the texts beside it, which differs from the one before it.

    Attributes:
        number: its place among those of its session, from 1.
        at: when a request was first sent it, in seconds since the epoch.
        tools: in the order in which they were sent.
        texts: in the order in which they were sent.
        surface: the newest surface then, which says where a text stands that it has; or None.
    """

    number: int
    at: float
    tools: tuple[Tool, ...]
    texts: tuple[str, ...]
    surface: Surface | None


@dataclass(slots=True, eq=False)
class SentList:
    """A tool list and the texts beside it, and for how many requests it stood since the last bill.

    ``cached`` is whether the host has a prompt cache; ``fresh`` whether the list is another than the one before, and
    ``begins`` whether it is the first of its session, both as of the bill. ``step`` is what is kept of it for
    operators, None where that is kept of the list before. ``client`` is what its host sends of it.
    """

    permissions: CompiledPermissions
    tools: tuple[Tool, ...]
    texts: tuple[str, ...]
    cached: bool = False
    client: KnownClient = ANY_CLIENT
    requests: int = 0
    fresh: bool = False
    begins: bool = False
    billed: bool = False
    step: SentStep | None = None


@dataclass(slots=True, eq=False)
class Counted:
    """The numbers of one session since the board was opened, and the lists it was sent that are not priced yet."""

    key: Key
    loads: int = 0
    unloads: int = 0
    evictions: int = 0
    denials: int = 0
    calls: int = 0
    turns: int = 0
    surfaces: int = 0
    sent: list[SentList] = field(default_factory=list[SentList])
    tools: tuple[Tool, ...] | None = None
    texts: tuple[str, ...] = ()
    newest: Surface | None = None
    in_cache: SentTexts | None = None


_OF: Final[Mapping[str, str]] = {
    "loaded": "loads",
    "unloaded": "unloads",
    "evicted": "evictions",
    "denied": "denials",
}
_BILLED: Final = frozenset({"loads", "unloads", "denials"})
AT_ONCE: Final = 256
"""How many calls are counted at once."""


@dataclass(slots=True, eq=False)
class _TallyRow:
    counts: dict[str, int] = field(default_factory=dict[str, int])
    durations: dict[int, int] = field(default_factory=dict[int, int])


class Tally:
    """What was done since the last hand-over; counting takes about a microsecond, and nothing is looked up."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[tuple[Key, str, UsageOutcome | None], _TallyRow] = {}

    def add(self, key: Key, name: str, *, tool: str = "", outcome: UsageOutcome | None = None) -> None:
        """Count one more of a name of ``Counts``; what has no outcome is no call."""
        counts = self._row(key, tool, outcome).counts
        counts[name] = counts.get(name, 0) + 1

    def add_calls(self, key: Key, tool: str, outcome: UsageOutcome, durations: Sequence[float | None]) -> None:
        """Count calls of one tool by what each took, in milliseconds; those that did not run took nothing."""
        row = self._row(key, tool, outcome)
        row.counts["calls"] = row.counts.get("calls", 0) + len(durations)
        if outcome != "refused":
            for duration in durations:
                if duration is not None:
                    bucket = bucket_of(duration)
                    row.durations[bucket] = row.durations.get(bucket, 0) + 1

    def _row(self, key: Key, tool: str, outcome: UsageOutcome | None) -> _TallyRow:
        row = self._rows.get((key, tool, outcome))
        if row is None:
            name = tool if len(self._rows) < MOST_COUNTED else ""
            row = self._rows.setdefault((key, name, outcome), _TallyRow())
        return row

    def take(self, start: int, plugin_of: PluginOf) -> Iterator[CountRecord]:
        """Yield what was counted since the last time, as of a stretch of time that begins at ``start``.

        What was refused or waits and is no tool has no name: a model's text makes no rows.
        """
        taken, self._rows = self._rows, {}
        for (key, tool, outcome), row in taken.items():
            plugin = plugin_of(tool)
            named = tool if plugin is not None or outcome in ("ok", "error") else ""
            yield CountRecord(start, *key, plugin or "", named, outcome or "", Counts(**row.counts), row.durations)


class SentSteps:
    """The newest lists of the newest sessions of this process."""

    def __init__(self) -> None:
        self._of: OrderedDict[SessionKey, deque[SentStep]] = OrderedDict()

    def note(
        self, key: SessionKey, tools: tuple[Tool, ...], texts: tuple[str, ...], surface: Surface | None
    ) -> SentStep | None:
        """Keep a list, if it is another than the newest of its session; return what is kept of it again."""
        steps = self._of.get(key)
        if steps is None:
            steps = self._of[key] = deque(maxlen=MOST_STEPS)
            if len(self._of) > STEPS_OF_SESSIONS:
                self._of.popitem(last=False)
        newest = steps[-1] if steps else None
        if newest is not None and newest.tools == tools and newest.texts == texts:
            return None
        number = 1 if newest is None else newest.number + 1
        step = SentStep(number, time.time(), tools, texts, surface)
        steps.append(step)
        self._of.move_to_end(key)
        return step

    def remove_unsent(self, key: SessionKey, step: SentStep) -> None:
        """Keep a list no more that was not sent after all, where it is the newest."""
        steps = self._of.get(key)
        if steps and steps[-1] is step:
            steps.pop()

    def forget(self, key: SessionKey) -> None:
        """Keep nothing of a session."""
        self._of.pop(key, None)

    def steps_of(self, key: SessionKey) -> Sequence[SentStep]:
        """Return what is kept of a session, the oldest first."""
        return tuple(self._of.get(key, ()))


class SessionMetrics:
    """The numbers of every session that a board has seen."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[Key, Counted] = OrderedDict()
        self._totals: Counter[tuple[str, str, str]] = Counter()
        self._calls: list[AuditRecord] = []
        """Calls that are not counted yet: many at once take less than one by one."""
        self.on_news: Callable[[], object] = lambda: None
        """Called when something is counted for the first time since :meth:`take_sent`."""
        self.on_decided: Callable[[], object] = lambda: None
        """Called when a load or a refusal is counted, which is on the trail by then."""
        self._sent: dict[Key, Counted] = {}
        """The sessions that were sent something that is not priced yet."""
        self._tally = Tally()
        self.call_texts = CallTexts()
        """What models wrote to call and were answered that is not on the bill yet."""
        self.steps = SentSteps()
        """The lists that were sent lately."""
        self._has_news = False

    @property
    def totals(self) -> Counter[tuple[str, str, str]]:
        """Return how often each event happened, by event, agent, and outcome where it is a call or a refusal."""
        self._count_calls()
        return self._totals

    @property
    def tally(self) -> Tally:
        """Return what was done that is not handed to the store yet."""
        self._count_calls()
        return self._tally

    def count_event(self, event: str, record: AuditRecord) -> None:
        """Count an event of the audit trail, where it is one of the numbers."""
        if event == "called":
            self._calls.append(record)
            if len(self._calls) >= AT_ONCE:
                self._count_calls()
            if not self._has_news:
                self._notify_news()
            return
        key = record.principal, record.agent, record.session
        if event == "approval_asked":
            self._count(key, "waits", tool=record.subject, outcome="waits")
        if (name := _OF.get(event)) is None:
            return
        self._totals[event, record.agent, record.outcome if event == "denied" else ""] += 1
        counted = self._counted_session(key)
        setattr(counted, name, getattr(counted, name) + 1)
        if event == "denied" and record.kind != "load":  # a load that is refused is no call
            self._count(key, name, tool=record.subject, outcome="refused")
        elif name in _BILLED:
            self._count(key, name)
        self.on_decided()

    def _count(self, key: Key, name: str, *, tool: str = "", outcome: UsageOutcome | None = None) -> None:
        self._tally.add(key, name, tool=tool, outcome=outcome)
        if not self._has_news:
            self._notify_news()

    def _count_calls(self) -> None:
        """Count the calls that wait for it."""
        if not self._calls:
            return
        records, self._calls = self._calls, []
        calls: dict[tuple[Key, str, str, str], list[float | None]] = {}
        for _, _, principal, agent, session, _, tool, decision, _, duration, came_to, _, _ in records:
            names = (principal, agent, session), tool, decision, came_to
            durations = calls.pop(names, None) or []
            durations.append(duration)
            calls[names] = durations  # the session with the newest call is the last
        for (key, tool, decision, came_to), durations in calls.items():
            outcome = "ok" if came_to == "ok" else "refused" if decision == "refused" else "error"
            self._tally.add_calls(key, tool, outcome, durations)
            self._totals["called", key[1], came_to] += len(durations)
            self._counted_session(key).calls += len(durations)

    def turn_ended(self, key: SessionKey) -> None:
        """Count the end of a turn."""
        self.totals["turn_ended", key.agent, ""] += 1
        counted = self._counted_session((key.principal, key.agent, key.session))
        counted.turns += 1

    def count_surface(self, key: SessionKey, surface: Surface) -> None:
        """Note a surface that was given out; its tokens are counted when someone asks."""
        counted = self._counted_session((key.principal, key.agent, key.session))
        counted.surfaces += 1
        if counted.newest is surface:
            return
        counted.newest = surface
        counted.tools = tuple([out.tool for out in surface.tools])
        counted.texts = tuple(text for text in (*surface.hints, surface.suffix, surface.policy) if text)

    def newest(self, key: SessionKey) -> SentTexts | None:
        """Return the newest surface of a session, or None where this process knows none."""
        counted = self._sessions.get((key.principal, key.agent, key.session))
        return None if counted is None or counted.tools is None else (counted.tools, counted.texts)

    def count_request(
        self,
        key: SessionKey,
        permissions: CompiledPermissions,
        listed: SentTexts | None = None,
        *,
        host: Host = LIBRARY,
    ) -> SentList:
        """Count a request of a model that was sent these tools and texts, or the session's newest surface (None).

        They are priced with the next bill, as the host sends them.
        """
        counted = self._counted_session((key.principal, key.agent, key.session))
        tools, texts = listed or (counted.tools or (), counted.texts)
        last = counted.sent[-1] if counted.sent else None
        if (
            last is None
            or last.permissions is not permissions
            or last.client is not host.client
            or last.tools != tools
            or last.texts != texts
        ):
            last = SentList(permissions, tools, texts, host.cache is not None, host.client)
            counted.sent.append(last)
            last.step = self.steps.note(key, tools, texts, counted.newest)
        last.requests += 1
        self._sent[counted.key] = counted
        if not self._has_news:
            self._notify_news()
        return last

    def take_back_list(self, key: SessionKey, sent: SentList) -> bool:
        """Take back that a list was sent, since another went in its place; return whether it was not billed yet."""
        if not sent.billed:
            sent.requests -= 1
            if not sent.requests and sent.step is not None:
                self.steps.remove_unsent(key, sent.step)
        return not sent.billed

    def count_search(self, key: SessionKey) -> None:
        """Count a search."""
        self._count((key.principal, key.agent, key.session), "searches")

    def meta_called(self, key: SessionKey) -> None:
        """Count a call of a meta-tool."""
        self._count((key.principal, key.agent, key.session), "meta_calls")

    def texts_of_call(
        self,
        key: SessionKey,
        arguments: JsonObject | None,
        answered: CallAnswer,
        *,
        meta: bool,
        sent: int | None = None,
    ) -> None:
        """Note what a model wrote to call and was answered, as :meth:`CallTexts.add`: counted with the next bill."""
        self.call_texts.add((key.principal, key.agent, key.session), arguments, answered, meta=meta, sent=sent)
        if not self._has_news:
            self._notify_news()

    def take_sent(self) -> list[tuple[Key, Sequence[SentList]]]:
        """Return the lists that models were sent since this was called last; they are billed with this."""
        taken, self._sent, self._has_news = self._sent, {}, False
        return [(key, _take_unbilled(counted)) for key, counted in taken.items()]

    def _notify_news(self) -> None:
        self._has_news = True
        self.on_news()

    def report(
        self, price: Price, count: Callable[[str], int], everything: Callable[[str], Everything]
    ) -> list[dict[str, Any]]:
        """Return one record per session, the one with the newest news last.

        ``tokens`` are those of its newest surface, ``saved`` what listing everything that its agent may use would
        cost more; both are None before it had one, and ``saved`` while some of that is unknown.
        """
        self._count_calls()
        found: list[dict[str, Any]] = []
        for key, counted in self._sessions.items():
            tokens, saved = None, None
            if counted.tools is not None:
                tokens = price(counted.tools) + sum(map(count, counted.texts))
                of_agent = everything(key[1])
                saved = None if of_agent is None else price(of_agent) - tokens
            found.append(_record(key, counted, tokens, saved))
        return found

    def _counted_session(self, key: Key) -> Counted:
        self._count_calls()
        counted = self._sessions.get(key)
        if counted is not None:
            self._sessions.move_to_end(key)
            return counted
        counted = self._sessions[key] = Counted(key)
        while len(self._sessions) > KEPT:
            self._sessions.popitem(last=False)
        return counted


def _take_unbilled(counted: Counted) -> Sequence[SentList]:
    """Return the lists of a session that are not billed yet, which they are with this."""
    sent, counted.sent = counted.sent, []
    for one in sent:
        one.billed = True
        if one.cached and one.requests:
            one.begins, one.fresh = counted.in_cache is None, counted.in_cache != (one.tools, one.texts)
            counted.in_cache = one.tools, one.texts
    return sent


def _record(key: Key, counted: Counted, tokens: int | None, saved: int | None) -> dict[str, Any]:
    return {
        "principal": key[0],
        "agent": key[1],
        "session": key[2],
        "loads": counted.loads,
        "unloads": counted.unloads,
        "evictions": counted.evictions,
        "denials": counted.denials,
        "calls": counted.calls,
        "turns": counted.turns,
        "surfaces": counted.surfaces,
        "tokens": tokens,
        "saved": saved,
    }
