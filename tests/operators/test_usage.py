"""What went on, as operators read it: calls of a library's sessions by outcome, time, agent, server and tool."""

import asyncio
import math
import random
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path

import pytest

from pegboard import Pegboard, StoreError
from pegboard.board.observability.bill import Billing
from pegboard.operators.usage import PERIODS, Usage, UsageQuery, UsageReader, UsageRow, percentile
from pegboard.ports import CountRecord, Counts, SessionKey
from pegboard.ports.counts import OTHER, bucket_of

CONFIG = """
plugins:
  notes: {python: note_tools}
  mail: {python: mail_tools, approve: {send: always}}
agents:
  all: {tools: [notes, mail], dialect: pegboard}
  few: {tools: [notes], dialect: pegboard}
"""
NOTES = '''
def note(text: str) -> str:
    """Take a note."""
    return text


def fail() -> str:
    """Fail."""
    raise ValueError("no")
'''
MAIL = '''
def send(to: str) -> str:
    """Send a mail."""
    return to
'''
HOUR, DAY = PERIODS["hour"], PERIODS["day"]
NOON = 20_660 * 86_400 + 12 * 3_600
NOTE = CountRecord(NOON, "ada", "all", "s", "notes", "note", "ok", Counts(calls=1))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "note_tools.py").write_text(NOTES)
    (tmp_path / "mail_tools.py").write_text(MAIL)
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def config_in_a_file(config: Path) -> Path:
    """Return the configuration with a store that outlives the process."""
    config.write_text(f"store: sqlite:///state.db\n{CONFIG}")
    return config


