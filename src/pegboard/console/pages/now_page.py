"""The start page: what needs a person, what went on, what was busiest, and what happens right now (F5)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, get_args

from markupsafe import Markup
from starlette.responses import Response

from pegboard.console.charts import Series, areas, bars, lines, step_names
from pegboard.console.context import Context, Page
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.templating import milliseconds, number
from pegboard.errors import UsageError
from pegboard.operators.audit import AuditPage, AuditQuery
from pegboard.operators.audit import audit as read_trail
from pegboard.operators.usage import PERIODS, Usage, UsagePeriod, UsageQuery, UsageStep

ROWS: Final = 8
"""How many agents, servers and tools are listed as the busiest."""
TICKS: Final = 10
"""How many of the newest records are shown."""
_HOME: Final = "/console"
_PARTS: Final = "/console/now"


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """The pictures of a time, and of each step when it was; ``zone`` is that of the times."""

    calls: Markup
    latencies: Markup
    tokens: Markup
    times: tuple[str, ...]
    most_calls: int
    longest: float | None
    most_tokens: int


async def now_page(context: Context, visit: OperatorRequest) -> Response:
    """Show all of it."""
    period = _period(visit)
    usage = await _usage(context, visit, period)
    ticks = await _ticks(context, visit)
    return context.templates.page(
        "now.html",
        visit,
        **_of_usage(usage, period),
        found=visit.attention,
        ticks=ticks,
        first=None if ticks.lines else _first_steps(context, visit),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSteps:
    """What is still to do before an agent can call: how many plugins there are, and what a client is given."""

    plugins: int
    file: str
    snippet: str


def _first_steps(context: Context, visit: OperatorRequest) -> FirstSteps:
    """Return what a client needs to reach the gateway at the address at which this page was asked for."""
    url = visit.request.url
    entry: dict[str, Any] = {"type": "http", "url": f"{url.scheme}://{url.netloc}/mcp"}
    if context.board.configuration.tokens:
        entry["headers"] = {"Authorization": "Bearer ${PEGBOARD_TOKEN}"}
    return FirstSteps(
        plugins=len(context.board.world.catalog.plugins),
        file=context.board.configuration.path.name,
        snippet=json.dumps({"mcpServers": {"pegboard": entry}}, indent=2),
    )


async def attention_part(context: Context, visit: OperatorRequest) -> Response:
    """Show what needs a person."""
    return context.templates.page("now_attention.html", visit, found=await context.attention(visit))


async def count_part(context: Context, visit: OperatorRequest) -> Response:
    """Show how much needs a person."""
    return context.templates.page("now_count.html", visit, needing=await context.attention(visit))


async def usage_part(context: Context, visit: OperatorRequest) -> Response:
    """Show what went on."""
    period = _period(visit)
    return context.templates.page("now_usage.html", visit, **_of_usage(await _usage(context, visit, period), period))


async def ticker_part(context: Context, visit: OperatorRequest) -> Response:
    """Show what happens right now."""
    return context.templates.page("now_ticker.html", visit, ticks=await _ticks(context, visit))


def _of_usage(usage: Usage, period: UsagePeriod) -> dict[str, Any]:
    return {"usage": usage, "curves": curves_of(usage), "period": period, "periods": get_args(UsagePeriod)}


def _period(visit: OperatorRequest) -> UsagePeriod:
    given = visit.request.query_params.get("period", "hour")
    for period in PERIODS:
        if given == period:
            return period
    raise UsageError("`period` is none of those that there are.", hint=f"Choose one of {', '.join(PERIODS)}.")


async def _usage(context: Context, visit: OperatorRequest, period: UsagePeriod) -> Usage:
    query = UsageQuery(seconds=PERIODS[period], agents=visit.operator.agents, limit=ROWS)
    return await context.subjects.usage.usage(query)


async def _ticks(context: Context, visit: OperatorRequest) -> AuditPage:
    return await read_trail(context.services, AuditQuery(agents=visit.operator.agents, limit=TICKS))


def curves_of(usage: Usage) -> Curves:
    """Return the curves of a time, each with a note for each step."""
    steps, times = usage.steps, times_of(usage)
    most_calls = max(one.ok + one.errors + one.refused + one.waits for one in steps)
    longest = max((one.p95 for one in steps if one.p95 is not None), default=None)
    most_tokens = max(max(one.tokens, one.saved) for one in steps)
    total, whole = usage.totals, f"{times[0]} to now"
    return Curves(
        calls=bars(
            (
                Series(style="ok", values=[one.ok for one in steps]),
                Series(style="error", values=[one.errors for one in steps]),
                Series(style="refused", values=[one.refused for one in steps]),
                Series(style="waits", values=[one.waits for one in steps]),
            ),
            [f"{time}: {_outcomes(one)}" for time, one in zip(times, steps, strict=True)],
            f"Calls by outcome, {whole}: {_outcomes(total)}. At most {number(most_calls)} in a step.",
        ),
        latencies=lines(
            (
                Series(style="p95", values=[one.p95 for one in steps]),
                Series(style="p50", values=[one.p50 for one in steps]),
            ),
            [f"{time}: {_latencies(one)}" for time, one in zip(times, steps, strict=True)],
            f"How long calls took, {whole}: {_latencies(total)}.",
        ),
        tokens=areas(
            (
                Series(style="saved", values=[max(one.saved, 0) for one in steps]),
                Series(style="sent", values=[one.tokens for one in steps]),
            ),
            [f"{time}: {_tokens(one)}" for time, one in zip(times, steps, strict=True)],
            f"Tokens of tool lists, {whole}: {_tokens(total)}.",
        ),
        times=times,
        most_calls=most_calls,
        longest=longest,
        most_tokens=most_tokens,
    )


def times_of(usage: Usage) -> tuple[str, ...]:
    """Return when each step begins (UTC), as shortly as tells it from the others."""
    return step_names([one.start for one in usage.steps], usage.seconds)


def _outcomes(one: UsageStep) -> str:
    return f"{number(one.ok)} ok, {number(one.errors)} failed, {number(one.refused)} refused, {number(one.waits)} asked"


def _latencies(one: UsageStep) -> str:
    if one.p50 is None:
        return "no call ran"
    return f"half within {milliseconds(one.p50)}, 95% within {milliseconds(one.p95)}"


def _tokens(one: UsageStep) -> str:
    return f"{number(one.tokens)} sent, {number(one.saved)} saved"


PAGES: Final = (
    Page(_HOME, now_page),
    Page(f"{_PARTS}/attention", attention_part),
    Page(f"{_PARTS}/count", count_part),
    Page(f"{_PARTS}/usage", usage_part),
    Page(f"{_PARTS}/ticker", ticker_part),
)
"""The addresses of the start page."""
