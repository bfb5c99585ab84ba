"""The bill: what models were sent, wrote and were answered, in tokens and money, and what that saved (F4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, get_args

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.templating import query
from pegboard.errors import UsageError
from pegboard.operators.bill import BillQuery, BillUnit
from pegboard.operators.tool_figures import FigureUnit, tool_figures

ROWS: Final = 100
UNITS: Final = get_args(BillUnit)
PARTS: Final = get_args(FigureUnit)
PERIODS: Final = (1, 7, 30, 90, 400)
"""How many days back a bill goes, today among them."""
_STEP_HOURS: Final = {1: 1, 7: 6}
FRESH: Final = 10.0
"""For how many seconds the bill of more than a week is given again: reading it takes up to a second."""


async def cost_page(context: Context, visit: OperatorRequest) -> Response:
    """Show the bill by agent, principal, session or day."""
    given = visit.request.query_params
    if given.get("by") in PARTS:
        return await _parts(context, visit, given["by"])
    unit = _unit(given.get("by", "agent"))
    agent, principal = visit.given("agent"), visit.given("principal")
    if agent:
        context.agent(visit, agent)
    days = _days(given.get("days", ""))
    since = datetime.now(UTC).date() - timedelta(days=days - 1)
    wanted = BillQuery(
        since=since,
        agent=agent or None,
        agents=visit.operator.agents,
        principal=principal or None,
        by=unit,
        limit=ROWS,
        step_hours=_STEP_HOURS.get(days),
    )
    bill = await context.subjects.bills.bill(wanted, 0.0 if days in _STEP_HOURS else FRESH)
    narrowed = {"agent": visit.names.shown(agent), "principal": visit.names.shown(principal)}
    return context.templates.page(
        "cost.html",
        visit,
        bill=bill,
        agent=narrowed["agent"],
        principal=narrowed["principal"],
        narrowed=narrowed,
        days=days,
        periods=PERIODS,
        units=(*UNITS, *PARTS),
        since=since,
        most=max((row.tokens + row.arguments + row.results + max(row.saved, 0) for row in bill.rows), default=0),
        here=query("/console/cost", by=unit, days=days, **narrowed),
    )


async def _parts(context: Context, visit: OperatorRequest, by: str) -> Response:
    """Show what toolkits, servers or tools came to."""
    unit, days = _part(by), _days(visit.request.query_params.get("days", ""))
    found = await tool_figures(context.services, unit, days=days, agents=visit.operator.agents)
    return context.templates.page(
        "cost_parts.html",
        visit,
        rows=found[:ROWS],
        others=max(0, len(found) - ROWS),
        by=unit,
        units=(*UNITS, *PARTS),
        days=days,
        periods=PERIODS,
        here=query("/console/cost", by=unit, days=days),
    )


def _part(text: str) -> FigureUnit:
    match text:
        case "toolkit" | "server":
            return text
        case _:
            return "tool"


def _unit(text: str) -> BillUnit:
    match text:
        case "day" | "agent" | "principal" | "session":
            return text
        case _:
            raise UsageError(
                "`by` is not one of the known values.", hint=f"Choose one of {', '.join((*UNITS, *PARTS))}."
            )


def _days(text: str) -> int:
    if not text:
        return 7
    if text not in map(str, PERIODS):
        raise UsageError("`days` is not one of the periods.", hint=f"Choose one of {', '.join(map(str, PERIODS))}.")
    return int(text)


PAGES: Final = (Page("/console/cost", cost_page),)
"""The address of the bill."""
