"""A store that is lost is an outage of what needs it, and of nothing else (S2, P4)."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from losable_store import LosableStore
from pegboard import Pegboard, Session
from pegboard.core.state.sessions import from_text
from pegboard.errors import StoreUnavailableError
from pegboard.ports import SessionKey, Store
from pegboard.ports.counts import SESSION_DAY
from pegboard.stores.grace import GraceStore
from pegboard.testing import Adapters, Canned, FakeSource, ManualClock, MemoryStore

CONFIG = {
    "servers": {
        "notes": {"command": "this-program-is-not-started"},
        "mail": {"command": "this-program-is-not-started", "approve": {"send": "always"}},
    },
    "loadouts": {"bare": {"plugins": ["notes"]}},
    "agents": {"helper": {"discoverable": ["*"], "lease": {"kind": "idle", "turns": 3}}},
}
GRACE = 30.0


@dataclass
class Lost:
    """A board over a store that can be lost, as another process that is not lost sees it too."""

    board: Pegboard
    double: LosableStore
    real: MemoryStore
    clock: ManualClock
    source: FakeSource

    async def session(self, principal: str = "ada") -> Session:
        return await self.board.session(agent="helper", session_id="s", principal=principal)

    async def found(self) -> None:
        """Let the server come back, and return once the board has noticed by itself."""
        back = asyncio.Event()
        self.board.on("store_back", lambda _: back.set())
        self.double.find()
        await asyncio.wait_for(back.wait(), 20)

    def ran(self, tool: str) -> int:
        return sum(call.tool == tool for call in self.source.calls)


@asynccontextmanager
async def losing(grace: float = GRACE) -> AsyncIterator[Lost]:
    real, clock = MemoryStore(), ManualClock()
    double = LosableStore(real)
    source = FakeSource({"notes": {"add": Canned(results=["added"])}, "mail": {"send": "sent", "read": "a letter"}})
    store = cast("Store", GraceStore(cast("Store", double), grace=grace, clock=clock))
    async with Pegboard.open(CONFIG, adapters=Adapters(store=store, sources=[source])) as board:
        yield Lost(board, double, real, clock, source)


@pytest.fixture
async def lost() -> AsyncIterator[Lost]:
    async with losing() as one:
        yield one


async def test_calls_of_loaded_tools_go_on_for_the_grace_and_then_by_themselves_again(lost: Lost) -> None:
    ada = await lost.session()
    await ada.load("notes")
    assert (await ada.call("notes__add")).status == "ok"
    lost.double.lose()
    lost.clock.advance(GRACE - 1)
    assert (await ada.call("notes__add")).status == "ok"
    assert (await (await lost.session()).call("notes__add")).status == "ok"  # another object of the same session
    lost.clock.advance(2)
    for session in (ada, await lost.session()):
        with pytest.raises(StoreUnavailableError, match="the server has gone away") as caught:
            await session.call("notes__add")
        assert caught.value.code == "store_unavailable"
    assert lost.ran("add") == 3
    await lost.found()
    assert (await ada.call("notes__add")).status == "ok"
    assert lost.board.services.store_health.reachable


async def test_a_session_goes_on_on_its_state_though_those_of_others_were_stored_since(lost: Lost) -> None:
    """Two users: what bob has loaded is not what ada has."""
    ada, bob = await lost.session("ada"), await lost.session("bob")
    await ada.load("notes")
    await bob.load("mail")
    lost.double.lose()
    assert (await ada.call("notes__add")).status == "ok"
    assert (await bob.call("mail__read")).status == "ok"
    for session, tool in ((ada, "mail__read"), (bob, "notes__add")):
        with pytest.raises(StoreUnavailableError):  # it would be loaded first (X1)
            await session.call(tool)
    assert (lost.ran("add"), lost.ran("read")) == (1, 1)
    with pytest.raises(StoreUnavailableError):  # of cy nothing was read
        await (await lost.session("cy")).call("notes__add")


ANEW: dict[str, Callable[[Lost, Session], Awaitable[Any]]] = {
    "load": lambda _, session: session.load("mail"),
    "unload": lambda _, session: session.unload("notes"),
    "fallback": lambda _, session: session.fallback(),
    "loadout": lambda _, session: session.use_loadout("bare"),
    "turn": lambda _, session: session.end_turn(),
    "switch": lambda lost, _: lost.board.permissions.set("helper", "notes", value=False),
    "approvals": lambda lost, _: lost.board.approvals.list(),
    "approval": lambda _, session: session.call("mail__send"),
    "delete": lambda lost, _: lost.board.forget(principal="ada"),
}


@pytest.mark.parametrize("what", ANEW)
async def test_what_decides_anew_is_refused_and_changes_nothing(lost: Lost, what: str) -> None:
    ada = await lost.session()
    await ada.load("notes", "mail" if what == "approval" else "notes")
    before = await lost.real.load(ada.key), (await lost.real.stored_permissions()).switches
    lost.double.lose()
    with pytest.raises(StoreUnavailableError) as caught:
        await ANEW[what](lost, ada)
    assert caught.value.code == "store_unavailable"
    assert (await lost.real.load(ada.key), (await lost.real.stored_permissions()).switches) == before
    assert lost.ran("send") == 0
    assert (await ada.call("notes__add")).status == "ok"
    await lost.found()
    if what != "approval":
        await ANEW[what](lost, ada)


async def test_what_was_denied_stays_so(lost: Lost) -> None:
    ada = await lost.session()
    await ada.load("notes", "mail")
    await lost.board.permissions.set("helper", "notes", value=False)
    assert (await ada.call("notes__add")).status == "not_found"
    lost.double.lose()
    with pytest.raises(StoreUnavailableError):  # the refusal of it cannot be recorded, and is none therefore (S2)
        await ada.call("notes__add")
    assert [one.tool.wire for one in (await ada.surface()).tools if one.tool.plugin == "notes"] == []
    assert (await ada.call("mail__read")).status == "ok"
    assert lost.ran("add") == 0


async def test_a_switch_that_is_known_of_and_was_not_read_ends_the_grace(lost: Lost) -> None:
    """Security: the token told that permissions are others, and then the store was lost."""
    ada = await lost.session()
    await ada.load("notes")
    lost.double.lose("stored_permissions")
    await lost.real.set_switch("helper", "notes", value=False)
    for _ in range(2):
        with pytest.raises(StoreUnavailableError):
            await ada.call("notes__add")
        lost.double.lose()
    assert lost.ran("add") == 0
    await lost.found()
    assert (await ada.call("notes__add")).status == "not_found"
    assert lost.ran("add") == 0


async def test_a_use_is_stored_once_the_store_is_back(lost: Lost) -> None:
    """S7: the lease was used in this turn."""
    ada = await lost.session()
    await ada.load("notes")
    await ada.end_turn()
    lost.double.lose()
    assert (await ada.call("notes__add")).status == "ok"
    assert await used_turns(lost, ada.key) == [1]
    await lost.found()
    async with asyncio.timeout(20):
        while await used_turns(lost, ada.key) != [2]:  # noqa: ASYNC110 - it is stored beside everything else
            await asyncio.sleep(0)


async def used_turns(lost: Lost, key: SessionKey) -> list[int]:
    stored = await lost.real.load(key)
    return [] if stored is None else [lease.used_turn for lease in from_text(stored.text).leases]


async def test_what_calls_leave_is_written_once_the_store_is_back(lost: Lost) -> None:
    """X4, F4: in the trail of both users, in order, and on their bills."""
    ada, bob = await lost.session("ada"), await lost.session("bob")
    for session in (ada, bob):
        await session.load("notes")
    lost.double.lose()
    for session in (ada, bob, ada):
        await session.call("notes__add")
    await lost.board.services.billing.flush()
    health = lost.board.services.store_health
    assert (health.reachable, health.dropped) == (False, 0)
    assert health.waiting > 3
    await lost.found()
    trail = [(one.principal, one.subject, one.outcome) for one in await lost.real.entries(kind="call")]
    assert trail == [(who, "notes/add", "ok") for who in ("ada", "bob", "ada")]
    billed = await lost.real.sums(SESSION_DAY, since=0, until=2**40, by=("principal",))
    assert {one.principal for one in billed.records} == {"ada", "bob"}


async def test_it_is_said_once_that_the_store_is_lost_and_once_that_it_is_back(
    lost: Lost, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []
    for event in ("store_lost", "store_back"):
        lost.board.on(event, lambda record: seen.append(record["event"]))
    ada = await lost.session()
    await ada.load("notes")
    with caplog.at_level(logging.INFO):
        lost.double.lose()
        for _ in range(3):
            await ada.call("notes__add")
        await lost.found()
        await ada.call("notes__add")
    assert seen == ["store_lost", "store_back"]
    gone, back = [record.getMessage() for record in caplog.records if record.name == "pegboard"]
    assert "the server has gone away" in gone
    assert "records of calls are pending" in back


async def test_an_unmoved_store_is_not_read_by_a_call(lost: Lost) -> None:
    """P4: what was read stays until the change token moves."""
    ada = await lost.session()
    await ada.load("notes")
    for _ in range(2):  # the first one is the first use of the lease
        await ada.call("notes__add")
    lost.double.asked.clear()
    for _ in range(5):
        await ada.call("notes__add")
    assert set(lost.double.asked) <= {"change_token"}


@dataclass
class Outages:
    """What another process and the network do, and what a call may come to therefore."""

    lost: Lost
    ada: Session
    gone: bool = False
    waited: float = 0.0
    on: bool = True
    read: list[bool] = field(default_factory=lambda: [True])
    """What may have been read of the switch."""

    async def lose(self, _: bool) -> None:
        self.lost.double.lose()
        self.gone = True

    async def find(self, _: bool) -> None:
        if not self.lost.board.services.store_health.reachable:
            await self.lost.found()
            self.read.append(self.on)  # it was looked at: what is known to be others has to be read before it counts
            self.waited = 0.0
        self.lost.double.find()
        self.gone = False

    async def wait(self, _: bool) -> None:
        self.lost.clock.advance(20)
        self.waited += 20

    async def switch_here(self, value: bool) -> None:
        with suppress(StoreUnavailableError):
            await self.lost.board.permissions.set("helper", "notes", value=value)
            self.on = value
            self.read.append(value)

    async def switch_elsewhere(self, value: bool) -> None:
        await self.lost.real.set_switch("helper", "notes", value=value)
        self.on = value

    async def call(self, _: bool) -> None:
        if not self.gone:
            self.read, self.waited = [self.on], 0.0
        ran = self.lost.ran("add")
        try:
            status = (await self.ada.call("notes__add")).status
        except StoreUnavailableError:
            status = "store_unavailable"
        assert self.lost.ran("add") - ran == (status == "ok")
        if not self.gone:
            assert status == ("ok" if self.on else "not_found")
        if self.waited > GRACE or not all(self.read):
            assert status != "ok"
        elif self.read == [True]:
            assert status == "ok"


STEPS = ("lose", "find", "wait", "call", "switch_here", "switch_elsewhere")


@settings(max_examples=20)
@example(steps=[("lose", False), ("wait", False), ("call", False), ("find", False), ("lose", False), ("wait", False)])
@given(steps=st.lists(st.tuples(st.sampled_from(STEPS), st.booleans()), max_size=14))
async def test_a_call_runs_as_the_newest_switch_says_that_was_read_and_within_the_grace_alone(
    steps: list[tuple[str, bool]],
) -> None:
    """P4: whatever another process does meanwhile, and whenever the store is lost; nothing widens."""
    async with losing() as lost:
        ada = await lost.session()
        await ada.load("notes")
        await ada.call("notes__add")
        outages = Outages(lost, ada)
        for step, value in (*steps, ("call", True)):
            await getattr(outages, step)(value)