@pytest.fixture
def config_with_a_secret(config: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the configuration with an agent whose name is a secret."""
    monkeypatch.setenv("SECRET", "hidden-agent")
    config.write_text(
        f"{CONFIG.replace('few:', 'hidden-agent:')}tokens: {{ada: {{token: '${{SECRET}}', agents: ['*']}}}}"
    )
    return config


@pytest.fixture
async def board(config: Path) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(config) as opened:
        yield opened


async def used(board: Pegboard, seconds: int = HOUR, **wanted: object) -> Usage:
    return await UsageReader(board.services).usage(UsageQuery(seconds=seconds, **wanted))  # type: ignore[arg-type]


async def at_noon(board: Pegboard, query: UsageQuery) -> Usage:
    return await UsageReader(board.services, lambda: NOON + 60.0).usage(query)


def row(rows: tuple[UsageRow, ...], name: str) -> UsageRow:
    (found,) = (one for one in rows if one.name == name)
    return found


async def test_calls_are_counted_by_outcome_agent_server_and_tool(board: Pegboard) -> None:
    """F4: what ran, what failed, what was refused, and what a person was asked about."""
    session = await board.session(agent="all", session_id="thread")
    for _ in range(3):
        assert (await session.call("note", {"text": "x"})).status == "ok"
    assert (await session.call("fail", {})).status == "error"
    assert (await session.call("note", {"texts": "x"})).status == "invalid_arguments"
    assert (await session.call("send", {"to": "ada"})).status == "needs_approval"
    assert (await session.call("nothing of the kind", {})).status == "not_found"
    tokens = (await session.surface()).tokens

    found = await used(board)
    assert (found.totals.ok, found.totals.errors, found.totals.refused, found.totals.waits) == (3, 1, 2, 1)
    assert (found.totals.lists, found.totals.tokens, found.totals.saved) == (1, tokens.total, tokens.saved)
    note = row(found.tools, "notes/note")
    assert (note.server, note.calls, note.errors, note.refused) == ("notes", 3, 0, 1)
    assert note.p50 is not None
    assert (row(found.tools, "notes/fail").errors, row(found.tools, "mail/send").waits) == (1, 1)
    assert [(one.name, one.calls, one.waits) for one in found.servers] == [("notes", 4, 0), ("mail", 0, 1)]
    assert [(one.name, one.calls, one.refused, one.tokens) for one in found.agents] == [("all", 4, 2, tokens.total)]
    assert sum(step.ok for step in found.steps) == 3


async def test_the_name_of_a_refused_call_that_is_no_tool_makes_no_row(board: Pegboard) -> None:
    """F4: a model may call anything; ten thousand names are one row."""
    session = await board.session(agent="all", session_id="thread")
    for number in range(50):
        await session.call(f"made-up-{number}", {})
    found = await used(board)
    assert (found.totals.refused, found.tools, found.servers) == (50, (), ())
    assert [one.refused for one in found.agents] == [50]


async def test_what_one_operator_may_see_is_of_their_agents(board: Pegboard) -> None:
    """A5: nothing of others is in any number."""
    for agent, times in (("all", 3), ("few", 2)):
        session = await board.session(agent=agent, session_id="thread")
        for _ in range(times):
            await session.call("note", {"text": "x"})
    few = frozenset({"few"})
    assert (await used(board)).totals.ok == 5
    for found in (await used(board, agents=few), await used(board, agent="few")):
        assert (found.totals.ok, [one.name for one in found.agents], row(found.tools, "notes/note").calls) == (
            2,
            ["few"],
            2,
        )
    assert (await used(board, agents=few, agent="all")).totals.ok == 0


async def test_a_day_without_calls_is_all_zero(board: Pegboard) -> None:
    """F4: and no call took any time."""
    for seconds in PERIODS.values():
        found = await used(board, seconds)
        assert found.totals.p50 is None
        values = (asdict(step).items() for step in found.steps)
        assert {value for of in values for name, value in of if name not in ("start", "end")} == {0, None}
        assert found.tools == found.agents == found.servers == ()


@pytest.mark.parametrize(
    ("seconds", "length", "steps"),
    [
        (HOUR, 300, 12), (2 * HOUR, 300, 24), (DAY, 3_600, 24), (2 * DAY, 3_600, 48), (7 * DAY, 6 * 3_600, 28),
        (30 * DAY, DAY, 30), (90 * DAY, DAY, 90), (400 * DAY, 4 * DAY, 100), (1, 300, 1),
    ],
)  # fmt: skip
async def test_every_time_has_steps_that_cover_it_up_to_now(
    board: Pegboard, seconds: int, length: int, steps: int
) -> None:
    """F4: they follow each other, and now is in the last one."""
    board.services.store.count_later(NOTE)
    found = await at_noon(board, UsageQuery(seconds=seconds))
    assert (found.seconds, len(found.steps)) == (length, steps)
    assert [one.end for one in found.steps[:-1]] == [one.start for one in found.steps[1:]]
    assert found.steps[-1].start <= NOON + 60 < found.steps[-1].end
    assert [one.ok for one in found.steps] == [0] * (steps - 1) + [1]
    assert (found.totals.ok, found.tools[0].calls) == (1, 1)


@pytest.mark.parametrize(("seconds", "ahead"), [(HOUR, 300), (DAY, 3_600), (7 * DAY, 3_600), (30 * DAY, DAY)])
async def test_what_was_counted_ahead_of_a_clock_that_was_set_back_is_not_of_now(
    board: Pegboard, seconds: int, ahead: int
) -> None:
    """F4: it is counted once its time has come."""
    for start in (NOON + ahead, NOON):
        board.services.store.count_later(NOTE._replace(start=start))
    assert (await at_noon(board, UsageQuery(seconds=seconds))).totals.ok == 1


async def test_a_clock_that_jumps_back_counts_on(board: Pegboard) -> None:
    """F4: what came before the jump stays where it was."""
    services, now = board.services, NOON + 600.0
    billing = Billing(
        services.metrics, services.store, services.prices, services.counter.count, lambda _: "notes", lambda: now
    )
    session = await board.session(agent="all", session_id="thread")
    await session.call("note", {"text": "x"})
    await billing.flush()
    now = NOON - 3_600.0
    await session.call("note", {"text": "x"})
    await billing.flush()
    now = NOON + 601.0
    await session.call("note", {"text": "x"})
    await billing.flush()
    found = await UsageReader(services, lambda: now).usage(UsageQuery(seconds=2 * HOUR))
    assert [(one.start - NOON, one.ok) for one in found.steps if one.ok] == [(-3_600, 1), (600, 2)]


async def test_what_is_rare_stands_behind_the_busiest(board: Pegboard) -> None:
    """F4: with how many are not listed."""
    rare = NOTE._replace(tool=OTHER, counts=Counts(calls=100))
    busy = [NOTE._replace(tool=f"tool-{number}", counts=Counts(calls=5)) for number in range(7)]
    board.services.store.count_later(rare, *busy)
    found = await at_noon(board, UsageQuery(seconds=HOUR, limit=3))
    assert [one.name for one in found.tools] == ["tool-0", "tool-1", "tool-2", OTHER]
    assert (found.more_tools, row(found.servers, "notes").calls) == (4, 135)


async def test_two_processes_add_up_and_what_is_counted_outlives_them(
    config_in_a_file: Path,
) -> None:
    """F4, S2: closing writes what was counted."""
    config = config_in_a_file
    async with Pegboard.open(config) as one, Pegboard.open(config) as two:
        for board in (one, two):
            await (await board.session(agent="all", session_id="thread")).call("note", {"text": "x"})
    async with Pegboard.open(config) as later:
        assert (await used(later)).totals.ok == 2
        assert (await used(later, 30 * DAY)).totals.ok == 2


async def test_the_answer_for_long_times_is_given_again_for_some_seconds(board: Pegboard) -> None:
    """F4: a page that is asked for again and again reads the last hours again, not the last weeks."""
    now = NOON + 60.0
    reader, week = UsageReader(board.services, lambda: now), UsageQuery(seconds=7 * DAY)
    assert (await reader.usage(week)).totals.ok == 0
    board.services.store.count_later(NOTE)
    known = await reader.usage(week)
    assert (known.totals.ok, known.again_at) == (0, now + 10.0)
    hour = await reader.usage(UsageQuery(seconds=HOUR))
    assert (hour.totals.ok, hour.again_at) == (1, None)
    now += 10.0
    while (known := await reader.usage(week)).again_at is not None:  # it is read while the older answer is given
        assert known.totals.ok in (0, 1)
        await asyncio.sleep(0)
    assert known.totals.ok == 1
    now -= 5_000.0  # the clock is set back
    board.services.store.count_later(NOTE._replace(start=NOON - 7_200, counts=Counts(calls=7)))
    assert (await reader.usage(week)).totals.ok == 7
    await reader.aclose()


async def test_a_store_that_cannot_be_read_is_said_and_what_was_known_is_shown_meanwhile(
    config_in_a_file: Path,
) -> None:
    """F4: for two minutes; then it is an error."""
    async with Pegboard.open(config_in_a_file) as board:
        now = NOON + 60.0
        reader, week = UsageReader(board.services, lambda: now), UsageQuery(seconds=7 * DAY)
        assert (await reader.usage(week)).totals.ok == 0
        await board.services.store.aclose()
        now += 60.0
        assert (await reader.usage(week)).totals.ok == 0
        now += 61.0
        for query in (week, UsageQuery(seconds=HOUR)):
            with pytest.raises(StoreError, match="is not open"):
                await reader.usage(query)


async def test_names_that_hold_a_secret_are_shown_with_marks(config_with_a_secret: Path) -> None:
    """X5: as in every value that operators see."""
    async with Pegboard.open(config_with_a_secret) as board:
        await (await board.session(agent="hidden-agent", session_id="s")).call("note", {"text": "x"})
        (agent,) = (await used(board)).agents
    assert agent.name.startswith("***~")
    assert agent.calls == 1


def test_percentiles_are_within_a_twentieth_of_what_calls_took() -> None:
    """F4: also of one call, of microseconds and of hours."""
    assert percentile({}, 0.5) is None
    for took in (0.002, 0.9, 1.0, 4.2, 6_500.0, 59_999.0, 7_200_000.0):
        for share in (0.5, 0.95, 1.0):
            assert percentile({bucket_of(took): 1}, share) == pytest.approx(took, rel=0.05)
    dice = random.Random(5)
    for count in (1, 2, 20, 999):
        times = sorted(10 ** dice.uniform(-1, 4) for _ in range(count))
        durations = Counter(map(bucket_of, times))
        for share in (0.5, 0.95):
            assert percentile(durations, share) == pytest.approx(times[math.ceil(share * count) - 1], rel=0.05)


async def test_many_names_between_two_bills_take_bounded_memory(board: Pegboard) -> None:
    """F4: what is refused may have any name, ten thousand of them are told apart until the next bill."""
    recorder, tally = board.services.recorder, board.services.metrics.tally
    key = SessionKey(principal="ada", agent="all", session="s")
    for number in range(10_500):
        recorder.emit("denied", recorder.entry(key, 1, "deny", f"name-{number}", "refused"))
        if number % 1000 == 0:
            await asyncio.sleep(0)
    records = [*tally.take(NOON, lambda _: None)]
    assert len(records) <= 10_001
    assert sum(one.counts.denials for one in records) == 10_500


async def test_every_call_is_counted_when_somebody_asks(board: Pegboard) -> None:
    """F4: however many came since the last time, and the session with the newest call is the last."""
    recorder, metrics = board.services.recorder, board.services.metrics
    one, two = (SessionKey(principal="ada", agent="all", session=session) for session in ("one", "two"))
    for key in (*[one] * 300, two, one):
        recorder.emit("called", recorder.entry(key, 1, "call", "add", "allowed", outcome="ok", duration=2.0))
    recorder.emit("called", recorder.entry(two, 1, "call", "add", "refused", outcome="invalid_arguments"))
    recorder.emit("called", recorder.entry(one, 1, "call", "add", "allowed", outcome="ok", duration=2.0))

    assert (metrics.totals["called", "all", "ok"], metrics.totals["called", "all", "invalid_arguments"]) == (303, 1)
    rows = metrics.report(lambda _: 0, len, lambda _: None)
    assert [(row["session"], row["calls"]) for row in rows] == [("two", 2), ("one", 302)]
    used: Counter[str] = Counter()
    for record in metrics.tally.take(NOON, lambda _: "calc"):
        used[record.outcome] += record.counts.calls
        assert record.durations == ({} if record.outcome == "refused" else {bucket_of(2.0): record.counts.calls})
    assert used == {"ok": 303, "refused": 1}
