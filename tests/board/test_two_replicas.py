"""Two replicas of one store are one process to a session, whatever comes to which of them (G14)."""

import asyncio
import contextlib
import itertools
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.clients import until
from pegboard import Pegboard, Session
from pegboard.core.model.delivery import GATEWAY, GATEWAY_HANDSHAKE
from pegboard.core.state.call_plans import CallAnswer
from pegboard.core.state.commands import Outcome
from pegboard.errors import PegboardError
from pegboard.ports import SessionKey, Store
from pegboard.stores.sql import MemoryStore, PostgresStore, SqliteStore
from pegboard.testing import Adapters, FakeSource

AGENTS: dict[str, Any] = {
    "writer": {
        "tools": ["notes"], "allowed_toolkits": ["devops", "mixed"], "initial_toolkits": ["mixed"],
        "discoverable": ["*"], "budget": {"tools": 12},
    },
    "coder": {"tools": ["notes", "bank"], "allowed_toolkits": ["devops"], "discoverable": ["*"], "dialect": "pegboard"},
}  # fmt: skip
CONFIG: dict[str, Any] = {
    "plugins": {
        "notes": {"python": "notes"},
        "git": {"python": "git"},
        "docker": {"python": "docker"},
        "bank": {"python": "bank", "approve": {"pay": "always"}},
    },
    "toolkits": {"devops": {"tools": ["git", "docker"]}, "mixed": {"tools": ["git_log"]}},
    "agents": AGENTS,
}
NAMES = ("notes", "git", "docker", "bank", "devops", "mixed", "git_log", "git_diff", "run", "ps", "pay", "nowhere")
LOADOUTS = (None, "minimal", "developer", "nowhere")
PRINCIPALS = ("ada", "bob")
CHANGING = re.compile(r"\b[0-9a-f]{12}\b")
"""What differs from run to run: ids of approvals."""


PROBE = SessionKey(principal="nobody", agent="writer", session="probe")
PROBES = itertools.count()


class Load(NamedTuple):
    """Load names."""

    names: tuple[str, ...]
    keep: str | None


class Unload(NamedTuple):
    """Unload names."""

    names: tuple[str, ...]


class Fallback(NamedTuple):
    """Load everything for a turn."""


class UseLoadout(NamedTuple):
    """Narrow the session."""

    name: str | None


class EndTurn(NamedTuple):
    """End the turn, or begin that of a number."""

    turn: int | None


class MarkTurn(NamedTuple):
    """Begin the turn of a label."""

    label: str


class Call(NamedTuple):
    """Call a tool or a meta-tool."""

    name: str
    arguments: dict[str, Any]


class Switch(NamedTuple):
    """Set a switch of the agent, for everyone."""

    name: str
    value: bool | None


class Answer(NamedTuple):
    """Let an operator answer the newest call that waits, of whichever session."""

    allows: bool


class Resume(NamedTuple):
    """Go on with the newest call that waited."""


Command = Load | Unload | Fallback | UseLoadout | EndTurn | MarkTurn | Call | Switch | Answer | Resume


@dataclass
class Step:
    """A command, whose session it is of, and at which of the replicas."""

    command: Command
    principal: str
    agent: str
    at: int


SOME = st.lists(st.sampled_from(NAMES), min_size=1, max_size=2).map(tuple)
CALLS = st.one_of(
    st.builds(Call, st.sampled_from(["git_log", "git_diff", "run", "ps", "nowhere", "note"]), st.just({"text": "x"})),
    st.builds(Call, st.just("pay"), st.fixed_dictionaries({"text": st.sampled_from("ab")})),
    st.builds(Call, st.just("note"), st.just({"wrong": 1})),
    st.builds(Call, st.just("load_tools"), st.fixed_dictionaries({"names": SOME.map(list)})),
    st.builds(Call, st.just("unload_tools"), st.fixed_dictionaries({"names": SOME.map(list)})),
    st.builds(
        lambda name: Call("call_tool", {"name": name, "arguments": {"text": "y"}}),
        st.sampled_from(["git_log", "run", "pay", "nowhere"]),
    ),
)
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.builds(Load, SOME, st.sampled_from([None, "turn", "idle", "session"])),
    st.builds(Unload, SOME),
    st.builds(Fallback),
    st.builds(UseLoadout, st.sampled_from(LOADOUTS)),
    st.builds(EndTurn, st.sampled_from([None, None, 2, 5])),
    st.builds(MarkTurn, st.sampled_from("abc")),
    CALLS,
    CALLS,
    st.builds(Switch, st.sampled_from(["git", "docker", "devops", "run"]), st.sampled_from([True, False, None])),
    st.builds(Answer, st.booleans()),
    st.builds(Resume),
)
REPLICAS = st.sampled_from([0, 1])
ONE = st.builds(Step, COMMANDS, st.sampled_from(PRINCIPALS), st.sampled_from(list(AGENTS)), REPLICAS)


