"""What Agno decides by a tool's name sees that tool, called directly or through `call_tool`, in each kind of run."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.run.agent import RunOutput
from agno_driver import ScriptedModel
from framework_drivers import Call, Script, call

from pegboard import Host, Pegboard, SyncSession
from pegboard.frameworks.agno import equip

pytestmark = pytest.mark.cover(1)

CONFIG: dict[str, Any] = {
    "store": "memory:",
    "plugins": {"purse": {"python": "coins:Purse"}},
    "toolkits": {"purse": {"description": "A purse.", "tools": ["purse"]}},
    "agents": {"a": {"allowed_toolkits": ["purse"], "dialect": "pegboard", "anticipate": False}},
}
MODULE = '''
from agno.tools import Toolkit, tool

PAID = []


class Purse(Toolkit):
    """A purse."""

    def __init__(self, **more):
        super().__init__(name="purse", tools=[self.pay, self.owe, self.close], **more)

    def pay(self, amount: int) -> str:
        """Pay an amount."""
        PAID.append(amount)
        return f"{amount} is paid"

    @tool(requires_confirmation=True)
    def owe(self, amount: int) -> str:
        """Owe an amount."""
        PAID.append(-amount)
        return f"{amount} is owed"

    @tool(stop_after_tool_call=True)
    def close(self, word: str) -> str:
        """Close the purse."""
        return f"closed with {word}"
'''
LOAD = call("load_tools", names=["purse"])
WAYS = ("run", "arun", "run_streamed", "arun_streamed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Purse:
    """A session that has a purse, how its model calls, and how a run is made."""

    session: SyncSession
    through: bool
    way: str
    sent: list[list[Any]] = field(default_factory=list)
    chosen: list[tuple[Any, list[str]]] = field(default_factory=list)

    def call(self, tool: str = "pay", /, **arguments: Any) -> Call:
        return call("call_tool", name=tool, arguments=arguments) if self.through else call(tool, **arguments)

    def agent(self, *steps: Any, **options: Any) -> Any:
        purse = self

        class Watched(ScriptedModel):
            async def ainvoke(self, messages: Any, *args: Any, **request: Any) -> Any:
                purse.sent.append([one.to_dict() for one in messages])
                names = [one["function"]["name"] for one in request.get("tools") or ()]
                purse.chosen.append((request.get("tool_choice"), names))
                return await super().ainvoke(messages, *args, **request)

        model = Watched(script=Script(*steps))
        return equip(Agent(model=model, db=InMemoryDb(), telemetry=False, **options), self.session)

    def run(self, agent: Any) -> RunOutput:
        if self.way == "run":
            return agent.run("Pay.", session_id="s")
        if self.way == "arun":
            return asyncio.run(agent.arun("Pay.", session_id="s"))
        if self.way == "run_streamed":
            return [*agent.run("Pay.", session_id="s", stream=True, yield_run_output=True)][-1]
        return asyncio.run(last(agent.arun("Pay.", session_id="s", stream=True, yield_run_output=True)))

    def go_on(self, agent: Any, run: RunOutput) -> RunOutput:
        given: dict[str, Any] = {"run_id": run.run_id, "session_id": "s", "requirements": run.requirements}
        if self.way == "run":
            return agent.continue_run(**given)
        if self.way == "arun":
            return asyncio.run(agent.acontinue_run(**given))
        if self.way == "run_streamed":
            return [*agent.continue_run(**given, stream=True, yield_run_output=True)][-1]
        return asyncio.run(last(agent.acontinue_run(**given, stream=True, yield_run_output=True)))


async def last(events: Any) -> Any:
    return [event async for event in events][-1]


def paid() -> list[int]:
    import sys

    return list(sys.modules["coins"].PAID) if "coins" in sys.modules else []


@pytest.fixture(params=[False, True], ids=["direct", "through"])
def through(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture(params=WAYS)
def purse(
    request: pytest.FixtureRequest, through: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Purse]:
    (tmp_path / "coins.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    given: dict[str, Any] = {"host": Host(delivery=("result",))} if through else {}
    with Pegboard.open_sync(CONFIG) as board:
        session = board.session(agent="a", session_id="s", principal="ada", **given)
        yield Purse(session=session, through=through, way=request.param)


def test_a_hook_decides_about_the_tool(purse: Purse) -> None:
    """P3: it refuses, and it changes the arguments; what the run shows of its calls names the tool."""
    seen: list[str] = []

    def guard(function_name: str, function_call: Any, arguments: dict[str, Any]) -> Any:
        seen.append(function_name)
        if arguments.get("amount", 0) > 5:
            return "Too much."
        if "amount" in arguments:
            arguments["amount"] = 4
        return function_call(**arguments)

    async def awaited_guard(function_name: str, function_call: Any, arguments: dict[str, Any]) -> Any:
        answer = guard(function_name, function_call, arguments)
        return await answer if asyncio.iscoroutine(answer) else answer

    steps = (LOAD, purse.call(amount=9), purse.call(amount=2), "done")
    done = purse.run(purse.agent(*steps, tool_hooks=[awaited_guard if purse.way.startswith("a") else guard]))
    assert (paid(), seen, str(done.content).strip()) == ([4], ["load_tools", "pay", "pay"], "done")
    assert [one.tool_name for one in done.tools or ()] == seen


@pytest.mark.cover(2)
@pytest.mark.parametrize("allow", [True, False], ids=["confirmed", "rejected"])
def test_a_person_decides_about_the_tool(purse: Purse, allow: bool) -> None:
    """T13: it waits by its own name and its own arguments, and goes on as it was decided."""
    agent = purse.agent(LOAD, purse.call("owe", amount=3), "done")
    run = purse.run(agent)
    [requirement] = run.active_requirements
    waiting: Any = requirement.tool_execution
    assert (waiting.tool_name, waiting.tool_args, paid()) == ("owe", {"amount": 3}, [])

    requirement.confirm() if allow else requirement.reject("Not today.")
    done = purse.go_on(agent, run)
    assert (paid(), str(done.content).strip()) == ([-3] if allow else [], "done")


def test_a_tool_ends_the_run(purse: Purse) -> None:
    """T13: with its result, and the model is not asked again."""
    done = purse.run(purse.agent(LOAD, purse.call("close", word="sesame"), "not reached"))
    assert (str(done.content).strip(), len(purse.sent)) == ("closed with sesame", 2)


def test_a_limit_counts_the_tool(purse: Purse) -> None:
    """P3: loads count too; the model reads that no more is to be called."""
    done = purse.run(purse.agent(LOAD, purse.call(amount=1), purse.call(amount=2), "done", tool_call_limit=2))
    assert (paid(), str(done.content).strip()) == ([1], "done")


@pytest.mark.parametrize("form", ["function", "name"])
def test_a_choice_of_the_tool_lists_it(purse: Purse, form: str) -> None:
    """P3: the provider takes no choice of a tool that it has no definition of."""
    choice: Any = {"type": "function", "function": {"name": "pay"}} if form == "function" else "pay"
    purse.run(purse.agent(call("pay", amount=3), "done", tool_choice=choice))
    assert [given for given, _ in purse.chosen] == [choice, choice]
    assert ([names.count("pay") for _, names in purse.chosen], paid()) == ([1, 1], [3])


def test_the_model_reads_what_it_wrote(purse: Purse) -> None:
    """D4: byte for byte, and its results stand under the name that it called."""
    written = purse.call(amount=3)
    purse.run(purse.agent(LOAD, written, "done"))
    functions = [one["function"] for message in purse.sent[-1] for one in message.get("tool_calls") or ()]
    assert functions[1] == {"name": written.name, "arguments": json.dumps(dict(written.arguments))}
    results = [message for message in purse.sent[-1] if message["role"] == "tool"]
    said, *_ = results[1]["content"].splitlines()  # a note of what is loaded now may follow
    assert (said, results[1].get("tool_name", written.name)) == ("3 is paid", written.name)
