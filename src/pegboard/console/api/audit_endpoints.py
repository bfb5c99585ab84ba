"""The audit trail, the bill, what went on, and what needs a person."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, Field
from starlette.responses import Response

from pegboard.console.api.endpoint import Endpoint, request_class
from pegboard.console.context import Context
from pegboard.console.exports import ExportForm
from pegboard.console.operator_request import OperatorRequest
from pegboard.operators.attention import Attention
from pegboard.operators.audit import AuditPage, AuditQuery
from pegboard.operators.audit import audit as read_trail
from pegboard.operators.bill import Bill, BillQuery, BillUnit
from pegboard.operators.masked import Name
from pegboard.operators.server_usage import ServerUsage
from pegboard.operators.server_usage import server_usage as read_server_usage
from pegboard.operators.usage import PERIODS, Usage, UsagePeriod, UsageQuery
from pegboard.ports import AuditKind

JSON_LINES: Final = "application/jsonl"
CSV: Final = "text/csv"
Cursor = Annotated[int, Field(ge=0, lt=2**63)]


@request_class
class RecordFilter:
    """Which records of the trail are wanted."""

    agent: Name = ""
    """Only those of this agent."""
    principal: Name = ""
    """Only those of this principal's sessions."""
    session: Name = ""
    """Only those of this session."""
    kind: AuditKind | Literal[""] = ""
    """Only those about this."""
    decision: str = ""
    """Only those with this decision."""
    outcome: str = ""
    """Only those with this outcome."""
    text: Name = ""
    """Only those with this text in the subject, the reason or who did it."""
    since: AwareDatetime | None = None
    """The first moment, in ISO form with its zone."""
    until: AwareDatetime | None = None
    """The moment before which they were, in ISO form with its zone."""


@request_class
class RecordQuery(RecordFilter):
    """Which records of the trail are wanted, and of these which page."""

    before: Cursor | None = None
    """The cursor of a page, for older ones."""
    after: Cursor | None = None
    """The cursor of a page, for what has come since."""
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    """How many there are at most."""


@request_class
class RecordExport(RecordFilter):
    """Which records of the trail are wanted as a file."""

    format: ExportForm = "jsonl"
    """A line of JSON for each, or a table."""


@request_class
class BillPeriod:
    """What a bill is wanted of."""

    by: BillUnit = "day"
    """What each row stands for."""
    since: date | None = None
    """The first day (UTC); without it the oldest that is kept."""
    until: date | None = None
    """The last day; without it today."""
    agent: Name = ""
    """Only what this agent came to."""
    principal: Name = ""
    """Only what was done for this principal."""
    session: Name = ""
    """Only what was done in this session."""
    limit: Annotated[int, Field(ge=1, le=1000)] = 400
    """How many rows there are at most; the others are summed up."""


async def audit(context: Context, visit: OperatorRequest, *, query: RecordQuery) -> AuditPage:
    """Return a page of the audit trail, newest first."""
    cursors = {"before": query.before, "after": query.after, "limit": query.limit}
    return await read_trail(context.services, _audit_query(context, visit, query, **cursors))


async def export_audit(context: Context, visit: OperatorRequest, *, query: RecordExport) -> Response:
    """Return the records of the audit trail as a file, newest first."""
    wanted = _audit_query(context, visit, query)
    media, name = (CSV, "audit.csv") if query.format == "csv" else (JSON_LINES, "audit.jsonl")
    return await context.exports.response(visit, wanted, query.format, media=media, name=name)


def _audit_query(context: Context, visit: OperatorRequest, query: RecordFilter, **cursors: Any) -> AuditQuery:
    return AuditQuery(
        agent=context.agent_of_list(visit, query.agent),
        agents=visit.operator.agents,
        principal=query.principal or None,
        session=query.session or None,
        kind=query.kind or None,
        decision=query.decision or None,
        outcome=query.outcome or None,
        text=query.text or None,
        since=query.since,
        until=query.until,
        **cursors,
    )


async def bill(context: Context, visit: OperatorRequest, *, query: BillPeriod) -> Bill:
    """Return what models were sent and did: tokens, what not listing everything saved, loads, searches and calls."""
    wanted = BillQuery(
        by=query.by,
        since=query.since,
        until=query.until,
        agent=context.agent_of_list(visit, query.agent),
        agents=visit.operator.agents,
        principal=query.principal or None,
        session=query.session or None,
        limit=query.limit,
    )
    return await context.subjects.bills.bill(wanted)


_CODES: Final = ("unknown_agent",)


@request_class
class UsageOf:
    """What is wanted of what went on."""

    period: UsagePeriod = "hour"
    """How far back it goes; a quarter is 90 days."""
    agent: Name = ""
    """Only what this agent did."""
    limit: Annotated[int, Field(ge=1, le=1000)] = 10
    """How many agents, servers and tools there are at most, the busiest first."""


async def attention(context: Context, visit: OperatorRequest) -> Attention:
    """Return what needs a person, the most urgent first.

    Servers, edits and problems are there for operators of every agent.
    """
    return await context.attention(visit)


async def usage(context: Context, visit: OperatorRequest, *, query: UsageOf) -> Usage:
    """Return what went on: calls by outcome, how long they took, tokens; and what was busiest."""
    wanted = UsageQuery(
        seconds=PERIODS[query.period],
        agent=context.agent_of_list(visit, query.agent),
        agents=visit.operator.agents,
        limit=query.limit,
    )
    return await context.subjects.usage.usage(wanted)


async def usage_of_servers(context: Context, visit: OperatorRequest) -> tuple[ServerUsage, ...]:
    """Return what came of every server and plugin that was called in the last 24 hours, the busiest first."""
    context.require_every_agent(visit)
    return await read_server_usage(context.services)


_EVERY: Final = ("every_agent_required",)


ENDPOINTS: Final = (
    Endpoint("GET", "/api/audit", audit, _CODES),
    Endpoint("GET", "/api/audit/export", export_audit, (*_CODES, "too_many_exports"), media=(JSON_LINES, CSV)),
    Endpoint("GET", "/api/bill", bill, _CODES),
    Endpoint("GET", "/api/attention", attention),
    Endpoint("GET", "/api/usage", usage, ("unknown_agent",)),
    Endpoint("GET", "/api/usage/servers", usage_of_servers, _EVERY),
)
