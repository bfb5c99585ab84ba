"""The start page: what needs a person, what went on, what was busiest, and what happens right now (F5)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, get_args

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.operator_request import OperatorRequest
from pegboard.errors import UsageError
from pegboard.operators.audit import AuditQuery, FoldedLine, fold_lines
from pegboard.operators.audit import audit as read_trail
from pegboard.operators.usage import PERIODS, Usage, UsagePeriod, UsageQuery

ROWS: Final = 8
"""How many agents, servers and tools are listed as the busiest."""
TICKS: Final = 10
"""How many of the newest records are shown."""
_HOME: Final = "/console"
_PARTS: Final = "/console/overview"


async def overview_page(context: Context, visit: OperatorRequest) -> Response:
    """Show all of it."""
    period = _period(visit)
    usage = await _usage(context, visit, period)
    ticks = await _newest_changes(context, visit)
    return context.templates.page(
        "overview.html",
        visit,
        **_of_usage(usage, period),
        found=visit.attention,
        ticks=ticks,
        first=None if ticks else _first_steps(context, visit),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSteps:
    """What is still to do before an agent can call: how many plugins there are, and what a client is given."""

    plugins: int
    file: str
    snippet: str
    quickstart: bool


def _first_steps(context: Context, visit: OperatorRequest) -> FirstSteps:
    """Return what a client needs to reach the gateway at the address at which this page was asked for."""
    url = visit.request.url
    entry: dict[str, Any] = {"type": "http", "url": f"{url.scheme}://{url.netloc}/mcp"}
    if context.board.configuration.tokens:
        entry["headers"] = {"Authorization": "Bearer ${PEGBOARD_TOKEN}"}
    return FirstSteps(
        plugins=len(context.services.world.catalog.plugins),
        file=context.board.configuration.path.name,
        quickstart=context.board.quickstart,
        snippet=json.dumps({"mcpServers": {"pegboard": entry}}, indent=2),
    )


async def attention_part(context: Context, visit: OperatorRequest) -> Response:
    """Show what needs a person."""
    return context.templates.page("attention.html", visit, found=await context.attention(visit))


async def count_part(context: Context, visit: OperatorRequest) -> Response:
    """Show how much needs a person."""
    return context.templates.page("attention_count.html", visit, needing=await context.attention(visit))


async def usage_part(context: Context, visit: OperatorRequest) -> Response:
    """Show what went on."""
    period = _period(visit)
    return context.templates.page("usage.html", visit, **_of_usage(await _usage(context, visit, period), period))


async def figures_part(context: Context, visit: OperatorRequest) -> Response:
    """Show the sums of the period."""
    period = _period(visit)
    usage = await _usage(context, visit, period)
    return context.templates.page("usage_figures.html", visit, **_of_usage(usage, period))


async def live_part(context: Context, visit: OperatorRequest) -> Response:
    """Show what happens right now."""
    return context.templates.page("live.html", visit, ticks=await _newest_changes(context, visit))


def _of_usage(usage: Usage, period: UsagePeriod) -> dict[str, Any]:
    return {"usage": usage, "period": period, "periods": get_args(UsagePeriod)}


def _period(visit: OperatorRequest) -> UsagePeriod:
    given = visit.request.query_params.get("period", "hour")
    for period in PERIODS:
        if given == period:
            return period
    raise UsageError("`period` is not one of the known values.", hint=f"Choose one of {', '.join(PERIODS)}.")


async def _usage(context: Context, visit: OperatorRequest, period: UsagePeriod) -> Usage:
    query = UsageQuery(seconds=PERIODS[period], agents=visit.operator.agents, limit=ROWS)
    return await context.subjects.usage.usage(query)


async def _newest_changes(context: Context, visit: OperatorRequest) -> list[FoldedLine]:
    page = await read_trail(context.services, AuditQuery(agents=visit.operator.agents, limit=4 * TICKS))
    return fold_lines(page.lines)[:TICKS]


PAGES: Final = (
    Page(_HOME, overview_page),
    Page(f"{_PARTS}/attention", attention_part),
    Page(f"{_PARTS}/count", count_part),
    Page(f"{_PARTS}/usage", usage_part),
    Page(f"{_PARTS}/figures", figures_part),
    Page(f"{_PARTS}/live", live_part),
)
"""The addresses of the start page."""