@st.composite
def approved_call(draw: st.DrawFn) -> list[Step]:
    """Return a call that a person is asked about, their answer, and what is tried with it; each at any replica."""
    again = st.one_of(st.just(Call("pay", {"text": "a"})), st.just(Resume()))
    commands = Call("pay", {"text": "a"}), draw(st.builds(Answer, st.booleans())), draw(again), draw(again)
    principal = draw(st.sampled_from(PRINCIPALS))
    return [Step(command, principal, "coder", draw(REPLICAS)) for command in commands]


STEPS = st.lists(st.one_of(ONE.map(lambda one: [one]), ONE.map(lambda one: [one]), approved_call()), max_size=14).map(
    lambda parts: list(itertools.chain(*parts))
)


@dataclass
class World:
    """Some boards on one store, and what their tools ran."""

    boards: Sequence[Pegboard]
    ran: list[str] = field(default_factory=list)

    async def settle(self) -> None:
        """Return once every board has heard of what any of them has stored: changes are heard of in their order."""
        first, *others = (board.services.store for board in self.boards)
        for told, hearing in itertools.permutations([first, *others], 2):
            version: int | None = None
            while version is None:  # what another board has saved was not heard of here yet
                found = await told.load(PROBE)
                version = await told.save(PROBE, str(next(PROBES)), expected=found.version if found else 0)

            async def heard(hearing: Store = hearing, version: int = version) -> bool:
                found = await hearing.load(PROBE)
                return found is not None and found.version >= version

            await until(heard)


@dataclass
class Conversation:
    """The sessions of one example: an object of each for every board; ``waiting`` has the newest approval of each."""

    world: World
    name: str
    sessions: dict[tuple[str, str, int], Session] = field(default_factory=dict)
    waiting: dict[tuple[str, str], str] = field(default_factory=dict)

    async def at(self, step: Step) -> Session:
        board = step.at % len(self.world.boards)
        key = step.principal, step.agent, board
        if key not in self.sessions:
            host = GATEWAY if step.agent == "writer" else GATEWAY_HANDSHAKE
            self.sessions[key] = await self.world.boards[board].session(
                agent=step.agent, principal=step.principal, session_id=self.name, host=host
            )
        return self.sessions[key]

    async def do(self, step: Step) -> Any:
        """Return what comes of a step, and what the session is then, without what differs from run to run."""
        session = await self.at(step)
        try:
            outcome = _plain(await self._outcome(session, step))
        except PegboardError as error:
            outcome = error.code
        snapshot = await session.snapshot()
        tools = [one.tool.wire for one in (await session.surface()).tools]
        return outcome, snapshot.state, tools, sorted(self.world.ran)

    async def _outcome(self, session: Session, step: Step) -> Any:
        board = self.world.boards[step.at % len(self.world.boards)]
        key = step.principal, step.agent
        match step.command:
            case Load(names, keep):
                return await session.load(*names, keep=keep)
            case Unload(names):
                return await session.unload(*names)
            case Fallback():
                return await session.fallback()
            case UseLoadout(name):
                return await session.use_loadout(name)
            case EndTurn(turn):
                return await session.end_turn(turn=turn)
            case MarkTurn(label):
                return await session.mark_turn(label)
            case Call(name, arguments):
                answer = await session.call(name, arguments)
                if answer.approval is not None:
                    self.waiting.pop(key, None)
                    self.waiting[key] = answer.approval.id
                return answer
            case Switch(name, value):
                return await board.permissions.set(step.agent, name, value, by="operator")
            case Resume():
                return await session.resume(self.waiting[key]) if key in self.waiting else None
            case Answer(allows):
                return await self._answered(board, allows=allows)

    async def _answered(self, board: Pegboard, *, allows: bool) -> str | None:
        if not self.waiting:
            return None
        newest = list(self.waiting.values())[-1]
        if allows:
            return (await board.approvals.allow(newest, by="operator")).status
        return (await board.approvals.refuse(newest, by="operator", reason="no")).status


