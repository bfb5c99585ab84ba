"""What every store promises of approvals, asked of each of them."""

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kinds import KINDS, make
from test_store_contract import ENTRY, STRANGE

from pegboard.core.access.approvals.approval import Approval, Binding
from pegboard.core.model.tools import Frozen
from pegboard.ports import Store
from pegboard.stores.sql import SqliteStore

pytestmark = pytest.mark.cover(1)

CALL = Binding(
    principal="ada", agent="clerk", session="thread", tool="disk/wipe", definition="d" * 32, arguments="a", rules="r"
)
DAY = 24 * 3600.0


def approval(number: int = 1, **changed: Any) -> Approval:
    asked = Approval(
        id=f"{number:012x}",
        tool="wipe",
        reason="approve.wipe is always",
        arguments=Frozen({"path": "/srv/«a»", "deep": [1, None, {"x": True}]}),
        fields=Frozen({"type": "object", "properties": {"code": {"type": "string"}}}),
        binding=CALL,
        asked=CALL.arguments,
        turn=3,
        asked_at=1000.0 + number,
        expires_at=5000.5,
    )
    return replace(asked, **changed)


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    store = make(request, request.param, tmp_path)
    await store.open()
    yield store
    await store.aclose()


async def test_an_approval_is_returned_as_it_was_stored_with_its_record(store: Store) -> None:
    """A2, X4: and one that was never asked for is None."""
    record = ENTRY._replace(kind="approval")
    await store.add_approval(approval(), audit=[record])
    assert await store.approval(approval().id) == approval()
    assert await store.approval("none") is None
    assert await store.entries(kind="approval") == [record]


@pytest.mark.parametrize("text", STRANGE)
async def test_any_text_in_an_approval_survives(store: Store, text: str) -> None:
    """A2: arguments are whatever a model wrote."""
    binding = replace(CALL, principal=text, session=text, tool=text)
    odd = approval(
        tool=text, binding=binding, asked=text, by=text, message=text, arguments=Frozen({text: [text]}), reason=text
    )
    await store.add_approval(odd)
    assert await store.approvals_for(replace(binding, arguments=text)) == [odd]
    assert await store.approvals(principal=text, session=text) == [odd]


async def test_a_change_counts_only_where_the_status_is_the_one_that_was_read(store: Store) -> None:
    """A2: whoever is second changes nothing, and leaves no record."""
    await store.add_approval(approval())
    used, refused = approval(status="used"), approval(status="refused", by="grace", message="No.")
    assert await store.change_approval(approval(status="allowed"), expected="waiting")
    assert not await store.change_approval(refused, expected="waiting", audit=[ENTRY])
    assert await store.change_approval(used, expected="allowed")
    assert not await store.change_approval(used, expected="allowed", audit=[ENTRY])
    assert not await store.change_approval(approval(7), expected="waiting", audit=[ENTRY])
    assert await store.approval(approval().id) == used
    assert await store.entries() == []


async def test_a_hundred_racers_use_an_approval_once(store: Store) -> None:
    """A2: raced ones do not run."""
    await store.add_approval(approval(status="allowed"))
    used = [store.change_approval(approval(status="used"), expected="allowed") for _ in range(100)]
    assert sum(await asyncio.gather(*used)) == 1


async def test_what_may_count_for_a_call_is_what_was_asked_for_it_and_what_lasts(store: Store) -> None:
    """A2: the newest first; of other principals, agents and tools nothing."""
    others = [replace(CALL, **{part: "x"}) for part in ("principal", "agent", "tool")]
    elsewhere = replace(CALL, session="x")
    kept = [
        approval(1),
        approval(2, asked="other", lasts="session", status="allowed"),
        approval(3, asked="other"),
        approval(4, binding=elsewhere),
        approval(5, binding=elsewhere, lasts="always", status="allowed"),
        *(approval(6 + number, binding=binding, lasts="always") for number, binding in enumerate(others)),
        approval(9),
    ]
    for one in kept:
        await store.add_approval(one)
    assert [one.id[-1] for one in await store.approvals_for(CALL)] == ["9", "5", "2", "1"]
    assert [one.id[-1] for one in await store.approvals(agent="clerk", session="thread", principal="ada")] == list(
        "98321"
    )


async def test_what_something_may_still_come_of_is_what_waits_or_is_allowed_and_has_not_expired(store: Store) -> None:
    """A2: at the time that is asked about."""
    for number, status in enumerate(("waiting", "allowed", "refused", "used"), start=1):
        await store.add_approval(approval(number, status=status))
    await store.add_approval(approval(5, expires_at=2000.0))
    await store.add_approval(approval(6, status="allowed", lasts="always", expires_at=None))
    await store.add_approval(approval(7, binding=replace(CALL, agent="x")))
    assert [one.id[-1] for one in await store.approvals(agent="clerk", open_at=2000.0)] == list("621")
    assert [one.id[-1] for one in await store.approvals(open_at=1999.0)] == list("76521")
    assert [one.id[-1] for one in await store.approvals(open_at=5000.5)] == list("6")


async def test_what_expired_more_than_a_day_ago_goes_with_the_next_that_is_asked_for(store: Store) -> None:
    """A2: what never expires stays."""
    await store.add_approval(approval(1, expires_at=1000.0))
    await store.add_approval(approval(2, expires_at=None, lasts="always"))
    await store.add_approval(approval(3, expires_at=2000.0 + DAY))
    await store.add_approval(approval(4, asked_at=1001.0 + DAY))
    assert sorted(one.id[-1] for one in await store.approvals()) == ["2", "3", "4"]


async def test_the_approvals_of_a_deleted_session_are_gone_but_for_what_an_operator_allowed_always(
    store: Store,
) -> None:
    """A2: no id is of that session any longer."""
    await store.add_approval(approval(1))
    await store.add_approval(approval(2, status="allowed", lasts="session"))
    await store.add_approval(approval(3, status="allowed", lasts="always"))
    await store.add_approval(approval(4, status="refused", lasts="always"))
    await store.add_approval(approval(5, binding=replace(CALL, session="other")))
    assert await store.remove_approvals(principal="ada", agent="clerk", session="thread") == 3
    assert sorted(one.id[-1] for one in await store.approvals()) == ["3", "5"]


async def test_two_processes_see_each_others_approvals(tmp_path: Path) -> None:
    """A2: it works across processes."""
    here, there = SqliteStore(tmp_path / "pegboard.db"), SqliteStore(tmp_path / "pegboard.db")
    await here.open()
    await there.open()
    await here.add_approval(approval())
    assert await there.change_approval(approval(status="allowed"), expected="waiting")
    assert not await here.change_approval(approval(status="refused"), expected="waiting")
    assert (await here.approvals_for(CALL))[0].status == "allowed"
    await here.aclose()
    await there.aclose()


WRITER = """
import asyncio, os, signal, sys
from pathlib import Path
from pegboard.stores.sql import SqliteStore
from test_approval_contract import approval

async def main():
    store = SqliteStore(Path(sys.argv[1]))
    await store.open()
    await store.add_approval(approval(status="allowed"))
    assert await store.change_approval(approval(status="used"), expected="allowed")
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_a_use_survives_kill_9(tmp_path: Path) -> None:
    """A2: marked as used before anything runs."""
    path = tmp_path / "pegboard.db"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", WRITER, str(path), cwd=Path(__file__).parent)
    assert await process.wait() == -9
    store = SqliteStore(path)
    await store.open()
    found = await store.approval(approval().id)
    assert found is not None
    assert found.status == "used"
    await store.aclose()
