"""`pegboard audit`: who did what, and why it was allowed or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pegboard.cli.common import DONE, Options, run
from pegboard.cli.options import ConfigOption, JsonOption
from pegboard.cli.rendering import Column, Printer

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.ports import AuditRecord

EXAMPLE = "pegboard audit --kind deny --limit 20"
Kind = Literal[
    "load",
    "unload",
    "evict",
    "loadout",
    "deny",
    "call",
    "read",
    "prompt",
    "permission",
    "approval",
    "server",
    "forget",
]
"""``AuditKind``, which costs too much to import before a command is chosen."""
COLUMNS = (
    *(Column(name) for name in ("time", "kind", "who", "session", "turn", "subject", "decision", "by")),
    Column("ms", "right"),
    Column("outcome"),
    Column("reason", flexible=True),
)


def audit(
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many records, the newest first.")] = 50,
    kind: Annotated[Kind | None, typer.Option("--kind", help="Only records of this kind.")] = None,
    config: ConfigOption = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only this agent.")] = None,
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="Only this session.")] = None,
    principal: Annotated[str | None, typer.Option("--principal", metavar="NAME", help="Only this principal.")] = None,
    as_json: JsonOption = False,
) -> int:
    """Show the audit trail, the newest record first."""

    async def printed(board: Pegboard, printer: Printer) -> int:
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

    return run(Options(config=config, as_json=as_json), printed)


def _record_json(record: AuditRecord) -> dict[str, Any]:
    return {**record._asdict(), "at": record.at.isoformat()}


def _row(record: AuditRecord) -> tuple[str, ...]:
    return (
        f"{record.at.astimezone():%Y-%m-%d %H:%M:%S}",
        record.kind,
        f"{record.principal}/{record.agent}",
        record.session,
        str(record.turn),
        record.subject,
        record.decision,
        record.by,
        "" if record.duration is None else f"{record.duration:.0f}",
        record.outcome,
        record.reason,
    )