def _plain(outcome: Any) -> Any:
    """Return what someone reads of an outcome."""
    match outcome:
        case CallAnswer():
            text = "".join(block.get("text", "") for block in outcome.result.content)
            return outcome.status, CHANGING.sub("…", text), outcome.result.is_error
        case Outcome():
            return outcome
        case _:
            return outcome


def plugins(ran: list[str]) -> dict[str, object]:
    """Return plugins whose tools note that they ran."""

    def tool(name: str) -> Any:
        def run(text: str) -> str:
            ran.append(f"{name} {text}")
            return f"{name} did {text}"

        run.__name__ = name
        return run

    named = {"notes": ["note"], "git": ["git_log", "git_diff"], "docker": ["run", "ps"], "bank": ["pay"]}
    return {plugin: [tool(name) for name in names] for plugin, names in named.items()}


class Worlds(NamedTuple):
    """A process that is alone, and two replicas; ``runner`` has the loop of all of them.

    ``examples`` is how many conversations are held: each is a hundred statements of SQL.
    """

    alone: World
    replicas: World
    runner: asyncio.Runner
    examples: int


@contextlib.asynccontextmanager
async def opened(*stores: Store) -> AsyncIterator[World]:
    world = World([])
    async with contextlib.AsyncExitStack() as stack:
        adapters = [Adapters(store=store, sources=[FakeSource(plugins(world.ran))]) for store in stores]
        world.boards = [
            await stack.enter_async_context(Pegboard.open(CONFIG | {"store": "memory:"}, adapters=own))
            for own in adapters
        ]
        for board, agent in itertools.product(world.boards, AGENTS):  # a process that has seen no plugin lists none
            await (await board.session(agent=agent)).surface()
        yield world


@pytest.fixture(params=["sqlite", "postgres"])
def worlds(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Worlds]:
    """Open a board with a store of its own, and two on one store."""
    if request.param == "sqlite":
        both: list[Store] = [SqliteStore(tmp_path / "state.db") for _ in range(2)]
        examples = 30
    else:
        address = request.getfixturevalue("postgres").address()
        both = [PostgresStore(address) for _ in range(2)]
        examples = 10
    with asyncio.Runner() as runner:
        alone, replicas = opened(MemoryStore()), opened(*both)
        yield Worlds(runner.run(alone.__aenter__()), runner.run(replicas.__aenter__()), runner, examples)
        for context in (replicas, alone):
            runner.run(context.__aexit__(None, None, None))


EXAMPLES = itertools.count()


async def compare(worlds: Worlds, steps: list[Step]) -> None:
    name = f"s{next(EXAMPLES)}"
    alone, both = Conversation(worlds.alone, name), Conversation(worlds.replicas, name)
    try:
        for step in steps:
            assert await both.do(step) == await alone.do(step), step
            await worlds.replicas.settle()
    finally:
        for world in (worlds.alone, worlds.replicas):
            world.ran.clear()
            for agent, switch in itertools.product(AGENTS, ("git", "docker", "devops", "run")):
                with contextlib.suppress(PegboardError):
                    await world.boards[0].permissions.set(agent, switch, None, by="operator")
        await worlds.replicas.settle()


def test_what_comes_to_which_replica_makes_no_difference(worlds: Worlds) -> None:
    """G14, S1, S2, P4, A2: over every command of a session, of two principals and two agents."""

    @settings(max_examples=worlds.examples)
    @given(steps=STEPS)
    def holds(steps: list[Step]) -> None:
        worlds.runner.run(compare(worlds, steps))

    holds()
