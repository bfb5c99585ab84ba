"""What the requests of a session's run were sent, kept until somebody asks what that cost (F4)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import Final

from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.delivery import Cache
from pegboard.core.model.leases import LEASED
from pegboard.core.model.tools import Tool, joined_text
from pegboard.core.state.call_plans import CallAnswer
from pegboard.core.state.requirements import unknown_plugins, usable
from pegboard.core.surface.definitions import defined_in
from pegboard.core.surface.run_cost import Otherwise, Piece, RunCost, SentRequest, run_cost
from pegboard.core.surface.surfaces import Surface
from pegboard.dialects.names import META_PLUGIN

AT_ONCE: Final = 64
"""How many tools are priced before others may go on."""
NO_CACHE: Final = Cache()
LOADED_INSTEAD: Final = ("not_loaded", "next_request")
"""The answers to calls that only loaded what was called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """What some requests in a row were sent; ``known`` is how much the history had."""

    permissions: CompiledPermissions
    cache: Cache
    tools: tuple[Tool, ...]
    texts: tuple[str, ...]
    note: str
    known: int


@dataclass(slots=True, kw_only=True)
class _Series:
    """Requests in a row that were sent the same, and what the newest of them was made of."""

    sent: _Sent
    made_of: tuple[object, ...]
    requests: int = 1

    def is_of(self, made_of: tuple[object, ...], known: int) -> bool:
        """Return whether a request is seen at once to be sent the same: it is made of the same objects."""
        return self.sent.known == known and all(map(is_, self.made_of, made_of))


class RunRecord:
    """The requests of one session object's run: of the newest, until the next one begins.

    Nothing is counted before somebody asks.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._sent: list[_Series] = []
        self._before: _Sent | None = None
        self._requests = 0
        self._over = False
        self._history: list[Tool | str] = []
        self._revealed: dict[str, Tool] = {}
        self._defined: set[str] = set()
        self._used: dict[str, int] = {}
        self._working: set[int] = set()
        self._loading: set[int] = set()

    def requested(self, snapshot: Snapshot, shown: Surface, tools: Sequence[Tool]) -> None:
        """Note a request with these tools, and with the texts of a surface."""
        if self._over:
            self._begin()
        self._requests += 1
        last, host = self._sent[-1] if self._sent else None, snapshot.info.host
        made_of = snapshot.permissions, host, shown, tools
        if last is not None and last.is_of(made_of, len(self._history)):
            last.requests += 1
            return
        if shown.ahead and shown.ahead not in self._history:
            self._history.append(shown.ahead)
        sent = _Sent(
            permissions=snapshot.permissions,
            cache=host.cache or NO_CACHE,
            tools=self._head(shown, tools) if host.reveals else tuple(tools),
            texts=tuple(text for text in (*shown.hints, shown.policy) if text),
            note=shown.suffix,
            known=len(self._history),
        )
        if last is not None and last.sent == sent:
            last.made_of, last.requests = made_of, last.requests + 1
        else:
            self._sent.append(_Series(sent=sent, made_of=made_of))

    def requested_instead(self, snapshot: Snapshot, shown: Surface, tools: Sequence[Tool]) -> None:
        """Note that the newest request was sent other tools."""
        if self._sent:
            self._requests -= 1
            self._sent[-1].requests -= 1
            if not self._sent[-1].requests:
                self._sent.pop()
        self.requested(snapshot, shown, tools)

    def called(self, answer: CallAnswer, *, meta: bool) -> None:
        """Note a call that the newest request brought, ``meta`` where it was made through a meta-tool."""
        if not self._sent:
            return
        place, tool = self._requests - 1, answer.tool
        through = meta and tool is not None and tool.plugin != META_PLUGIN
        if (meta and not through) or answer.status in LOADED_INSTEAD:
            self._loading.add(place)
            text = joined_text(answer.result)
            self._history.append(text)
            self._defined.update(defined_in(text))
            return
        self._working.add(place)
        if tool is not None and answer.status in ("ok", "error"):
            self._used.setdefault(tool.plugin, place)

    def ended(self) -> None:
        """Note that the run is over; the next request begins another one."""
        self._over = True

    async def cost(self, reported: float | None) -> RunCost:
        """Return what the tools of the run came to; ``reported`` is the share that a provider read from its cache."""
        if not self._sent:
            nothing = run_cost((), before=None, cache=Cache(), otherwise=None, reported=reported)
            return replace(nothing, deferred=0.0, listed=0.0)
        sent, before, history, newest = tuple(self._sent), self._before, tuple(self._history), self._sent[-1].sent
        used, loading = dict(self._used), len(self._loading - self._working)
        tools = usable(newest.permissions)
        for place in range(0, len(tools), AT_ONCE):
            self._services.prices(tools[place : place + AT_ONCE])
            await asyncio.sleep(0)
        kept = [self._piece(one) for one in history]
        requests = [one for each in sent for one in [self._request(each.sent, kept)] * each.requests]
        return run_cost(
            requests,
            before=None if before is None else self._request(before, kept),
            cache=newest.cache,
            otherwise=None if unknown_plugins(newest.permissions) else self._otherwise(newest, tools, used, loading),
            reported=reported,
        )

    def _begin(self) -> None:
        self._before = self._sent[-1].sent if self._sent else self._before
        self._sent, self._requests, self._over = [], 0, False
        self._used = dict.fromkeys(self._used, -1)
        self._working, self._loading = set(), set()

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
                self._history.append(tool)
        return tuple(tool for tool in tools if tool.id in first)

    def _request(self, sent: _Sent, kept: Sequence[Piece]) -> SentRequest:
        texts = Piece(sent.texts, self._services.prices.texts(sent.texts))
        return SentRequest(
            head=(*map(self._piece, sent.tools), texts),
            history=tuple(kept[: sent.known]),
            note=self._services.counter.count(sent.note) if sent.note else 0,
        )

    def _piece(self, what: Tool | str) -> Piece:
        services = self._services
        return Piece(what, services.counter.count(what) if isinstance(what, str) else services.prices([what]))

    def _otherwise(self, newest: _Sent, tools: Sequence[Tool], used: dict[str, int], loading: int) -> Otherwise:
        prices, plugins = self._services.prices, newest.permissions.world.catalog.plugins
        sizes = dict.fromkeys((tool.plugin for tool in tools), 0)
        for tool in tools:
            sizes[tool.plugin] += prices([tool])
        return Otherwise(
            catalog=sum(sizes.values()),
            lines=prices.texts(tuple(f"{name}: {plugins[name].description}" for name in sizes)),
            joined=[(sizes[name], place) for name, place in used.items() if name in sizes],
            loading=loading,
        )
