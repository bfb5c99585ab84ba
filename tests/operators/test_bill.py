"""What models were sent and did, on the bill: in the library, hour by hour, process by process."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard
from pegboard.board.observability.bill import Billing
from pegboard.core.model.delivery import COMMAND, Cache, Host
from pegboard.operators import bill as bill_of_operators
from pegboard.operators.bill import Bill, BillQuery, BillReader, BillRow
from pegboard.operators.subjects import make_subjects
from pegboard.ports import CountRecord, Counts, CountSums, SessionKey
from pegboard.ports.adapters import Adapters
from pegboard.ports.counts import SESSION_DAY
from pegboard.stores.sql import SqliteStore
from pegboard.testing import MemoryStore

CONFIG = """
plugins:
  notes: {python: note_tools}
  sums: {python: sum_tools}
servers: {unseen: {command: no-such-command-anywhere}}
toolkits:
  paper: {tools: [notes], focus: [{when: note, tools: [note], choice: required}]}
  late: {tools: [unseen]}
agents:
  all: {allowed_toolkits: [paper], discoverable: [notes, sums], dialect: pegboard}
  waits: {discoverable: [notes], allowed_toolkits: [late], dialect: pegboard}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    for name, tool in (("note", "note"), ("sum", "add")):
        text = f'def {tool}(x: int) -> int:\n    """Do {tool}. {"It says more. " * 40}"""\n    return x\n'
        (tmp_path / f"{name}_tools.py").write_text(text)
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
async def board(config: Path) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(config) as opened:
        yield opened


async def bill_of(board: Pegboard, **wanted: object) -> Bill:
    return await BillReader(board.services).bill(BillQuery(**wanted))  # type: ignore[arg-type]


async def only(board: Pegboard, **wanted: object) -> BillRow:
    (row,) = (await bill_of(board, by="session", **wanted)).rows
    return row


def _start(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


async def until(board: Pegboard) -> None:
    """Wait until something is in the store."""
    store = board.services.store
    while not (await store.sums(SESSION_DAY, since=0, until=2**40, by=())).records:  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0.01)


async def test_a_session_is_billed_for_what_its_model_was_sent_and_did(board: Pegboard) -> None:
    """F4: tokens are those of each surface, and what is saved is against everything that the agent may use."""
    session = await board.session(agent="all", session_id="thread", principal="ada")
    before = [(await session.surface()).tokens, (await session.surface()).tokens]
    await session.load("notes")
    after = (await session.surface()).tokens
    await session.search("add numbers")
    await session.call("note", {"x": 1})
    await session.call("search_tools", {"queries": ["add numbers"]})
    await session.call("nothing", {})
    await session.unload("notes")

    row = await only(board)
    assert (row.principal, row.agent, row.session, row.day) == ("ada", "all", "thread", None)
    assert (row.requests, row.unknown) == (3, 0)
    assert row.tokens == sum(costs.total for costs in (*before, after))
    assert row.saved == sum(costs.saved or 0 for costs in (*before, after))
    loaded_by_the_search = 1
    assert (row.loads, row.unloads, row.searches) == (1 + loaded_by_the_search, 1, 2)
    assert (row.calls, row.meta_calls, row.denials) == (1, 1, 1)


async def test_what_is_not_known_is_saved_is_no_number(board: Pegboard) -> None:
    """F4: it is counted how often it was not known, and the tokens that were sent are known all the same."""
    session = await board.session(agent="waits", session_id="thread")
    costs = (await session.surface()).tokens
    row = await only(board)
    assert (row.requests, row.unknown, row.saved, row.tokens) == (1, 1, 0, costs.total)


@pytest.mark.parametrize("message", [None, "take a note"])
async def test_a_surface_and_the_wire_list_behind_it_are_one_request(board: Pegboard, message: str | None) -> None:
    """F4, D3: also where the host asks for the focus again that the wire list took away."""
    session = await board.session(agent="all", session_id="thread", host=Host(cache=Cache(tokens=100)))
    await session.load("paper")
    tokens = 0
    for _ in range(3):
        surface = await session.surface(message=message)
        tokens += board.services.prices(await session.wire()) + surface.tokens.text
        assert (surface.focus is None) == (message is None)
        if surface.focus is not None:
            await session.surface(message=message)
        await session.call("search_tools", {"queries": ["add"]})
    assert ((await only(board)).requests, (await only(board)).tokens) == (3, tokens)


