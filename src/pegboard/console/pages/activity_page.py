"""The audit trail: filtered, page by page, followed live, and as a file (X4)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Final, get_args

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.exports import ExportForm
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.forms import kept_address, moment_of, zone_of
from pegboard.console.templating import query
from pegboard.errors import UsageError
from pegboard.operators.audit import AuditQuery, fold_lines
from pegboard.operators.audit import audit as read_trail
from pegboard.ports import AuditKind

ROWS: Final = 100
KINDS: Final = get_args(AuditKind)
FAILED: Final = "failed"
"""What filters calls that ran and failed, instead of a decision."""
DESTRUCTIVE: Final = "destructive"
"""What filters calls of tools that may destroy something, instead of a decision."""
DECISIONS: Final = ("allowed", "refused", "denied", FAILED, DESTRUCTIVE)
DAYS: Final = ("today", "yesterday")
FIELDS: Final = ("agent", "principal", "session", "kind", "decision", "day", "text", "since", "until", "zone")
_MEDIA: Final[Mapping[ExportForm, str]] = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}


async def activity_page(context: Context, visit: OperatorRequest) -> Response:
    """Show the records that are wanted, the newest first."""
    given = {name: visit.request.query_params.get(name, "").strip() for name in FIELDS}
    before = visit.request.query_params.get("before", "")
    here = query("/console/activity", **given, before=before)
    page = await read_trail(context.services, _audit_query(visit, given, before))
    return kept_address(
        context.templates.page(
            "activity.html",
            visit,
            page=page,
            folds=fold_lines(page.lines),
            given=given,
            before=before,
            kinds=KINDS,
            decisions=_choices(given["decision"]),
            agents=context.shown_agents(visit),
            days=[("", "Any"), *((one, one) for one in DAYS)],
            here=here,
        ),
        here,
    )


def _choices(decision: str) -> list[tuple[str, str]]:
    """Return the decisions that are one click away, and the one that the address names."""
    others = [decision] if decision and decision not in DECISIONS else []
    return [("", "Any"), *((one, one) for one in (*DECISIONS, *others))]


async def export(context: Context, visit: OperatorRequest) -> Response:
    """Send all records that are wanted as a file."""
    given = {name: visit.request.query_params.get(name, "").strip() for name in FIELDS}
    form = visit.request.query_params.get("format", "jsonl")
    if form not in _MEDIA:
        raise UsageError("The audit trail is exported as jsonl or csv.", hint="Choose one: format=jsonl.")
    name = f"pegboard-audit-{datetime.now(UTC):%Y%m%d-%H%M%S}.{form}"
    wanted = _audit_query(visit, given, "")
    return await context.exports.response(visit, wanted, form, media=_MEDIA[form], name=name)


def _audit_query(visit: OperatorRequest, given: Mapping[str, str], before: str) -> AuditQuery:
    """Return what the filters say; raises ``UsageError`` where they cannot be meant."""
    if before and not (before.isascii() and before.isdecimal() and len(before) <= 18):
        raise UsageError("`before` is not a valid cursor.", hint="Begin with the newest records.")
    if given["kind"] and given["kind"] not in KINDS:
        raise UsageError("There is no such kind of record.", hint=f"Kinds: {', '.join(KINDS)}.")
    first, end = _day(given["day"], given["zone"])
    return AuditQuery(
        agent=visit.names.meant(given["agent"]) or None,
        agents=visit.operator.agents,
        principal=visit.names.meant(given["principal"]) or None,
        session=visit.names.meant(given["session"]) or None,
        kind=given["kind"] or None,
        decision=given["decision"] if given["decision"] not in ("", FAILED, DESTRUCTIVE) else None,
        destructive=given["decision"] == DESTRUCTIVE,
        outcome="error" if given["decision"] == FAILED else None,
        text=visit.names.meant(given["text"]) or None,
        since=moment_of("since", given["since"], given["zone"]) or first,
        until=moment_of("until", given["until"], given["zone"]) or end,
        before=int(before) if before else None,
        limit=ROWS,
    )


def _day(day: str, zone: str) -> tuple[datetime | None, datetime | None]:
    """Return where a day begins and ends in the zone of the browser; nothing of any day."""
    if not day:
        return None, None
    if day not in DAYS:
        raise UsageError("`day` is not one of the known values.", hint=f"Choose one of {', '.join(DAYS)}.")
    here = zone_of(zone)
    first = datetime.now(here).date() - timedelta(days=DAYS.index(day))
    return datetime.combine(first, time.min, here), datetime.combine(first + timedelta(days=1), time.min, here)


PAGES: Final = (Page("/console/activity", activity_page), Page("/console/activity/export", export))
