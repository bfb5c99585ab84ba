"""What the tools of a run came to, counted over what its requests were sent (F4)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pegboard.board.services import Services
from pegboard.board.views.shown_to_model import RunRecord, SentRequests
from pegboard.core.model.delivery import Cache
from pegboard.core.model.tools import Tool
from pegboard.core.state.requirements import unknown_plugins, usable
from pegboard.core.surface.run_cost import AlternativeCosts, RequestPart, RunCost, SentRequest, run_cost

AT_ONCE: Final = 64
"""How many tools are priced before others may go on."""


async def cost_of_run(services: Services, run: RunRecord, reported: float | None) -> RunCost:
    """Return what the tools of a run came to; ``reported`` is the share that a provider read from its cache."""
    if not run.sent:
        nothing = run_cost((), before=None, cache=Cache(), otherwise=None, reported=reported)
        return replace(nothing, deferred=0.0, listed=0.0)
    sent, before, history, newest = tuple(run.sent), run.before, tuple(run.history), run.sent[-1].sent
    used, loading = dict(run.used), len(run.loading - run.working)
    tools = usable(newest.permissions)
    for place in range(0, len(tools), AT_ONCE):
        services.prices(tools[place : place + AT_ONCE])
        await asyncio.sleep(0)
    known = [_price_piece(services, one) for one in history]
    requests = [one for each in sent for one in [_request(services, each.sent, known)] * each.requests]
    all_known = not unknown_plugins(newest.permissions)
    return run_cost(
        requests,
        before=None if before is None else _request(services, before, known),
        cache=newest.cache,
        otherwise=_cost_otherwise(services, newest, tools, used, loading) if all_known else None,
        reported=reported,
    )


def _request(services: Services, sent: SentRequests, known: Sequence[RequestPart]) -> SentRequest:
    texts = RequestPart(sent.texts, services.prices.texts(sent.texts))
    return SentRequest(
        head=(*(_price_piece(services, tool) for tool in sent.tools), texts),
        history=tuple(known[: sent.known]),
        note=services.counter.count(sent.note) if sent.note else 0,
    )


def _price_piece(services: Services, part: Tool | str) -> RequestPart:
    return RequestPart(part, services.counter.count(part) if isinstance(part, str) else services.prices([part]))


def _cost_otherwise(
    services: Services, newest: SentRequests, tools: Sequence[Tool], used: dict[str, int], loading: int
) -> AlternativeCosts:
    prices, plugins = services.prices, newest.permissions.world.catalog.plugins
    sizes = dict.fromkeys((tool.plugin for tool in tools), 0)
    for tool in tools:
        sizes[tool.plugin] += prices([tool])
    return AlternativeCosts(
        catalog=sum(sizes.values()),
        lines=prices.texts(tuple(f"{name}: {plugins[name].description}" for name in sizes)),
        joined=[(sizes[name], place) for name, place in used.items() if name in sizes],
        loading=loading,
    )
