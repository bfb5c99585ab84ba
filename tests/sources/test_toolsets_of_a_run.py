"""Toolsets of pydantic-ai that ask each run what they have: what one run is given, no other run is shown or calls."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from pegboard import Pegboard, Session
from pegboard.frameworks.pydantic_ai import SessionTools

MODULE = '''
from dataclasses import replace
from pydantic_ai import RunContext
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, DynamicToolset, FunctionToolset, WrapperToolset

base = FunctionToolset()

@base.tool
def hello(ctx: RunContext[str]) -> str:
    """Say hello."""
    return f"hello {ctx.deps}"

@base.tool
async def wipe(ctx: RunContext[str]) -> str:
    """Wipe the disk."""
    return f"wiped by {ctx.deps}"

def for_admin(ctx, definition):
    return definition.name != "wipe" or ctx.deps == "admin"

async def prepare_all(ctx, definitions):
    return [one for one in definitions if for_admin(ctx, one)]

async def prepare_one(ctx, definition):
    return definition if ctx.deps == "admin" else None

own = FunctionToolset()
own.add_function(wipe, prepare=prepare_one)
own.add_function(hello)

class Own(WrapperToolset):
    """A wrapper that a program wrote itself."""

    async def get_tools(self, ctx):
        tools = await super().get_tools(ctx)
        return {name: tool for name, tool in tools.items() if name != "wipe" or ctx.deps != "bob"}

filtered = base.filtered(for_admin)
prepared = base.prepared(prepare_all)
marked = own
renamed = filtered.renamed({"erase": "wipe"})
prefixed = filtered.prefixed("disk")
combined = CombinedToolset([FunctionToolset(), filtered])
written = Own(base)
dynamic = CombinedToolset([base, DynamicToolset(lambda ctx: base)])
needy = base.filtered(lambda ctx, definition: ctx.deps.isalpha())
asking = base.approval_required(lambda ctx, definition, arguments: definition.name == "wipe").prefixed("a")

late = FunctionToolset()

@late.tool
def burn(ctx: RunContext[str]) -> str:
    """Burn it."""
    from pydantic_ai import ApprovalRequired
    if not ctx.tool_call_approved:
        raise ApprovalRequired
    return "burnt"
'''
RAN = {"admin": True, "bob": False}
KINDS = {
    "filtered": "wipe",
    "prepared": "wipe",
    "marked": "wipe",
    "renamed": "erase",
    "prefixed": "disk_wipe",
    "combined": "wipe",
    "written": "wipe",
}


def config(target: str, store: str = "memory:") -> dict[str, Any]:
    return {
        "store": store,
        "plugins": {"disk": {"python": f"disk_tools:{target}"}},
        "agents": {"a": {"tools": ["disk"], "dialect": "pegboard", "anticipate": False}},
    }


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "disk_tools.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)


async def run(session: Session, who: str, name: str) -> tuple[bool, str]:
    """Return whether a model of someone's run is shown a tool, and what it reads of a call of it."""
    listed: list[list[str]] = []

    async def model(_: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        listed.append([tool.name for tool in info.function_tools])
        await asyncio.sleep(0)
        return ModelResponse(parts=[TextPart("done")] if len(listed) > 1 else [ToolCallPart(name, {})])

    agent = Agent(FunctionModel(model), deps_type=str, capabilities=[SessionTools(session)])
    done = await agent.run("Go on.", deps=who)
    (answer,) = (part for message in done.all_messages() for part in message.parts if isinstance(part, ToolReturnPart))
    return name in listed[0], answer.model_response_str()


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("order", [("admin", "bob"), ("bob", "admin")], ids="-".join)
async def test_a_run_is_given_what_its_own_context_decides(target: str, order: tuple[str, ...]) -> None:
    """P3: at listing and at call, whoever came first; a wrapper of one's own that asks the run is asked too."""
    name = KINDS[target]
    async with Pegboard.open(config(target)) as board:
        for who in order:
            session = await board.session(agent="a", session_id=f"s-{who}", principal=who)
            shown, answer = await run(session, who, name)
            assert (shown, answer == f"wiped by {who}") == (RAN[who], RAN[who])
            assert (await run(session, who, name.replace("wipe", "hello").replace("erase", "hello")))[0]


async def test_two_runs_at_once_are_each_given_their_own() -> None:
    """G9: in one process, also over one session object."""
    async with Pegboard.open(config("filtered")) as board:
        session = await board.session(agent="a", session_id="s", principal="both")
        whos = ["admin", "bob"] * 4
        seen = await asyncio.gather(*(run(session, who, "wipe") for who in whos))
    assert [(shown, answer == f"wiped by {who}") for who, (shown, answer) in zip(whos, seen, strict=True)] == [
        (RAN[who], RAN[who]) for who in whos
    ]


SCRIPT = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from test_toolsets_of_a_run import Pegboard, config, run

async def main():
    async with Pegboard.open(config("filtered", "sqlite:///state.db")) as board:
        print(await run(await board.session(agent="a", session_id="s", principal=sys.argv[2]), sys.argv[2], "wipe"))

asyncio.run(main())
"""


def test_what_one_run_saw_is_in_no_other_process() -> None:
    """X1: the stored manifest is the same whoever ran first."""
    seen = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT, str(Path(__file__).parent), who],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for who in ("admin", "bob")
    ]
    assert [("wiped by" in text, text.startswith("(True")) for text in seen] == [(True, True), (False, False)]


async def test_without_a_run_what_a_run_decides_is_unavailable() -> None:
    """P6: with the reason, though a run was given it before."""
    async with Pegboard.open(config("filtered")) as board:
        session = await board.session(agent="a", session_id="s", principal="admin")
        assert (await run(session, "admin", "wipe"))[0]
        assert (await session.surface()).find("wipe") is None
        answer = await session.call("wipe", {})
        assert answer.status == "tool_unavailable"
        assert "decided by each run of pydantic-ai" in answer.message


async def test_a_toolset_that_is_made_for_each_run_says_where_it_belongs() -> None:
    """P6: no tool of it is known before a run, so that nothing of it can be listed."""
    async with Pegboard.open(config("dynamic")) as board:
        surface = await (await board.session(agent="a", session_id="s", principal="ada")).surface()
    assert surface.find("hello") is None
    assert [(one.plugin, "Agent(toolsets=[...])" in one.reason) for one in surface.missing] == [("disk", True)]


async def test_a_filter_that_needs_a_run_is_not_asked_without_one() -> None:
    """P6: what it would raise is no one's error."""
    async with Pegboard.open(config("needy")) as board:
        session = await board.session(agent="a", session_id="s", principal="ada")
        assert (await session.surface()).find("hello") is None
        assert "decided by each run" in (await session.call("hello", {})).message
        assert await run(session, "ada", "wipe") == (True, "wiped by ada")


async def test_a_call_that_its_toolset_asks_about_waits_for_a_person() -> None:
    """A1: the toolset's own rule, by name and arguments, is asked before each call; others run."""
    async with Pegboard.open(config("asking")) as board:
        session = await board.session(agent="a", session_id="s", principal="ada")
        assert (await session.call("a_hello", {})).status == "ok"
        waits = await session.call("a_wipe", {})
        assert waits.status == "needs_approval"
        assert waits.approval is not None
        await session.approvals.allow(waits.approval.id, by="grace")
        assert (await session.resume(waits.approval.id)).status == "ok"


async def test_a_tool_that_asks_in_its_own_code_does_not_run_unasked() -> None:
    """T13: no one has approved the call; the answer says how to mark the tool."""
    async with Pegboard.open(config("late")) as board:
        session = await board.session(agent="a", session_id="s", principal="ada")
        answer = await session.call("burn", {})
    assert (answer.is_error, "requires_approval=True" in answer.message) == (True, True)
