"""Price what models were sent, and hand what was counted to the store, while no model waits (F4)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pegboard.board.observability.call_texts import CallTotals, CountMany
from pegboard.board.observability.metrics import PluginOf, SentList, SessionMetrics
from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions
from pegboard.core.model.known_clients import KnownClient, ListedServer
from pegboard.core.model.tools import Tool
from pegboard.core.state.requirements import unknown_plugins
from pegboard.core.surface.direct_lists import direct_servers, own_server
from pegboard.ports import CountRecord, Counts, RequestStore
from pegboard.ports.counts import STEP, start_of
from pegboard.support.tasks import call_later_detached, start_detached

Price = Callable[[Sequence[Tool]], int]

EVERY = 5.0
"""For how many seconds a killed process may lose what tokens came to, and what it counted but for a shared store."""
AT_ONCE: Final = 64
"""How many tools are priced before others may go on: one that is new takes some 30 microseconds."""

log = logging.getLogger("pegboard")


class Billing:
    """The bill of one board's sessions.

    ``clock`` gives seconds since the epoch, ``plugin_of`` what a tool is of, ``rendered`` the name of a tool as the
    trail has it. ``count_apart`` counts texts of which nothing is kept.
    """

    def __init__(
        self,
        metrics: SessionMetrics,
        store: RequestStore,
        price: Price,
        count: Callable[[str], int],
        plugin_of: PluginOf,
        clock: Callable[[], float] = time.time,
        *,
        rendered: Callable[[str], str] = str,
        count_apart: CountMany | None = None,
    ) -> None:
        self._metrics = metrics
        self._store = store
        self._price = price
        self._count = count
        self._plugin_of = plugin_of
        self._clock = clock
        self._rendered = rendered
        self._count_apart = count_apart or self._count_in_turns
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._flushing = asyncio.Lock()
        metrics.on_news = self._schedule_flush
        if store.fetch_counts(self._store_counts):
            metrics.on_decided = self._store_counts

    async def flush(self, *, at_once: bool = False) -> None:
        """Price what was counted since the last time, and hand it to the store, which adds it in its next batch.

        With ``at_once`` no tokenizer is read for what calls took and gave: it is estimated where it is not known.
        """
        async with self._flushing:
            self._store_counts()
            start = start_of(STEP, self._since)
            sent = self._metrics.take_sent()
            of_calls = await self._metrics.call_texts.take(None if at_once else self._count_apart)
            records = [self._record_of_texts(start, one) for one in of_calls]
            for key, lists in sent:
                if (counts := await self._count_lists(lists)).requests:
                    records.append(CountRecord(start, *key, outcome="listed", counts=counts))
            self._store.count_later(*records)

    async def aclose(self) -> None:
        """Flush what is left, where it outlives the process."""
        self._stop_timer()
        if self._task is not None:
            await asyncio.wait([self._task])
        if self._store.lasts:
            await self.flush(at_once=True)

    def _schedule_flush(self) -> None:
        """Flush in some seconds, at the end of the step at the latest: what is counted until then is of one."""
        self._since = self._clock()
        self._stop_timer()
        try:
            self._timer = call_later_detached(min(EVERY, STEP.seconds - self._since % STEP.seconds), self._start)
        except RuntimeError:  # no loop runs
            return

    def _store_counts(self) -> None:
        """Hand what was done to the store; what it took in tokens is counted later, and what was sent."""
        self._store.count_later(*self._metrics.tally.take(start_of(STEP, self._since), self._plugin_of))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self) -> None:
        self._timer = None
        self._task = start_detached(self._flush_or_log())

    async def _flush_or_log(self) -> None:
        try:
            await self.flush()
        except Exception:
            log.exception("the requests of the last seconds are not on the bill")

    def _record_of_texts(self, start: int, one: CallTotals) -> CountRecord:
        counts = Counts(arguments=one.arguments, results=one.results, estimated=one.estimated)
        plugin, tool = (self._plugin_of(one.tool), self._rendered(one.tool)) if one.tool else (None, "")
        return CountRecord(start, *one.key, plugin or "", tool, one.outcome, counts)

    async def _count_in_turns(self, texts: Sequence[str]) -> Sequence[int]:
        found: list[int] = []
        for text in texts:
            found.append(self._count(text))
            await asyncio.sleep(0)
        return found

    async def _count_lists(self, lists: Sequence[SentList]) -> Counts:
        counts = Counts()
        for one in lists:
            if not one.requests:
                continue
            texts = sum(map(self._count, one.texts))
            of_list = await self._tokens_of_servers(one.client, [own_server(one.tools)]) + texts
            everything = await self._tokens_of_all_tools(one.permissions, one.client)
            counts = counts.plus(_counts_of(one, of_list, texts, everything))
        return counts

    async def _tokens_of_all_tools(self, permissions: CompiledPermissions, client: KnownClient) -> int | None:
        """Return the tokens that a client would send of everything that an agent may use, without Pegboard (F4).

        It is None while some of that is unknown.
        """
        if unknown_plugins(permissions):
            return None
        known = _everything_of(permissions, self)
        if client not in known.by_client:
            servers = [replace(server, instructions="") for server in direct_servers(permissions)]
            known.by_client[client] = await self._tokens_of_servers(client, servers)
        return known.by_client[client]

    async def _tokens_of_servers(self, client: KnownClient, servers: Sequence[ListedServer]) -> int:
        """Return the tokens that a client sends of the tools of some servers."""
        tools, texts = client.request(servers)
        return await self._tokens(tools) + sum(map(self._count, texts))

    async def _tokens(self, tools: Sequence[Tool]) -> int:
        total = 0
        for place in range(0, len(tools), AT_ONCE):
            total += self._price(tools[place : place + AT_ONCE])
            await asyncio.sleep(0)
        return total


def _counts_of(sent: SentList, of_list: int, texts: int, everything: int | None) -> Counts:
    """Return what a list came to; under a prompt cache one that is new is written once, and read from then on.

    Everything listed would never change: it would be written once in a session.
    """
    requests = sent.requests
    fresh, begins = (int(sent.fresh), int(sent.begins)) if sent.cached else (0, 0)
    written, cached = of_list * fresh, of_list * (requests - fresh) if sent.cached else 0
    found = Counts(requests=requests, tokens=of_list * requests, texts=texts * requests, written=written, cached=cached)
    if everything is None:
        return found._replace(unknown=requests)
    all_cached = everything * (requests - begins) if sent.cached else 0
    return found._replace(
        saved=(everything - of_list) * requests,
        saved_written=everything * begins - written,
        saved_cached=all_cached - cached,
    )


@dataclass(slots=True)
class _TokensOfEverything:
    """The tokens of everything that an agent may use, as each client sends it, once they are counted."""

    by_client: dict[KnownClient, int] = field(default_factory=dict["KnownClient", int])


@once_per_permissions
def _everything_of(permissions: CompiledPermissions, billing: Billing) -> _TokensOfEverything:  # noqa: ARG001 - prices are a board's
    return _TokensOfEverything()
