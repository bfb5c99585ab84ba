"""What one user may is never shown to another and never runs for them: every adapter, every kind of source, at once."""

import asyncio
import os
import random
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from framework_drivers import Answer, Driver, Ran, call
from framework_world import DRIVERS

from pegboard import Host, Pegboard

INTERLEAVINGS = 1_000 if os.environ.get("PEGBOARD_LONG") else 60
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
USERS = [(agent, principal) for agent in ("keeper", "guest") for principal in ("ada", "bob")]
TOOLS = ("wipe", "fast__echo", "erase", "shred", "burn")
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


async def test_what_one_user_may_is_never_shown_to_or_run_for_another(board: Pegboard) -> None:
    """P3, P9: two agents, two principals; what each of them may does run."""
    choose, held = random.Random(36), 0
    for number in range(INTERLEAVINGS):
        users = choose.sample(USERS, 2)
        drivers = [choose.choice(DRIVERS) for _ in users]
        tools = [choose.choice(TOOLS) for _ in users]
        through = [driver.name != "loop" and choose.random() < 0.5 for driver in drivers]  # its list changes
        waits = [[choose.randrange(4) for _ in range(3)] for _ in users]
        session_id = f"s{choose.randrange(3)}"
        runs = zip(drivers, users, tools, through, waits, strict=True)
        done = await asyncio.gather(*(run(board, session_id, *each) for each in runs))
        for ran, driver, (agent, principal), tool in zip(done, drivers, users, tools, strict=True):
            where = number, driver.name, agent, principal, tool
            allowed = [one for one in TOOLS if may(one, agent, principal, driver.name)]
            for carried in ran.calls:
                shown = [one for one in TOOLS if one in carried.tools or one in carried.system]
                assert set(shown) <= set(allowed), (where, shown)
            result = ran.calls[-1].results[-1]
            expected = f"{tool} by {agent}/{principal}" if tool != "fast__echo" else f"{agent}/{principal}"
            assert (expected in result) == (tool in allowed), (where, result)
            held += tool in allowed
    for tool, by in sys.modules["doers"].RAN:
        agent, _, principal = by.partition("/")
        assert may(tool, agent, principal, "pydantic-ai"), (tool, by)
    assert INTERLEAVINGS / 2 < held < INTERLEAVINGS * 1.5


async def run(
    board: Pegboard, session_id: str, driver: Driver, user: tuple[str, str], tool: str, through: bool, waits: list[int]
) -> Ran:
    """Return what came of a run whose model loads what it can, and calls a tool, while another run is under way."""
    agent, principal = user
    host: dict[str, Any] = {"host": Host(delivery=("result",))} if through else {}
    session = await board.session(agent=agent, session_id=f"{session_id}{through}", principal=principal, **host)
    arguments = {"text" if tool == "fast__echo" else "by": f"{agent}/{principal}"}
    asked = call("call_tool", name=tool, arguments=arguments) if through else call(tool, **arguments)

    def later(answer: Answer, wait: int) -> Any:
        async def answered() -> Answer:
            for _ in range(wait):
                await asyncio.sleep(0)
            return answer

        return answered

    steps = [
        later(one, wait) for one, wait in zip((call("load_tools", names=["papers"]), asked, "done"), waits, strict=True)
    ]
    return await driver.talk(session, deps=principal).run("Go on.", *steps)
