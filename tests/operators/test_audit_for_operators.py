"""The audit trail as operators read it: pages, filters, what is new, and all of it as a file."""

import csv
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pegboard import Pegboard
from pegboard.board.services import Services
from pegboard.core.model.masking import Masker
from pegboard.operators.audit import (
    AuditLine,
    AuditQuery,
    as_csv_line,
    as_json_line,
    audit,
    csv_header,
    export,
)
from pegboard.ports import PART, AuditRecord
from pegboard.ports.adapters import Adapters
from pegboard.testing import MemoryStore

CONFIG = """
plugins: {notes: {python: note_tools}}
toolkits: {paper: {tools: [notes]}}
agents:
  clerk: {allowed_toolkits: [paper], dialect: pegboard}
  other: {discoverable: [notes], dialect: pegboard}
"""
AT = datetime(2026, 7, 28, 9, 30, tzinfo=UTC)
RECORD = AuditRecord(AT, "call", "ada", "clerk", "thread", 1, "note", "allowed", "", 1.5, "ok")


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    (tmp_path / "note_tools.py").write_text('def note(x: int) -> int:\n    """Take a note."""\n    return x\n')
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    async with Pegboard.open(tmp_path / "pegboard.yaml") as opened:
        yield opened


@pytest.fixture
def services(board: Pegboard) -> Services:
    return board.services


async def subjects(services: Services, query: AuditQuery) -> list[str]:
    return [line.subject for line in (await audit(services, query)).lines]


async def test_what_a_session_did_is_found_by_any_of_its_words(board: Pegboard, services: Services) -> None:
    """X4: who, what, and how it was decided; the newest first."""
    session = await board.session(agent="clerk", session_id="thread", principal="ada")
    await session.load("paper")
    await session.call("note", {"x": 1})
    await session.call("delete_all", {})
    await board.permissions.set("clerk", "paper", False, by="root")

    assert await subjects(services, AuditQuery(session="thread")) == ["delete_all", "notes/note", "toolkit:paper"]
    assert await subjects(services, AuditQuery(text="PAPER", kind="load")) == ["toolkit:paper"]
    assert await subjects(services, AuditQuery(decision="refused")) == ["delete_all"]
    assert await subjects(services, AuditQuery(outcome="ok", principal="ada")) == ["notes/note"]
    (switch,) = (await audit(services, AuditQuery(text="ROOT"))).lines
    assert (switch.kind, switch.agent, switch.by) == ("permission", "clerk", "root")
    now = datetime.now(UTC)
    assert await subjects(services, AuditQuery(since=now + timedelta(hours=1))) == []
    assert len(await subjects(services, AuditQuery(until=now + timedelta(hours=1)))) == 4
    assert await subjects(services, AuditQuery(agent="other")) == []


async def test_pages_follow_each_other_without_a_gap(board: Pegboard, services: Services) -> None:
    """X4: also while something is added at the other end."""
    store = board.services.store
    await store.record(*(RECORD._replace(turn=turn) for turn in range(10)))
    first = await audit(services, AuditQuery(limit=4))
    await store.record(RECORD._replace(turn=10))
    second = await audit(services, AuditQuery(limit=4, before=first.before))
    third = await audit(services, AuditQuery(limit=4, before=second.before))
    assert [line.turn for page in (first, second, third) for line in page.lines] == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert third.before is None
    news = await audit(services, AuditQuery(after=first.after))
    assert [line.turn for line in news.lines] == [10]
    assert (await audit(services, AuditQuery(after=news.after))).lines == ()
    assert [line.turn for line in (await audit(services, AuditQuery(after=second.after))).lines] == [10, 9, 8, 7, 6]


async def test_what_is_new_is_followed_in_pages(board: Pegboard, services: Services) -> None:
    """X4: each page newest first; a filter moves the cursor past what is not wanted."""
    start = (await audit(services, AuditQuery())).after
    await board.services.store.record(*(RECORD._replace(turn=turn) for turn in range(5)))
    first = await audit(services, AuditQuery(after=start, limit=3))
    second = await audit(services, AuditQuery(after=first.after, limit=3))
    assert [[line.turn for line in page.lines] for page in (first, second)] == [[2, 1, 0], [4, 3]]
    nothing = await audit(services, AuditQuery(after=start, text="nothing like that"))
    assert (nothing.lines, nothing.after) == ((), second.after)


async def test_an_empty_trail_is_followed_from_its_beginning(board: Pegboard, services: Services) -> None:
    """X4: the first record of all is new."""
    start = (await audit(services, AuditQuery())).after
    await board.services.store.record(RECORD)
    assert [line.subject for line in (await audit(services, AuditQuery(after=start))).lines] == ["note"]


async def test_a_rare_record_in_a_long_trail_is_found_behind_a_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    """X4: a page looks at a bounded number of records, and goes on where it stopped."""
    monkeypatch.setattr("pegboard.operators.audit.LOOKED_AT", 2 * PART)
    async with Pegboard.open({"store": "memory:"}) as board:
        await board.services.store.record(RECORD._replace(subject="rare"), *([RECORD] * (3 * PART)))
        services = board.services
        page = await audit(services, AuditQuery(text="rare"))
        assert page.lines == ()
        assert page.before is not None
        assert await subjects(services, AuditQuery(text="rare", before=page.before)) == ["rare"]


async def test_all_that_is_wanted_is_exported(board: Pegboard, services: Services) -> None:
    """X4: as lines of JSON and as a table, newest first, whatever the page size is."""
    count = PART + 3
    await board.services.store.record(
        *(RECORD._replace(turn=turn, subject="é\n,x" if turn % 2 else "note") for turn in range(count))
    )
    query = AuditQuery(text="É", limit=1)
    lines = [line async for part in export(services, query) for line in part]
    assert [line.turn for line in lines] == list(range(count - 2, 0, -2))
    assert AuditLine(**json.loads(as_json_line(lines[0]))) == lines[0]
    table = csv_header() + "".join(map(as_csv_line, lines))
    rows = list(csv.DictReader(table.splitlines(keepends=True)))
    assert (len(rows), rows[0]["subject"], rows[0]["duration"], rows[0]["at"]) == (
        len(lines), "é\n,x", "1.5", "2026-07-28T09:30:00+00:00",
    )  # fmt: skip


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
async def test_no_cell_of_an_export_is_a_formula(services: Services, board: Pegboard, text: str) -> None:
    """X4: what a model or a client wrote does not calculate in the operator's table."""
    await board.services.store.record(RECORD._replace(subject=text, session=text))
    (line,) = [line async for part in export(services, AuditQuery()) for line in part]
    (row,) = csv.reader([as_csv_line(line)])
    assert not [cell for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert line.subject == text


async def test_no_secret_is_on_a_page() -> None:
    """X5: also where it became one after the record was written."""
    store = MemoryStore()
    await store.record(RECORD._replace(subject="hunter22", reason="it is hunter22", by="hunter22"))
    async with Pegboard.open({"store": "memory:"}, adapters=Adapters(store=store)) as board:
        board.services.recorder.masker = Masker(["hunter22"])
        page = await audit(board.services, AuditQuery(text="hunter22"))
    assert "hunter22" not in as_json_line(page.lines[0])
