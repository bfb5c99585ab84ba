"""A store copied out, as lines, and put in again: every record, in one reading, all or nothing."""

import base64
import io
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

import pytest
from copied_samples import answers, fill, record
from hypothesis import given
from hypothesis import strategies as st

from pegboard.errors import StoreError
from pegboard.ports import SessionKey
from pegboard.ports.replicas import Replica
from pegboard.ports.store_copies import CopiedRecord, StoreCopies
from pegboard.stores.sql import SqliteStore
from pegboard.stores.sql.copies import KINDS
from pegboard.stores.sql.copy_lines import FORMAT, CopyReader, CopyWriter
from pegboard.stores.sql.schema import NOT_COPIED, TABLES
from pegboard.stores.sql.sqlite_copies import SqliteCopies

KEY = base64.b64encode(bytes(range(32))).decode()
OWN = SessionKey(principal="ada", agent="agent", session="own")
pytestmark = pytest.mark.usefixtures("given_key")


@pytest.fixture
def given_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_KEY", KEY)


@pytest.fixture
async def filled(store: SqliteStore) -> SqliteStore:
    """Return a store with something of every kind in it."""
    await fill(store)
    return store


async def copied(copies: StoreCopies) -> bytes:
    """Return a copy as lines."""
    writer = CopyWriter()
    lines = [writer.header(version="0.1.0", store=copies.kind)]
    async with aclosing(copies.export()) as batches:
        lines += [writer.lines(batch) async for batch in batches]
    return b"".join([*lines, writer.end()[0]])


async def put_in(copies: StoreCopies, lines: bytes, *, replaced: bool = False) -> CopyReader:
    reader = CopyReader(io.BytesIO(lines), "copy.jsonl")
    await reader.start()
    await copies.import_(reader.batches(), replace=replaced)
    return reader


async def batches_of(*records: CopiedRecord, then: Exception | None = None) -> AsyncIterator[Sequence[CopiedRecord]]:
    yield records
    if then is not None:
        raise then


