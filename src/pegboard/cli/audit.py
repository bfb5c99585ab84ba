"""`pegboard audit` and `pegboard bill`: who did what and why it was allowed or not, and what it came to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from pegboard.cli.common import Options, run
from pegboard.cli.exit_codes import DONE
from pegboard.cli.options import ConfigOption, JsonOption
from pegboard.cli.rendering import Printer, TableColumn, plural, time_text
from pegboard.core.model.naming import some_of
from pegboard.errors import UsageError
from pegboard.operators.bill import BillQuery, BillReader, BillUnit
from pegboard.operators.money import price_text
from pegboard.ports import AuditKind, AuditRecord

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.operators.bill import Bill, BillRow

COUNTS = ("requests", "tokens", "saved", "searches", "loads", "unloads", "meta_calls", "calls", "denials")
COLUMNS = tuple(TableColumn(name) for name in ("time", "what", "subject", "who", "more"))


def audit(
    limit: Annotated[
        int, typer.Option("--limit", metavar="COUNT", min=1, help="How many records, the newest first.")
    ] = 50,
    kind: Annotated[
        AuditKind | None,
        typer.Option("--kind", metavar="KIND", help=f"Only records of this kind: {', '.join(get_args(AuditKind))}."),
    ] = None,
    config: ConfigOption = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only this agent.")] = None,
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="Only this session.")] = None,
    principal: Annotated[str | None, typer.Option("--principal", metavar="NAME", help="Only this principal.")] = None,
    as_json: JsonOption = False,
) -> int:
    """Show the audit trail, the newest record first."""

    async def print_records(board: Pegboard, printer: Printer) -> int:
        records = await board.services.store.entries(
            principal=principal, agent=agent, session=session, kind=kind, limit=limit
        )
        if printer.as_json:
            printer.document([_record_json(record) for record in records])
        elif not records:
            printer.say("No record fits.")
        else:
            printer.table(COLUMNS, [_row(record) for record in records])
        return DONE

    return run(Options(config=config, as_json=as_json), print_records)


def _record_json(record: AuditRecord) -> dict[str, Any]:
    return {**record._asdict(), "at": record.at.isoformat()}


def _row(record: AuditRecord) -> tuple[str, ...]:
    more = (
        f"turn {record.turn}" if record.turn else "",
        f"by {record.by}" if record.by else "",
        record.outcome,
        "" if record.duration is None else f"{record.duration:.0f} ms",
        record.reason.removeprefix(f"{record.subject}: "),
    )
    return (
        time_text(record.at),
        f"{record.kind} {record.decision}",
        record.subject,
        "/".join(filter(None, (record.principal, record.agent, record.session))),
        ", ".join(filter(None, more)),
    )


def bill(
    by: Annotated[
        BillUnit, typer.Option("--by", metavar="day|agent|principal|session", help="What each row stands for.")
    ] = "day",
    since: Annotated[str | None, typer.Option("--since", metavar="DAY", help="The first day (UTC).")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="DAY", help="The last day.")] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="COUNT", min=1, help="How many rows; the others are summed up.")
    ] = 50,
    config: ConfigOption = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only this agent.")] = None,
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="Only this session.")] = None,
    principal: Annotated[str | None, typer.Option("--principal", metavar="NAME", help="Only this principal.")] = None,
    as_json: JsonOption = False,
) -> int:
    """Show tokens sent, calls made, and what was saved."""

    async def print_bill(board: Pegboard, printer: Printer) -> int:
        query = BillQuery(
            by=by,
            since=_day(since, "--since"),
            until=_day(until, "--until"),
            principal=principal,
            agent=agent,
            session=session,
            limit=limit,
        )
        found = await BillReader(board.services).bill(query)
        if printer.as_json:
            from dataclasses import asdict

            printer.document(asdict(found))
        elif not found.rows:
            printer.say("Nothing is on the bill.")
        else:
            _print(found, printer)
        return DONE

    return run(Options(config=config, as_json=as_json), print_bill)


def _day(text: str | None, option: str) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"'{text}' is not a day.", hint=f"{option} takes a day such as 2026-11-21.") from None


def _print(found: Bill, printer: Printer) -> None:
    costs = bool(found.totals.money)
    names = (*(["cost"] if costs else []), *(name.replace("_", " ") for name in COUNTS))
    columns = (TableColumn(found.by, flexible=True), *(TableColumn(name, "right") for name in names))
    rows = [(_name(row), *_counts(row, costs=costs)) for row in found.rows]
    if found.others:
        rows.append((f"{found.others} more", *_counts(found.rest, costs=costs)))
    if len(rows) > 1:
        rows.append(("all", *_counts(found.totals, costs=costs)))
    printer.table(columns, rows)
    if any(row.saved < 0 for row in (*found.rows, found.totals)):
        printer.note("Where 'saved' is negative, listing everything would have cost less.")
    if found.totals.unknown:
        which = plural(found.totals.unknown, "request")
        printer.note(f"What was saved is not known of {which}: some tools that the agents may use were not known.")
    totals = found.totals
    if totals.arguments or totals.results:
        estimated = f", {totals.estimated:,} of these an estimate" if totals.estimated else ""
        printer.note(f"{totals.arguments:,} tokens of arguments, {totals.results:,} of results{estimated}.")
    if costs:
        printer.note(found.assumed)
    if found.without_prices:
        names = some_of([one.agent for one in found.without_prices])
        model = found.without_prices[0].model
        printer.note(f"Without prices: {names}. Write them: models: {{{model}: {{prices: {{input: …, output: …}}}}}}.")
    if found.damaged:
        printer.note(f"{plural(found.damaged, 'record')} of the store cannot be read.")


def _name(row: BillRow) -> str:
    if row.session is not None:
        return f"{row.principal}/{row.agent}/{row.session}"
    return row.day or row.agent or row.principal or ""


def _counts(row: BillRow, *, costs: bool) -> tuple[str, ...]:
    return (*([price_text(row.money)] if costs else []), *(f"{getattr(row, name):,}" for name in COUNTS))


COMMANDS: dict[str, tuple[Callable[..., int], str]] = {
    "audit": (audit, "pegboard audit --kind deny --limit 20"),
    "bill": (bill, "pegboard bill --by agent --since 2026-11-01"),
}
