"""What agents planned is run where the host can, as its owner may then; else no one runs it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import Pegboard, Session
from pegboard.ports import DueSchedule
from pegboard.testing import Adapters, FakeSource

CONFIG = {
    "store": "memory:",
    "plugins": {"jobs": {"python": "no_module"}, "notes": {"python": "no_module"}},
    "agents": {"clerk": {"tools": ["jobs", "notes"]}, "guest": {"tools": ["notes"]}},
}


def due(name: str, principal: str = "ada", agent: str = "clerk") -> DueSchedule:
    return DueSchedule(
        id=name, name=name, payload={"message": name}, plugin="jobs", principal=principal, agent=agent, session="desk"
    )


@pytest.fixture
def source() -> FakeSource:
    return FakeSource({"jobs": {"plan": "planned"}, "notes": {"note": "noted"}})


@pytest.fixture
async def board(source: FakeSource) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(CONFIG, adapters=Adapters(sources=[source])) as board:
        await board.ready("jobs", "notes")
        yield board


async def all_run(board: Pegboard, source: FakeSource, count: int) -> list[tuple[str, str, str, str]]:
    """Let the host run what is due, and return principal, decision, outcome and reason of each record."""
    done = asyncio.Event()

    async def run(session: Session, due: DueSchedule) -> None:
        if due.name == "fails":
            raise OSError("no paper")
        called = await session.call("note", {})
        assert (called.status, session.key.agent, session.key.principal) == ("ok", due.agent, due.principal)

    async def noted(one: DueSchedule, error: str) -> None:
        source.runs.append((one, error))
        if len(source.runs) == count:
            done.set()

    source.note_run = noted  # type: ignore[method-assign]
    board.on_schedule = run
    await asyncio.wait_for(done.wait(), 30)
    records = reversed(await board.services.store.entries(kind="schedule"))
    return [(one.principal, one.decision, one.outcome, one.reason) for one in records]


async def test_what_is_due_runs_as_its_owner_may_now(board: Pegboard, source: FakeSource) -> None:
    """P1, X4: for two owners; one whose agent may plan no more is refused, and all of it is in the audit."""
    for name, principal in (("one", "ada"), ("two", "bob"), ("fails", "bob")):
        source.plan(due(name, principal))
    assert sorted(await all_run(board, source, 3)) == [
        ("ada", "allowed", "ok", ""),
        ("bob", "allowed", "error", "OSError: no paper"),
        ("bob", "allowed", "ok", ""),
    ]
    assert {(one.name, error) for one, error in source.runs} == {
        ("one", ""),
        ("two", ""),
        ("fails", "OSError: no paper"),
    }


@pytest.mark.parametrize(
    ("planned", "reason"),
    [
        (due("x"), "Agent 'clerk' may no longer use plugin 'jobs'."),
        (due("x", agent="guest"), "Agent 'guest' may no longer use plugin 'jobs'."),
        (due("x", agent="gone"), "Agent 'gone' no longer exists."),
        (due("x", principal=""), "The agent that created it is unknown: let that agent create it again."),
    ],
    ids=["denied since", "never granted", "gone", "unknown"],
)
async def test_what_its_owner_may_not_plan_any_more_is_not_run(
    board: Pegboard, source: FakeSource, planned: DueSchedule, reason: str
) -> None:
    """P1, P3: the permissions of that time count, not those of when it was planned."""
    await board.permissions.set("clerk", "jobs", False)
    source.plan(planned)
    assert await all_run(board, source, 1) == [(planned.principal, "refused", "refused", reason)]


async def test_nothing_is_run_where_the_host_runs_nothing(board: Pegboard, source: FakeSource) -> None:
    source.plan(due("one"))
    session = await board.session(agent="clerk", session_id="desk")
    await session.call("note", {})
    assert board.on_schedule is None
    assert [one.name for one in source.due] == ["one"]


async def test_a_schedule_of_agno_runs_once_when_it_is_due(tmp_path: Path) -> None:
    """X4: a restart later, in the session in which it was planned; its history has the run."""
    config = {
        "store": f"sqlite:///{tmp_path / 'state.db'}",
        "agents": {"clerk": {"tools": ["scheduler"]}},
    }
    job = {"name": "daily", "cron": "0 9 * * *", "endpoint": "/agents/clerk/runs", "payload": '{"message": "Report."}'}
    async with Pegboard.open(config) as board:
        session = await board.session(agent="clerk", session_id="desk", principal="ada")
        made = await session.call("create_schedule", job)
        assert '"status": "created"' in made.result.content[0]["text"]
        identifier = made.result.content[0]["text"].partition('"id": "')[2].partition('"')[0]
        await session.call("trigger_schedule", {"schedule_id": identifier})
        assert "only stored" in (await session.surface()).policy
    async with Pegboard.open(config) as board:
        seen: asyncio.Queue[tuple[str, str, str, object]] = asyncio.Queue()

        async def run(session: Session, due: DueSchedule) -> None:
            await seen.put((session.key.principal, session.key.session, due.name, due.payload["message"]))

        board.on_schedule = run
        assert await asyncio.wait_for(seen.get(), 20) == ("ada", "desk", "daily", "Report.")
        session = await board.session(agent="clerk", session_id="desk", principal="ada")

        async def history() -> str:
            ran = await session.call("get_schedule_runs", {"schedule_id": identifier})
            return ran.result.content[0]["text"]

        while '"success"' not in await history():  # noqa: ASYNC110 - it is written in another thread
            await asyncio.sleep(0.01)
        board.on_schedule = None
        assert seen.empty()
