"""The bill: what models were sent, wrote and were answered, in tokens and money, and what that saved (F4)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, get_args

from markupsafe import Markup
from starlette.responses import Response

from pegboard.console.charts import Series, bars, step_names
from pegboard.console.context import Context, Page
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.templating import number, query
from pegboard.errors import UsageError
from pegboard.operators.bill import Bill, BillQuery, BillStep, BillUnit
from pegboard.operators.money import MoneyPart, price_text

ROWS: Final = 100
UNITS: Final = get_args(BillUnit)
PERIODS: Final = (1, 7, 30, 90, 400)
"""How many days back a bill goes, today among them."""
_STEP_HOURS: Final = {1: 1, 7: 6}
FRESH: Final = 10.0
"""For how many seconds the bill of more than a week is given again: reading it takes up to a second."""
_KINDS: Final[tuple[MoneyPart, ...]] = ("lists", "arguments", "results")
_STYLES: Final = ("sent", "arguments", "results")


@dataclass(frozen=True, slots=True, kw_only=True)
class BillCurves:
    """The pictures of a bill: tokens, and money where all of it is in one currency; and when each step begins."""

    tokens: Markup
    money: Markup | None
    most_tokens: int
    most_money: str
    times: tuple[str, ...]


async def bill_page(context: Context, visit: OperatorRequest) -> Response:
    """Show the bill by agent, principal, session or day."""
    given = visit.request.query_params
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
        "bill.html",
        visit,
        bill=bill,
        curves=curves_of(bill),
        agent=narrowed["agent"],
        principal=narrowed["principal"],
        narrowed=narrowed,
        days=days,
        periods=PERIODS,
        units=UNITS,
        since=since,
        most=max((row.tokens + row.arguments + row.results + max(row.saved, 0) for row in bill.rows), default=0),
        here=query("/console/bill", by=unit, days=days, **narrowed),
    )


def curves_of(bill: Bill) -> BillCurves:
    """Return the curves of a bill, each with a note for each step."""
    steps = bill.steps
    times = step_names([one.start for one in steps], steps[0].end - steps[0].start if steps else 0)
    totals, whole = bill.totals, f"{times[0]} to now" if times else "nothing"
    tokens = bars(
        (
            Series(style="sent", values=[one.tokens for one in steps]),
            Series(style="arguments", values=[one.arguments for one in steps]),
            Series(style="results", values=[one.results for one in steps]),
        ),
        [f"{time}: {_tokens(one.tokens, one.arguments, one.results)}" for time, one in zip(times, steps, strict=True)],
        f"Tokens, {whole}: {_tokens(totals.tokens, totals.arguments, totals.results)}.",
    )
    money = most = None
    if len(totals.money) == 1:
        amounts = [[_amount(one, kind) for one in steps] for kind in _KINDS]
        money = bars(
            [Series(style=style, values=row) for style, row in zip(_STYLES, amounts, strict=True)],
            [f"{time}: {price_text(one.money) or 'nothing'}" for time, one in zip(times, steps, strict=True)],
            f"Cost, {whole}: {price_text(totals.money)}.",
        )
        most = max(steps, key=lambda one: sum(_amount(one, kind) for kind in _KINDS))
    return BillCurves(
        tokens=tokens,
        money=money,
        most_tokens=max((one.tokens + one.arguments + one.results for one in steps), default=0),
        most_money=price_text(most.money) if most is not None else "",
        times=times,
    )


def _amount(one: BillStep, part: MoneyPart) -> float:
    return sum(float(getattr(money, part)) for money in one.money)


def _tokens(lists: int, arguments: int, results: int) -> str:
    return f"{number(lists)} of lists, {number(arguments)} of arguments, {number(results)} of results"


def _unit(text: str) -> BillUnit:
    match text:
        case "day" | "agent" | "principal" | "session":
            return text
        case _:
            raise UsageError("A bill is by day, agent, principal or session.", hint="Choose one of the four.")


def _days(text: str) -> int:
    if not text:
        return 7
    if text not in map(str, PERIODS):
        raise UsageError("`days` is none of the periods.", hint=f"Choose one of {', '.join(map(str, PERIODS))}.")
    return int(text)


PAGES: Final = (Page("/console/bill", bill_page),)
"""The address of the bill."""
