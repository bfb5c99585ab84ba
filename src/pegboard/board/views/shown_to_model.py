"""What the model was shown, what stays on the wire because it pays, and the requests that are counted (D3, F3, F4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import TYPE_CHECKING, Final

from pegboard.board.meta_tools import command_context, hints_to_show, meta_tools, view
from pegboard.board.observability.conversations import Request
from pegboard.board.observability.metrics import SentList, SentTexts
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.board.views.surface import sent_at_start, sent_texts
from pegboard.core.access.names import find_called
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.delivery import COMMAND, Cache, choose
from pegboard.core.model.leases import LEASED
from pegboard.core.model.tools import Tool, joined_text
from pegboard.core.state.active_tools import starting_tools
from pegboard.core.state.requirements import usable
from pegboard.core.state.sessions import DEFAULT
from pegboard.core.state.shrinking import Size, excess_over_budget
from pegboard.core.surface.cache_cost import Sizes, plan, wire_list
from pegboard.core.surface.definitions import defined_in
from pegboard.core.surface.surfaces import Surface
from pegboard.dialects.names import META_PLUGIN

if TYPE_CHECKING:
    from pegboard.core.state.call_plans import CallAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownToModel:
    """What the model was shown last.

    ``surface`` are the tools of the newest surface, ``focus`` the wire names that its focus allows, None without one.
    ``wire_list`` is the tool list that was sent last, ``unloaded`` the wire names of what was unloaded by name since,
    ``answered`` the ids of what reached the model in the answer of its load, and waits for a boundary of the cache to
    be listed (D1).
    """

    surface: tuple[Tool, ...] = ()
    focus: frozenset[str] | None = None
    wire_list: tuple[Tool, ...] = ()
    unloaded: frozenset[str] = frozenset()
    answered: frozenset[str] = frozenset()

    def after(self, snapshot: Snapshot, request: Request) -> ShownToModel:
        """Return the same after a request: no list keeps what it unloaded, its answer has what it loaded (D1, D3)."""
        answered = request.brought if choose(snapshot.info.host) == "result" else frozenset[str]()
        return replace(self, unloaded=self.unloaded | snapshot.unloaded, answered=self.answered | answered)

    def still_lists(self, tool: Tool) -> bool:
        """Return whether the model still has the schema of a tool whose lease lapsed: a call renews it and runs."""
        return tool.wire not in self.unloaded and any(listed.wire == tool.wire for listed in self.wire_list)


def loading_all_is_cheaper(services: Services, snapshot: Snapshot) -> bool:
    """Return whether loading all that is permitted from the start is cheapest for the host's cache (F4)."""
    return loading_all_fits(services, snapshot) and plan(_sizes(services, snapshot), snapshot.info.host).everything


def loading_all_fits(services: Services, snapshot: Snapshot) -> bool:
    """Return whether the budget has room for all that is permitted (S9)."""
    permissions = snapshot.permissions
    if not permissions.budgeted:
        return True
    terms = command_context(services, snapshot.info, permissions)
    return not excess_over_budget(
        permissions, Size(tools=0).with_tools(permissions, (*terms.meta, *usable(permissions)), terms)
    )


def _sizes(services: Services, snapshot: Snapshot) -> Sizes:
    info, permissions = snapshot.info, snapshot.permissions
    start = starting_tools(permissions)
    tools = [tool for tool in permissions.permitted if tool.id not in start.head and tool.id not in start.tail]
    count = services.counter.count
    shown = hints_to_show(services, info, permissions, DEFAULT)
    named = sum(ref.startswith("tool:") for ref in shown.about)
    one_by_one = 2 * named >= len(tools)
    return Sizes(
        everything=services.prices(tools),
        units=len(shown.about),
        by="tool" if one_by_one else "plugin",
        meta=services.prices(meta_tools(services, info, view(services, info, permissions, DEFAULT))),
        hints=0 if info.host.calls_through else count("\n".join(shown.lines)),
        plugins=len({tool.plugin for tool in tools}) if permissions.agent.anticipate is not None else 0,
    )