async def test_a_wire_list_alone_is_a_request(board: Pegboard) -> None:
    """F4, D3: for hosts that ask for nothing else."""
    session = await board.session(agent="all", session_id="thread", host=Host(cache=Cache(tokens=100)))
    for _ in range(3):
        await session.wire()
    assert (await only(board)).requests == 3


async def test_what_an_operator_looks_at_is_not_billed(board: Pegboard) -> None:
    """F4: the command sends a model nothing."""
    session = await board.session(agent="all", session_id="thread", host=COMMAND)
    await session.surface()
    assert (await bill_of(board)).rows == ()


async def test_the_bill_is_by_day_by_agent_or_by_session_and_sums_up_the_rest(board: Pegboard) -> None:
    """F4: the most tokens first; who is not listed is in the rest."""
    services, today = board.services, date(2026, 7, 28)
    noon = datetime(2026, 7, 28, 12, tzinfo=UTC).timestamp()
    billing = Billing(
        services.metrics, services.store, services.prices, services.counter.count, lambda _: None, lambda: noon
    )
    for agent, number in (("all", 3), ("waits", 1)):
        for name in range(number):
            session = await board.session(agent=agent, session_id=f"{name}", principal="ada")
            for _ in range(name + 1):
                await session.surface()
    await billing.flush()
    by_agent, by_day = await bill_of(board, by="agent"), await bill_of(board)
    assert [(row.agent, row.requests, row.session) for row in by_agent.rows] == [("all", 6, None), ("waits", 1, None)]
    assert [(row.day, row.requests, row.agent) for row in by_day.rows] == [(today.isoformat(), 7, None)]
    by_session = await bill_of(board, by="session", limit=1)
    assert [(row.session, row.requests) for row in by_session.rows] == [("2", 3)]
    assert (by_session.others, by_session.rest.requests, by_session.totals.requests) == (3, 4, 7)
    assert by_session.rest.tokens == by_session.totals.tokens - by_session.rows[0].tokens
    assert (await bill_of(board, since=date(2020, 1, 1), until=date(2020, 1, 2))).totals.requests == 0
    assert (await bill_of(board, agent="waits", since=today, until=today)).totals.requests == 1
    assert (await bill_of(board, principal="bob")).rows == ()


async def test_the_bill_outlives_the_process_and_grows_with_others(config: Path) -> None:
    """F4, S2: closing writes what was counted; two boards on one store add up."""
    async with Pegboard.open(config) as one, Pegboard.open(config) as two:
        for board in (one, two):
            await (await board.session(agent="all", session_id="thread")).surface()
    async with Pegboard.open(config) as later:
        assert (await only(later)).requests == 2