def rows(path: Path, table: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT * FROM {table}").fetchall()


def test_s2_every_table_is_copied_with_each_column_or_is_named_as_not_copied(store: SqliteStore) -> None:
    """S2: what is added to the tables later is not forgotten here."""
    there = {row[1] for row in rows(store.path, "sqlite_master") if row[0] == "table"}
    assert KINDS.keys() - {"numbering"} | NOT_COPIED | {"sqlite_sequence"} == there
    assert there - {"sqlite_sequence"} == TABLES.keys()
    for kind in KINDS.keys() - {"numbering"}:
        columns = [row[1] for row in rows(store.path, f"pragma_table_info('{kind}')")]
        assert list(KINDS[kind]) == columns, kind


async def test_s2_a_copy_put_into_an_empty_store_answers_everything_alike(filled: SqliteStore, tmp_path: Path) -> None:
    """S2: hostile texts, numbers, versions, revisions and secrets, sealed as they were; twice over the same lines."""
    before, lines = await answers(filled), await copied(SqliteCopies(filled.path))
    assert b"token" not in lines.replace(b'"tokens"', b"").replace(b'"arguments"', b"")
    new = SqliteCopies(tmp_path / "new.db")
    reader = await put_in(new, lines)
    assert set(reader.end.counts) == set(KINDS)
    again = await copied(new)
    assert _without_sums(again) == _without_sums(lines)
    store = SqliteStore(tmp_path / "new.db")
    await store.open()
    assert await answers(store) == before
    for table in KINDS.keys() - {"counter", "numbering"}:
        assert sorted(rows(store.path, table)) == sorted(rows(filled.path, table)), table
    assert dict(rows(store.path, "sqlite_sequence")) == dict(rows(filled.path, "sqlite_sequence"))
    await store.aclose()


def _without_sums(lines: bytes) -> list[bytes]:
    """Return the lines between the first and the last, without counters, which go on, and sums."""
    return [line[:-19] for line in lines.splitlines()[1:-1] if not line.startswith(b'{"counter"')]


async def test_s2_a_copy_is_of_one_moment(filled: SqliteStore) -> None:
    """S2: what is written meanwhile is in none of it, and whoever writes does not wait."""
    async with aclosing(SqliteCopies(filled.path).export()) as batches:
        records = [*await anext(batches)]
        await filled.save(OWN, "written meanwhile", expected=0, audit=[record(1, "written meanwhile")])
        records += [one async for batch in batches for one in batch]
    assert {one.kind for one in records} == set(KINDS)
    assert "written meanwhile" not in [value for one in records for value in one.values]


async def test_s2_what_fails_in_the_middle_leaves_the_store_as_it_was(filled: SqliteStore) -> None:
    """S2: with --replace too, whether the copy or a record of it is at fault."""
    before = await answers(filled)
    copies = SqliteCopies(filled.path)
    good = CopiedRecord("switch", ["agent", "new", 1], 7)
    faults: list[Callable[[], AsyncIterator[Sequence[CopiedRecord]]]] = [
        lambda: batches_of(good, then=StoreError("The copy was changed.", code="copy_not_valid")),
        lambda: batches_of(good, good._replace(line=8)),
        lambda: batches_of(good, CopiedRecord("request", [1, *[None] * 21], 8)),
        lambda: batches_of(good, CopiedRecord("session", ["a", "b", "c", 2**70, 1.0, ""], 8)),
        lambda: batches_of(good, CopiedRecord("numbering", ["nothing", 1], 8)),
    ]
    for fault in faults:
        with pytest.raises(StoreError) as caught:
            await copies.import_(fault(), replace=True)
        assert caught.value.code == "copy_not_valid"
        assert "copy was changed" in caught.value.message or "Line 8 of the copy" in caught.value.message
    assert await answers(filled) == before


async def test_s2_a_store_that_has_something_is_replaced_only_where_that_is_said(
    filled: SqliteStore, tmp_path: Path
) -> None:
    lines = await copied(SqliteCopies(filled.path))
    other = SqliteStore(tmp_path / "other.db")
    await other.open()
    await other.save(OWN, "of the other", expected=0)
    with pytest.raises(StoreError, match=r"is not empty \(session: 1\); nothing was changed") as caught:
        await put_in(SqliteCopies(other.path), lines)
    assert caught.value.code == "store_not_empty"
    await put_in(SqliteCopies(other.path), lines, replaced=True)
    assert await other.load(OWN) is None
    assert await answers(other) == await answers(filled)
    await other.aclose()


async def test_g14_a_store_that_is_served_takes_no_copy_and_keeps_the_secret_of_its_replicas(
    filled: SqliteStore, tmp_path: Path
) -> None:
    """G14: processes that serve it hold what they read before; their secret is in no copy."""
    secret, copies = await filled.replica_key(), SqliteCopies(filled.path)
    lines = await copied(copies)
    assert base64.b64encode(secret) not in lines
    await filled.announce(Replica("a1", "http://10.0.0.7:8400", "0.1.0"), seconds=60)
    assert [one.id for one in (await copies.check()).replicas] == ["a1"]
    with pytest.raises(
        StoreError, match=r"is served now \(a1 at http://10.0.0.7:8400\); nothing was changed"
    ) as caught:
        await put_in(copies, lines, replaced=True)
    assert caught.value.code == "store_in_use"
    await filled.withdraw("a1")
    await put_in(copies, lines, replaced=True)
    assert await filled.replica_key() == secret


async def test_s2_who_has_the_store_open_sees_what_was_put_in(filled: SqliteStore, tmp_path: Path) -> None:
    """S2: the change token moves, and no counter goes back to a number that was seen before."""
    lines = await copied(SqliteCopies(filled.path))
    await filled.set_switch("agent", "since", True)
    seen, revision = await filled.change_token(), await filled.pins_revision()
    counters = dict(rows(filled.path, "counter"))
    await put_in(SqliteCopies(filled.path), lines, replaced=True)
    now = await filled.change_token()
    assert (now.states, now.permissions) != (seen.states, seen.permissions)
    assert now.permissions != seen.permissions
    assert await filled.pins_revision() != revision
    assert all(value > counters[name] for name, value in rows(filled.path, "counter"))
    assert "since" not in (await filled.stored_permissions()).switches["agent"]


async def test_x4_numbers_go_on_behind_those_of_records_that_are_gone(store: SqliteStore, tmp_path: Path) -> None:
    """X4: no number of the trail is given twice, also where the last was removed before the copy."""
    await store.record(record(1, "first"), record(2, "second"))
    first, second = (row[0] for row in rows(store.path, "request"))
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM request WHERE id = (SELECT max(id) FROM request)")
    await put_in(SqliteCopies(tmp_path / "new.db"), await copied(SqliteCopies(store.path)))
    new = SqliteStore(tmp_path / "new.db")
    await new.open()
    await new.record(record(3, "third"))
    kept, added = (row[0] for row in rows(new.path, "request"))
    assert kept == first
    assert added > second
    await new.aclose()


async def test_a_long_trail_is_copied_and_put_in_within_little_memory(store: SqliteStore, tmp_path: Path) -> None:
    import tracemalloc

    await store.record(*(record(number, f"{number}{'x' * 12_000}") for number in range(2_000)))
    copy, copies = tmp_path / "copy.jsonl", SqliteCopies(store.path)
    writer = CopyWriter()
    tracemalloc.start()
    with copy.open("wb") as file:
        file.write(writer.header(version="0.1.0", store="sqlite"))
        async for batch in copies.export():
            file.write(writer.lines(batch))
        file.write(writer.end()[0])
    with copy.open("rb") as file:
        reader = CopyReader(file, "copy.jsonl")
        await reader.start()
        await SqliteCopies(tmp_path / "new.db").import_(reader.batches(), replace=False)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert copy.stat().st_size > 22 * 1024 * 1024
    assert most < 20 * 1024 * 1024
    assert reader.end.counts["request"] == 2_000


# -- lines that are not as they were written --------------------------------------------------------

FEW = [CopiedRecord("switch", ["agent", f"name {number}", number % 2]) for number in range(6)]


def lines_of(records: Sequence[CopiedRecord] = FEW) -> bytes:
    writer = CopyWriter()
    parts = [writer.header(version="0.1.0", store="sqlite"), writer.lines(records)]
    return b"".join([*parts, writer.end()[0]])


async def read(lines: bytes) -> list[CopiedRecord]:
    reader = CopyReader(io.BytesIO(lines), "copy.jsonl")
    await reader.start()
    return [one for batch in [batch async for batch in reader.batches()] for one in batch]


async def refusal(lines: bytes) -> StoreError:
    with pytest.raises(StoreError) as caught:
        await read(lines)
    assert caught.value.code == "copy_not_valid"
    assert "Nothing was changed." in caught.value.hint
    return caught.value


def line_of(error: StoreError) -> int | None:
    return error.location.line if error.location else None


@given(place=st.integers(0, len(lines_of()) - 1), other=st.integers(1, 255))
async def test_a_changed_byte_is_found_at_its_line_or_where_it_joins_the_next(place: int, other: int) -> None:
    lines = bytearray(lines_of())
    lines[place] ^= other
    line = lines_of()[:place].count(b"\n") + 1
    assert line_of(await refusal(bytes(lines))) in ({line, line + 1} if lines_of()[place] == ord("\n") else {line})


@given(length=st.integers(0, len(lines_of()) - 1))
async def test_a_cut_copy_is_refused_at_the_line_where_it_ends(length: int) -> None:
    cut = lines_of()[:length]
    error = await refusal(cut)
    assert line_of(error) == cut.count(b"\n") + 1
    assert "cut" in error.message or length < 20


async def test_what_is_read_is_what_was_written() -> None:
    values = ["", "a\0b\ud800", b"\x00\xff", 0, -1, 2**62, 1.5, float("inf"), None, '{"bytes":"x"}', "true"]
    records = [CopiedRecord("accepted", ["c", value]) for value in values]
    assert [one.values[1] for one in await read(lines_of(records))] == values


@pytest.mark.parametrize(
    ("changed", "line", "message"),
    [
        (lambda lines: [*lines[:3], *lines[4:]], 4, "changed, in this line or by a line that was removed"),
        (lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]], 4, "changed"),
        (lambda lines: [*lines[:3], lines[3], *lines[3:]], 5, "changed"),
        (lambda lines: [*lines[:-1]], 8, "The copy ends before its last line: it was cut."),
        (lambda lines: [*lines, b"\n"], 9, "There is more text after the last line of the copy."),
        (lambda lines: lines[1:], 1, "This is not a copy of a store."),
        (lambda lines: [], 1, "This is not a copy of a store."),
    ],
)
async def test_lines_removed_moved_or_put_in_are_found(
    changed: Callable[[list[bytes]], list[bytes]], line: int, message: str
) -> None:
    error = await refusal(b"".join(changed(lines_of().splitlines(keepends=True))))
    assert (line_of(error), message in error.message) == (line, True), error


