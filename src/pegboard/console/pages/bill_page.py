"""The bill: what models were sent, what that saved, and how often tools were looked for (F4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, get_args

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.templating import query
from pegboard.console.visits import Visit
from pegboard.errors import UsageError
from pegboard.operators.bill import BillUnit

ROWS: Final = 100
UNITS: Final = get_args(BillUnit)
PERIODS: Final = (7, 30, 90, 400)
"""How many days back a bill goes, today among them."""


async def bill_page(context: Context, visit: Visit) -> Response:
    """Show the bill by day, by agent or by session."""
    given = visit.request.query_params
    unit = _unit(given.get("by", "day"))
    agent = visit.given("agent")
    if agent:
        context.agent(visit, agent)
    days = _days(given.get("days", ""))
    today = datetime.now(UTC).date()
    since = today - timedelta(days=days - 1)
    bill = await context.operations.bill(
        since=since, agent=agent or None, agents=visit.operator.agents, by=unit, limit=ROWS
    )
    return context.templates.page(
        "bill.html",
        visit,
        bill=bill,
        agents=context.shown_agents(visit),
        agent=visit.names.shown(agent),
        days=days,
        periods=PERIODS,
        units=UNITS,
        since=since,
        most=max((row.tokens + max(row.saved, 0) for row in bill.rows), default=0),
        here=query("/console/bill", by=unit, days=days, agent=visit.names.shown(agent)),
    )


def _unit(text: str) -> BillUnit:
    match text:
        case "day" | "agent" | "session":
            return text
        case _:
            raise UsageError("A bill is by day, agent or session.", hint="Choose one of the three.")


def _days(text: str) -> int:
    if not text:
        return 30
    if text not in map(str, PERIODS):
        raise UsageError("`days` is none of the periods.", hint=f"Choose one of {', '.join(map(str, PERIODS))}.")
    return int(text)


PAGES: Final = (Page("/console/bill", bill_page),)