async def test_what_is_counted_is_on_the_bill_some_seconds_later(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F4: no one has to ask for it."""
    monkeypatch.setattr("pegboard.board.observability.bill.EVERY", 0.01)
    async with Pegboard.open(config) as board, asyncio.timeout(20):
        await (await board.session(agent="all", session_id="thread")).surface()
        await until(board)


async def test_every_day_has_a_bill_of_its_own(config: Path) -> None:
    """F4: days are those of UTC; what is counted before midnight is not on the next day's bill."""
    store, midnight = MemoryStore(), datetime(2026, 7, 29, tzinfo=UTC).timestamp()
    async with Pegboard.open(config, adapters=Adapters(store=store)) as board:
        services, now = board.services, midnight - 1.0
        clock: Callable[[], float] = lambda: now  # noqa: E731
        billing = Billing(services.metrics, store, services.prices, services.counter.count, lambda _: None, clock)
        session = await board.session(agent="all", session_id="thread")
        await session.surface()
        now = midnight + 0.001
        await billing.flush()
        await session.surface()
        await billing.flush()
        days = [row.day for row in (await bill_of(board)).rows]
        assert days == ["2026-07-29", "2026-07-28"]


async def test_a_locked_store_stops_no_call(config: Path, tmp_path: Path) -> None:
    """F4, S2: counting waits until the store is free again."""
    store = SqliteStore(tmp_path / "own.db", patience=0.05)
    async with Pegboard.open(config, adapters=Adapters(store=store)) as board:
        session = await board.session(agent="all", session_id="thread")
        await session.load("notes")
        await session.call("note", {"x": 1})
        with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            for _ in range(3):
                assert (await session.call("note", {"x": 1})).status == "ok"
                await session.surface()
                await board.services.billing.flush()
            other.execute("ROLLBACK")
        row = await only(board)
        assert (row.calls, row.requests, row.loads) == (4, 3, 1)


async def test_numbers_of_ten_thousand_sessions_are_all_billed(board: Pegboard) -> None:
    """F4: also of those whose numbers are not kept any longer."""
    metrics = board.services.metrics
    for number in range(10_500):
        metrics.count_search(SessionKey(principal="ada", agent="all", session=str(number)))
        metrics.meta_called(SessionKey(principal="ada", agent="all", session="0"))
    bill = await bill_of(board, by="agent")
    assert (bill.totals.searches, bill.totals.meta_calls) == (10_500, 10_500)


async def test_a_child_and_its_parent_are_billed_apart(board: Pegboard) -> None:
    """F4, L8: a child is a session of its own."""
    parent = await board.session(agent="all", session_id="thread")
    child = await parent.child("explore")
    await child.surface()
    row = await only(board)
    assert (row.session, row.requests) == (child.key.session, 1)
    assert replace(row, session="thread") != row


async def test_what_comes_today_is_on_the_next_bill_and_what_comes_late_of_a_day_before_soon(
    board: Pegboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F4: the sums of days that are over are kept for a while, those of today never."""
    subjects, store, today = make_subjects(board.services), board.services.store, datetime.now(UTC).date()
    monkeypatch.setattr(bill_of_operators, "LATE", 0.0)

    async def tokens_after(day: date) -> list[int]:
        store.count_later(CountRecord(_start(day), "ada", "all", "s", counts=Counts(requests=1, tokens=10)))
        bills = [await subjects.bills.bill(BillQuery(by=unit)) for unit in ("day", "agent", "principal", "session")]
        return [bill.totals.tokens for bill in bills]

    yesterday = today - timedelta(days=1)
    assert await tokens_after(yesterday) == [10] * 4
    assert await tokens_after(today) == [20] * 4
    assert await tokens_after(yesterday) == [20, 20, 30, 30]
    by_session = await subjects.bills.bill(BillQuery(by="session"))
    assert (by_session.rest.tokens, by_session.totals.tokens) == (0, 30)
    assert await tokens_after(yesterday) == [30, 30, 40, 40]
    monkeypatch.setattr(bill_of_operators, "LATE", 86_400.0)
    assert await tokens_after(yesterday) == [50] * 4


async def test_a_bill_that_is_kept_is_given_at_once_and_read_anew_beside_that(
    board: Pegboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F4: whoever asks again has it as it was some seconds ago at most, where reading it takes long."""
    subjects, store = make_subjects(board.services), board.services.store

    def count() -> None:
        today = _start(datetime.now(UTC).date())
        store.count_later(CountRecord(today, "ada", "all", "s", counts=Counts(requests=1, tokens=10)))

    async def tokens(kept: float) -> int:
        return (await subjects.bills.bill(BillQuery(by="session"), kept)).totals.tokens

    count()
    assert await tokens(60.0) == 10
    count()
    assert await tokens(60.0) == 10
    read_sums, may_read = store.sums, asyncio.Event()

    async def slow(*unit: Any, **wanted: Any) -> CountSums:
        await may_read.wait()
        return await read_sums(*unit, **wanted)

    monkeypatch.setattr(store, "sums", slow)
    assert await tokens(1e-9) == 10
    may_read.set()
    monkeypatch.setattr(bill_of_operators, "SOON", 60.0)
    assert await tokens(1e-9) == 20
    assert await tokens(60.0) == 20
    monkeypatch.setattr(bill_of_operators, "MOST_KEPT", 0.0)
    count()
    assert await tokens(60.0) == 30
    await subjects.aclose()
