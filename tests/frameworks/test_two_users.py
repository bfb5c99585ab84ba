"""What one user may is never shown to another and never runs for them: every adapter, every kind of source, at once."""

import asyncio
import random
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from framework_drivers import Answer, Driver, Ran, call
from framework_world import DRIVERS
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pegboard import Host, Pegboard
from pegboard.core.model.tools import joined_text
from pegboard.dialects.names import CALL

SERVER = str(Path(__file__).parents[1] / "servers" / "fast_server.py")
MODULE = '''
from agno.run import RunContext
from agno.tools import Toolkit
from langchain_core.tools import tool
from pydantic_ai import RunContext as PydanticContext
from pydantic_ai.toolsets import FunctionToolset

RAN = []


def ran(name, by):
    RAN.append((name, by))
    return f"{name} by {by}"


def wipe(by: str) -> str:
    """Wipe the disk."""
    return ran("wipe", by)


@tool
async def erase(by: str) -> str:
    """Erase the disk."""
    return ran("erase", by)


class Shredder(Toolkit):
    """A shredder."""

    def __init__(self, **more):
        super().__init__(name="shredder", tools=[self.shred], **more)

    def shred(self, by: str) -> str:
        """Shred the papers."""
        return ran("shred", by)


burners = FunctionToolset()


@burners.tool
def burn(ctx: PydanticContext[str], by: str) -> str:
    """Burn the papers."""
    return ran("burn", by)


burner = burners.filtered(lambda ctx, definition: ctx.deps == "ada")
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a user calls, whether through a meta-tool, and how often others go on before each of three steps."""

    tool: str
    through: bool
    waits: tuple[int, ...]


USERS = [(agent, principal) for agent in ("keeper", "guest") for principal in ("ada", "bob")]
TOOLS = ("wipe", "fast__echo", "erase", "shred", "burn")
WAITS = st.tuples(*3 * [st.integers(0, 3)])
ASKED = st.builds(Asked, tool=st.sampled_from(TOOLS), through=st.booleans(), waits=WAITS)
CONFIG: dict[str, Any] = {
    "store": "memory:",
    "servers": {"fast": {"command": sys.executable, "args": [SERVER, "stdio"]}},
    "plugins": {
        "disk": {"python": "doers:wipe"},
        "eraser": {"python": "doers:erase"},
        "shredder": {"python": "doers:Shredder"},
        "burner": {"python": "doers:burner"},
        "spare": {"python": "pegboard.quickstart.clock"},
    },
    "toolkits": {"papers": {"description": "What destroys papers.", "tools": ["shredder"]}},
    "defaults": {"dialect": "pegboard", "anticipate": False},
    "agents": {
        "keeper": {
            "tools": ["disk", "fast", "burner"],
            "allowed_toolkits": ["papers"],
            "discoverable": ["spare"],
            "initial_toolkits": ["papers"],
        },
        "guest": {"tools": ["fast", "eraser", "burner"], "allowed_toolkits": ["papers"], "discoverable": ["spare"]},
    },
}


def may(tool: str, agent: str, principal: str, driver: str) -> bool:
    """Return whether a user has a tool: by the agent, by a switch of the principal, or by the run's own context."""
    match tool:
        case "wipe":
            return agent == "keeper"
        case "erase":
            return agent == "guest"
        case "fast__echo":
            return principal == "ada"
        case "shred":
            return principal == "bob"
        case _:
            return principal == "ada" and driver == "pydantic-ai"


@pytest.fixture
async def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pegboard]:
    (tmp_path / "doers.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    async with Pegboard.open(CONFIG) as board:
        for agent in CONFIG["agents"]:
            await board.permissions.set(agent, "fast", False, principal="bob")
            await board.permissions.set(agent, "shredder", False, principal="ada")
        yield board


def rightly(asked: Asked, agent: str, principal: str, driver: str, seen: str) -> bool:
    """Return whether a call ran for its user, and nowhere else: what is seen is the text of its result."""
    by = f"{agent}/{principal}"
    expected = by if asked.tool == "fast__echo" else f"{asked.tool} by {by}"
    return (expected in seen) == may(asked.tool, agent, principal, driver)


def none_ran_for_another() -> bool:
    """Return whether every function ran for a user who may have it."""
    ran = ((tool, *by.split("/")) for tool, by in sys.modules["doers"].RAN)
    return all(may(tool, agent, principal, "pydantic-ai") for tool, agent, principal in ran)


async def test_what_one_user_may_is_never_shown_to_or_run_for_another_in_any_framework(board: Pegboard) -> None:
    """P3, P9: every user in every framework at once, twice: 300 pairs of runs of two users; what each may do runs."""
    choose, held = random.Random(36), 0
    for session_id in ("first", "second"):
        runs = [(driver, user) for user in USERS for driver in DRIVERS]
        choose.shuffle(runs)
        asked = [
            Asked(
                tool=choose.choice(TOOLS),
                through=driver.name != "loop" and choose.random() < 0.5,  # the list of the loop changes
                waits=tuple(choose.randrange(4) for _ in range(3)),
            )
            for driver, _ in runs
        ]
        done = await asyncio.gather(
            *(run(board, session_id, *each, one) for each, one in zip(runs, asked, strict=True))
        )
        for ran, (driver, (agent, principal)), one in zip(done, runs, asked, strict=True):
            allowed = [tool for tool in TOOLS if may(tool, agent, principal, driver.name)]
            for carried in ran.calls:
                shown = [tool for tool in TOOLS if tool in carried.tools or tool in carried.system]
                assert set(shown) <= set(allowed), (driver.name, agent, principal, shown)
            assert rightly(one, agent, principal, driver.name, ran.calls[-1].results[-1]), (driver.name, one)
            held += one.tool in allowed
    assert none_ran_for_another()
    assert 8 < held < 32


@settings(
    max_examples=120,
    phases=[Phase.generate],
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(asked=st.tuples(*len(USERS) * [ASKED]), session_id=st.sampled_from(["a", "b"]))
async def test_what_one_user_may_is_never_shown_to_or_run_for_another(
    board: Pegboard, asked: tuple[Asked, ...], session_id: str
) -> None:
    """P3, P9: 720 pairs of users at once who are shown tools, search, load and call."""
    used = zip(USERS, asked, strict=True)
    done = await asyncio.gather(*(use(board, session_id, *each) for each in used))
    for (agent, principal), one, (shown, result) in zip(USERS, asked, done, strict=True):
        allowed = {tool for tool in TOOLS if may(tool, agent, principal, "none")}
        assert {tool for tool in TOOLS if tool in shown} <= allowed, (agent, principal, shown)
        assert rightly(one, agent, principal, "none", result), (agent, principal, one, result)
    assert none_ran_for_another()


async def use(board: Pegboard, session_id: str, user: tuple[str, str], asked: Asked) -> tuple[str, str]:
    """Return what a user was shown by the session and what a call came to, while another user does the same."""
    agent, principal = user
    host: dict[str, Any] = {"host": Host(delivery=("result",))} if asked.through else {}
    session = await board.session(agent=agent, session_id=f"{session_id}{asked.through}", principal=principal, **host)
    shown: list[str] = []
    text = ""
    for wait, step in zip(asked.waits, ("search", "load", "call"), strict=True):
        for _ in range(wait):
            await asyncio.sleep(0)
        surface = await session.surface(message="Destroy what there is.")
        shown += [one.tool.wire for one in surface.tools] + [*surface.hints, surface.suffix, surface.policy]
        match step:
            case "search":
                found = await session.search("destroy papers, disks, or say it back")
                shown += [one.name for one in found.results if one.status != "unavailable"]
            case "load":
                shown.append(joined_text((await session.call("load_tools", {"names": ["papers"]})).result))
            case _:
                given = {"text" if asked.tool == "fast__echo" else "by": f"{agent}/{principal}"}
                called = {"name": asked.tool, "arguments": given}
                answer = await (session.call(CALL, called) if asked.through else session.call(asked.tool, given))
                text = joined_text(answer.result) if answer.status == "ok" else ""
    return " ".join(shown), text


async def run(board: Pegboard, session_id: str, driver: Driver, user: tuple[str, str], made: Asked) -> Ran:
    """Return what came of a run whose model loads what it can, and calls a tool, while another run is under way."""
    agent, principal = user
    host: dict[str, Any] = {"host": Host(delivery=("result",))} if made.through else {}
    session = await board.session(
        agent=agent, session_id=f"{session_id}{driver.name}{made.through}", principal=principal, **host
    )
    arguments = {"text" if made.tool == "fast__echo" else "by": f"{agent}/{principal}"}
    asked = call(CALL, name=made.tool, arguments=arguments) if made.through else call(made.tool, **arguments)

    def later(answer: Answer, wait: int) -> Any:
        async def answered() -> Answer:
            for _ in range(wait):
                await asyncio.sleep(0)
            return answer

        return answered

    steps = [
        later(one, wait)
        for one, wait in zip((call("load_tools", names=["papers"]), asked, "done"), made.waits, strict=True)
    ]
    return await driver.talk(session, deps=principal).run("Go on.", *steps)