def next_wire_list(
    services: Services, snapshot: Snapshot, shown: ShownToModel, surface: Surface, revealed: Iterable[str] = ()
) -> ShownToModel:
    """Return what is shown with the next request: what is loaded, and what lapsed while keeping it is cheaper (D3).

    ``revealed`` are the wire names of what the history has revealed: it stays as long as it is permitted (D4).
    """
    info, listed = snapshot.info, frozenset(tool.id for tool in shown.wire_list)
    warm = bool(shown.wire_list) and info.host.cache is not None and bool(info.host.cache.tokens)
    answered = shown.answered - listed if warm else frozenset[str]()
    loaded = tuple(loaded.tool for loaded in surface.tools if loaded.tool.id not in answered)
    unloaded = shown.unloaded - {one.tool.wire for one in surface.tools if not one.leaving}

    def may_stay(tool: Tool) -> bool:
        return tool.wire not in unloaded and snapshot.permissions.permits(tool)

    if info.host.reveals:
        known = {tool.wire: tool for tool in shown.wire_list}
        lapsed = [known.get(name) or find_called(snapshot.permissions, name, listed) for name in (*known, *revealed)]
        now = {tool.wire: tool for tool in loaded}
        stays = {tool.wire: tool for tool in lapsed if tool is not None and tool.wire not in now and may_stay(tool)}
        return replace(shown, wire_list=(*loaded, *stays.values()), unloaded=unloaded, answered=frozenset())
    tools = wire_list(
        shown.wire_list,
        loaded,
        lambda tool: services.prices([tool]),
        cache=info.host.cache,
        turns_left=float(surface.turn),
        may_stay=may_stay,
    )
    return replace(shown, wire_list=tools, unloaded=unloaded, answered=answered)


