"""The audit trail: filtered, page by page, followed live, and as a file (X4)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Final, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.exports import ExportForm
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.forms import kept_address
from pegboard.console.templating import query
from pegboard.errors import UsageError
from pegboard.operators.audit import AuditQuery, folded
from pegboard.operators.audit import audit as read_trail
from pegboard.ports import AuditKind

ROWS: Final = 100
KINDS: Final = get_args(AuditKind)
FAILED: Final = "failed"
"""What filters calls that ran and failed, instead of a decision."""
DECISIONS: Final = ("allowed", "refused", "denied", FAILED)
FIELDS: Final = ("agent", "principal", "session", "kind", "decision", "text", "since", "until", "zone")
_MEDIA: Final[Mapping[ExportForm, str]] = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}


async def activity_page(context: Context, visit: OperatorRequest) -> Response:
    """Show the records that are wanted, the newest first."""
    given = {name: visit.request.query_params.get(name, "").strip() for name in FIELDS}
    before = visit.request.query_params.get("before", "")
    here = query("/console/activity", **given, before=before)
    page = await read_trail(context.services, _wanted(visit, given, before))
    return kept_address(
        context.templates.page(
            "activity.html",
            visit,
            page=page,
            folds=folded(page.lines),
            given=given,
            before=before,
            kinds=KINDS,
            decisions=_choices(given["decision"]),
            agents=context.shown_agents(visit),
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
    wanted = _wanted(visit, given, "")
    return await context.exports.response(visit, wanted, form, media=_MEDIA[form], name=name)


def _wanted(visit: OperatorRequest, given: Mapping[str, str], before: str) -> AuditQuery:
    """Return what the filters say; raises ``UsageError`` where they cannot be meant."""
    if before and not (before.isascii() and before.isdecimal() and len(before) <= 18):
        raise UsageError("`before` is no cursor of a page.", hint="Begin with the newest records.")
    if given["kind"] and given["kind"] not in KINDS:
        raise UsageError("There is no such kind of record.", hint=f"Kinds: {', '.join(KINDS)}.")
    return AuditQuery(
        agent=visit.names.meant(given["agent"]) or None,
        agents=visit.operator.agents,
        principal=visit.names.meant(given["principal"]) or None,
        session=visit.names.meant(given["session"]) or None,
        kind=given["kind"] or None,
        decision=given["decision"] or None if given["decision"] != FAILED else None,
        outcome="error" if given["decision"] == FAILED else None,
        text=visit.names.meant(given["text"]) or None,
        since=_moment("since", given["since"], given["zone"]),
        until=_moment("until", given["until"], given["zone"]),
        before=int(before) if before else None,
        limit=ROWS,
    )


def _moment(name: str, text: str, zone: str) -> datetime | None:
    """Return a date or a time as an input element has it, which is in the zone of the browser; without one in UTC."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"`{name}` is no date or time.", hint="Write 2026-11-22 or 2026-11-22T18:30.") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=_zone(zone))


def _zone(name: str) -> tzinfo:
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise UsageError("`zone` is no time zone.", hint="Write Europe/Berlin, or nothing for UTC.") from None


PAGES: Final = (Page("/console/activity", activity_page), Page("/console/activity/export", export))