class Forger(CopyWriter):
    """A writer that writes whatever it is given, with right sums."""

    def forged(self, *values: dict[str, Any]) -> bytes:
        return b"".join(map(self._line, values))


@pytest.mark.parametrize(
    ("values", "line", "message"),
    [
        ([{"pegboard_store": FORMAT + 1}], 1, f"The copy has the format {FORMAT + 1}; this Pegboard reads {FORMAT}."),
        ([{"pegboard_store": FORMAT}, {"spell": {}}], 2, "This Pegboard knows no records of the kind 'spell'."),
        ([{"pegboard_store": FORMAT}, {"switch": []}], 2, "'switch' needs a field 'agent'."),
        (
            [{"pegboard_store": FORMAT}, {"accepted": {"configuration": "", "text": "", "zeal": 1}}],
            2,
            "'accepted' has no field 'zeal'.",
        ),
        (
            [{"pegboard_store": FORMAT}, {"accepted": {"configuration": "", "text": True}}],
            2,
            "A value of 'accepted' is neither a text nor a number.",
        ),
        (
            [{"pegboard_store": FORMAT}, {"end": {"counts": {"switch": 1}, "sha256": ""}}],
            2,
            "What the last line says does not fit the lines before it.",
        ),
    ],
)
async def test_what_this_pegboard_does_not_know_is_refused(
    values: list[dict[str, Any]], line: int, message: str
) -> None:
    error = await refusal(Forger().forged(*values))
    assert (line_of(error), error.message) == (line, message)


