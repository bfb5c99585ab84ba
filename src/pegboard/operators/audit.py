"""The audit trail as operators read it: filtered, page by page, followed as it grows, whole as a file (X4)."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import groupby
from typing import Any, Final

from pegboard.board.services import Services
from pegboard.core.access.read_only import is_destructive
from pegboard.core.model.tools import Tool
from pegboard.operators.masked import Name, ShownNames, Verbatim, mask_value, shown_names
from pegboard.ports import PART, AuditFilter, AuditRecord, NumberedRecord

LOOKED_AT: Final = 50 * PART
"""How many records one page looks at, at most; the rest is behind its cursor."""
EXPORTED: Final = 50
"""How many records are made ready at once for a file: what is asked beside it waits for no more."""
TOGETHER: Final = "together "
"""How the reason of a record begins that one action made for several agents."""
RISKY: Final = ("=", "+", "-", "@", "\t", "\r")
"""What a table program may take for the beginning of a formula."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery(AuditFilter):
    """Which records of the trail are wanted, and of these which page; None is any.

    Without a cursor it is the newest. ``before`` goes on to older ones with the cursor of a page, ``after`` returns
    what has come since. With ``destructive`` it is only calls, also refused ones, of tools that may destroy something.
    """

    before: int | None = None
    after: int | None = None
    limit: int = 100
    destructive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLine:
    """One record of the trail: ``at`` is ISO text, ``duration`` milliseconds, ``arguments`` a keyed digest."""

    id: int
    at: Verbatim
    kind: Verbatim
    principal: Name
    agent: Name
    session: Name
    turn: int
    subject: str
    decision: Verbatim
    reason: str
    duration: float | None
    outcome: Verbatim
    arguments: Verbatim
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """A page of the trail, newest first.

    ``before`` is the cursor to older ones, None where there are none; a page that is not full has one, too, where the
    trail is so long that a page does not look through all of it. ``after`` is the cursor to what comes behind it.
    ``damaged`` counts the records that could not be read.
    """

    lines: tuple[AuditLine, ...]
    before: int | None
    after: int
    damaged: int


async def audit(services: Services, query: AuditQuery) -> AuditPage:
    """Return a page of the trail; others may go on between the parts that are looked at."""
    part = await services.store.part(query, before=query.before, after=query.after, limit=max(query.limit, 1))
    newest, found, damaged = part.newest, _matching_records(services, query, part.records), part.damaged
    for _ in range(LOOKED_AT // PART):
        if part.next is None or len(found) >= query.limit:
            break
        await asyncio.sleep(0)
        onward = {"before": part.next} if query.after is None else {"after": part.next}
        part = await services.store.part(query, **onward, limit=query.limit - len(found))
        found += _matching_records(services, query, part.records)
        damaged += part.damaged
    names = await shown_names(services)
    lines = tuple(_line(names, record) for record in found)
    if query.after is not None:
        seen = part.newest if part.next is None else part.next
        return AuditPage(lines=lines[::-1], before=None, after=max(seen, query.after), damaged=damaged)
    after = newest if query.before is None else query.before - 1
    return AuditPage(lines=lines, before=part.next, after=after, damaged=damaged)


def _matching_records(services: Services, query: AuditQuery, records: Sequence[NumberedRecord]) -> list[NumberedRecord]:
    """Return the records that are wanted of those that the store found: it knows nothing of tools."""
    return [one for one in records if not query.destructive or _may_destroy(services, one.record)]


def _may_destroy(services: Services, record: AuditRecord) -> bool:
    """Return whether a record is about a call of a tool that may destroy; one that is gone is known by its name."""
    if record.kind not in ("call", "deny"):
        return False
    plugin, _, name = record.subject.partition("/")
    tool = services.world.catalog.find_tool(record.subject) or Tool(plugin=plugin, name=name or plugin)
    return is_destructive(tool)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedLine:
    """The newest of ``count`` records that one action made for as many agents."""

    line: AuditLine
    count: int = 1


def fold_lines(lines: Sequence[AuditLine]) -> list[FoldedLine]:
    """Return lines of which those that one action made for several agents are one."""
    groups = groupby(lines, key=lambda line: line.reason if line.reason.startswith(TOGETHER) else line.id)
    found = ((next(group), sum(1 for _ in group)) for _, group in groups)
    return [FoldedLine(line=line, count=1 + others) for line, others in found]


async def export(services: Services, query: AuditQuery) -> AsyncIterator[tuple[AuditLine, ...]]:
    """Yield all records that are wanted in small parts, newest first; ``limit`` and ``after`` do not count."""
    query = replace(query, after=None, limit=EXPORTED)
    while True:
        page = await audit(services, query)
        yield page.lines
        if page.before is None:
            return
        query = replace(query, before=page.before)


def as_json_line(line: AuditLine) -> str:
    """Return a record as a line of JSON."""
    return json.dumps(asdict(line)) + "\n"


def csv_header() -> str:
    """Return the first line of a table of records."""
    return _csv([field.name for field in fields(AuditLine)])


def as_csv_line(line: AuditLine) -> str:
    """Return a record as a line of CSV; a text that a table program could take for a formula begins with a quote."""
    return _csv([_harmless(cell) for cell in asdict(line).values()])


def _harmless(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(RISKY) else cell


def _csv(cells: list[object] | list[str]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue()


def _line(names: ShownNames, numbered: NumberedRecord) -> AuditLine:
    record: dict[str, Any] = {**numbered.record._asdict(), "at": numbered.record.at.isoformat()}
    return mask_value(AuditLine(id=numbered.number, **record), names)