NO_CACHE: Final = Cache()
LOADED_INSTEAD: Final = ("not_loaded", "next_request")
"""The answers to calls that only loaded what was called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequests:
    """What some requests in a row were sent; ``known`` is how much the history had."""

    permissions: CompiledPermissions
    cache: Cache
    tools: tuple[Tool, ...]
    texts: tuple[str, ...]
    note: str
    known: int


@dataclass(slots=True, kw_only=True)
class SentSeries:
    """Requests in a row that were sent the same, and what the newest of them was made of."""

    sent: SentRequests
    made_of: tuple[object, ...]
    requests: int = 1

    def is_of(self, made_of: tuple[object, ...], known: int) -> bool:
        """Return whether a request is seen at once to be sent the same: it is made of the same objects."""
        return self.sent.known == known and all(map(is_, self.made_of, made_of))


class RunRecord:
    """The requests of one session object's run: of the newest, until the next one begins.

    ``history`` is what the model has read beside its lists, and ``before`` what was sent last in the run before. Of the
    requests of the run, by their places: ``used`` has the first that used a plugin, ``working`` those that called a
    tool, ``loading`` those that loaded one. What it costs is counted when it is asked (``run_costs``).
    """

    def __init__(self) -> None:
        self.sent: list[SentSeries] = []
        self.before: SentRequests | None = None
        self._requests = 0
        self._over = False
        self.history: list[Tool | str] = []
        self._revealed: dict[str, Tool] = {}
        self._defined: set[str] = set()
        self.used: dict[str, int] = {}
        self.working: set[int] = set()
        self.loading: set[int] = set()

    def note_request(self, snapshot: Snapshot, shown: Surface, tools: Sequence[Tool]) -> None:
        """Note a request with these tools, and with the texts of a surface."""
        if self._over:
            self._begin_run()
        self._requests += 1
        last, host = self.sent[-1] if self.sent else None, snapshot.info.host
        made_of = snapshot.permissions, host, shown, tools
        if last is not None and last.is_of(made_of, len(self.history)):
            last.requests += 1
            return
        if shown.ahead and shown.ahead not in self.history:
            self.history.append(shown.ahead)
        sent = SentRequests(
            permissions=snapshot.permissions,
            cache=host.cache or NO_CACHE,
            tools=self._head(shown, tools) if host.reveals else tuple(tools),
            texts=tuple(text for text in (*shown.hints, shown.policy) if text),
            note=shown.suffix,
            known=len(self.history),
        )
        if last is not None and last.sent == sent:
            last.made_of, last.requests = made_of, last.requests + 1
        else:
            self.sent.append(SentSeries(sent=sent, made_of=made_of))

    def requested_instead(self, snapshot: Snapshot, shown: Surface, tools: Sequence[Tool]) -> None:
        """Note that the newest request was sent other tools."""
        if self.sent:
            self._requests -= 1
            self.sent[-1].requests -= 1
            if not self.sent[-1].requests:
                self.sent.pop()
        self.note_request(snapshot, shown, tools)

    def note_call(self, answer: CallAnswer, *, meta: bool) -> None:
        """Note a call that the newest request brought, ``meta`` where it was made through a meta-tool."""
        if not self.sent:
            return
        place, tool = self._requests - 1, answer.tool
        through = meta and tool is not None and tool.plugin != META_PLUGIN
        if (meta and not through) or answer.status in LOADED_INSTEAD:
            self.loading.add(place)
            text = joined_text(answer.result)
            self.history.append(text)
            self._defined.update(defined_in(text))
            return
        self.working.add(place)
        if tool is not None and answer.status in ("ok", "error"):
            self.used.setdefault(tool.plugin, place)

    def end_run(self) -> None:
        """Note that the run is over; the next request begins another one."""
        self._over = True

    def _begin_run(self) -> None:
        self.before = self.sent[-1].sent if self.sent else self.before
        self.sent, self._requests, self._over = [], 0, False
        self.used = dict.fromkeys(self.used, -1)
        self.working, self.loading = set(), set()

    def _head(self, shown: Surface, tools: Sequence[Tool]) -> tuple[Tool, ...]:
        """Return the tools that stand at the head, and note what the history reveals beside them (D4)."""
        leased = {one.tool.id for one in shown.tools if one.because[0] in LEASED}
        if not leased and len(tools) == len(shown.tools):
            return tuple(tools)
        first = {one.tool.id for one in shown.tools if one.tool.id not in leased and leased.isdisjoint(one.needed_by)}
        for tool in tools:
            if tool.id in first or tool.wire in self._defined:
                continue
            if self._revealed.get(tool.wire) != tool:
                self._revealed[tool.wire] = tool
                self.history.append(tool)
        return tuple(tool for tool in tools if tool.id in first)


@dataclass(frozen=True, slots=True, kw_only=True)
class _HostStep:
    """What a host has asked for since its model called something: a surface, and then perhaps a wire list.

    ``again`` is the message with which it asks for the surface once more, whose focus the wire list took away.
    """

    sent: SentList
    wired: bool
    again: str | None


class RequestCounter:
    """The requests to the model of one session object's host, each counted once, with what was sent."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._run: RunRecord | None = None
        self._listed: SentTexts | None = None
        self._step: _HostStep | None = None

    @property
    def run(self) -> RunRecord:
        """Return what the requests of the newest run were sent; a session of the gateway makes no record of it."""
        if self._run is None:
            self._run = RunRecord()
        return self._run

    def end_run(self) -> None:
        """Note that the run is over, where there is one."""
        if self._run is not None:
            self._run.end_run()

    def note_answer(self, answer: CallAnswer, *, meta: bool) -> None:
        """Note what came of a call of the run, where there is one; see :meth:`RunRecord.note_call`."""
        if self._run is not None:
            self._run.note_call(answer, meta=meta)

    def count_surface(self, snapshot: Snapshot, shown: Surface, tools: tuple[Tool, ...], message: str | None) -> None:
        """Count the request that a surface with these tools is for; a client's own are counted when it calls."""
        host, step = snapshot.info.host, self._step
        if host.calls_through:
            self._listed = sent_texts(shown)
        elif step is not None and step.wired and message is not None and step.again == message:
            self._step = None
        elif host is not COMMAND:
            counted = self._services.metrics.count_request(snapshot.info.key, snapshot.permissions, host=host)
            self.run.note_request(snapshot, shown, tools)
            again = message if shown.focus is not None else None
            self._step = _HostStep(sent=counted, wired=False, again=again)

    def count_wire_list(self, snapshot: Snapshot, shown: Surface, wire_list: tuple[Tool, ...]) -> None:
        """Count the request that a wire list is for; the surface that it follows was for the same."""
        step, metrics, again = self._step, self._services.metrics, None
        if step is None or step.wired:
            self.run.note_request(snapshot, shown, wire_list)
        else:
            self.run.requested_instead(snapshot, shown, wire_list)
            again = step.again
            if not metrics.take_back_list(snapshot.info.key, step.sent):
                self._step = replace(step, wired=True)
                return
        info = snapshot.info
        listed = wire_list, sent_texts(shown)[1]
        counted = metrics.count_request(info.key, snapshot.permissions, listed, host=info.host)
        self._step = _HostStep(sent=counted, wired=True, again=again)

    def count_call(self, snapshot: Snapshot, request: Request) -> None:
        """Count the request that a client's model made before it called; those that come together came of one."""
        self._step = None
        info = snapshot.info
        if not info.host.calls_through or not request.is_alone:
            return
        listed = self._listed if "array" in info.host.delivery else None
        if listed is None:
            listed = sent_at_start(snapshot.permissions, self._services, info.host, info.stable)
        self._services.metrics.count_request(info.key, snapshot.permissions, listed, host=info.host)