# -- what a store is found to be -------------------------------------------------------------------


async def test_a_sound_store_is_counted_and_its_key_opens_what_is_sealed(filled: SqliteStore) -> None:
    found = await SqliteCopies(filled.path).check()
    assert (found.sound, found.faults, found.read_only, found.schema) == (True, [], "", found.understood)
    assert (found.counts["session"], found.counts["sealed"], found.counts["request"]) == (10, 9, 27)
    assert (found.sealed.place, found.sealed.there, found.sealed.unopened) == ("variable", 9, 0)
    assert found.bytes > 0


async def test_g11_secrets_without_their_key_are_counted_and_no_key_is_made(
    filled: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PEGBOARD_KEY")
    found = (await SqliteCopies(filled.path).check()).sealed
    assert (found.place, found.unopened, found.sound) == ("", 9, False)
    assert not filled.path.with_name("pegboard.db.key").exists()
    monkeypatch.setenv("PEGBOARD_KEY", base64.b64encode(b"o" * 32).decode())
    found = (await SqliteCopies(filled.path).check()).sealed
    assert (found.place, found.unopened, found.sound) == ("variable", 9, False)
    monkeypatch.setenv("PEGBOARD_KEY", "no key")
    found = (await SqliteCopies(filled.path).check()).sealed
    assert "PEGBOARD_KEY is not a key" in found.problem


async def test_a_damaged_store_is_found_out(filled: SqliteStore) -> None:
    path = filled.path
    await filled.aclose()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE name = 'approval_by_call'")
    found = await SqliteCopies(path).check()
    assert found.sound is False
    assert found.faults
    assert not (await SqliteCopies(path).check(thorough=False)).faults


async def test_there_is_nothing_to_copy_where_there_is_no_store(tmp_path: Path) -> None:
    copies = SqliteCopies(tmp_path / "none" / "none.db")
    for asked in (copies.check(), anext(copies.export())):
        with pytest.raises(StoreError, match="There is no store at") as caught:
            await asked
        assert caught.value.code == "store_missing"
    assert not (tmp_path / "none").exists()


async def test_a_store_that_others_hold_is_waited_for(store: SqliteStore, blocker: sqlite3.Connection) -> None:
    copies = SqliteCopies(store.path, patience=0.05)
    with pytest.raises(StoreError) as caught:
        await copies.import_(batches_of(), replace=False)
    assert caught.value.code == "store_busy"
    assert (await copies.check()).read_only == ""
