"""What pydantic-ai decides by a tool's name counts for a session's tool, called directly or through `call_tool`."""

import asyncio
import json
from collections.abc import AsyncIterable, AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import pytest
from framework_drivers import Call, call
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.capabilities import AbstractCapability, Hooks
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.toolsets import AbstractToolset, RenamedToolset
from pydantic_ai.usage import UsageLimits

from pegboard import Host, Pegboard
from pegboard.frameworks.pydantic_ai import SessionTools

pytestmark = pytest.mark.cover(1)

MODULE = '''
PAID = []


def pay(amount: int) -> str:
    """Pay an amount."""
    PAID.append(amount)
    return f"{amount} is paid"


def lend(amount: int) -> str:
    """Lend an amount."""
    PAID.append(-amount)
    return f"{amount} is lent"
'''
CONFIG: dict[str, Any] = {
    "store": "memory:",
    "plugins": {"purse": {"python": "purse_of_pydantic", "approve": {"lend": "always"}}},
    "toolkits": {"purse": {"description": "A purse.", "tools": ["purse"]}},
    "agents": {"a": {"allowed_toolkits": ["purse"], "dialect": "pegboard", "anticipate": False}},
}
LOAD = call("load_tools", names=["purse"])
Way = Literal["whole", "streamed", "handled", "blocking"]
WAYS: tuple[Way, ...] = get_args(Way)


class Purse:
    """A session, what was paid in it, and what its model reads."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.read: list[list[ModelMessage]] = []

    @property
    def paid(self) -> list[int]:
        import sys

        return list(sys.modules["purse_of_pydantic"].PAID) if "purse_of_pydantic" in sys.modules else []

    def agent(self, *steps: Call | str, capabilities: list[Any], first: bool = True) -> Agent[Any, Any]:
        """Return an agent whose model makes these steps, with the session's tools before or behind others."""
        left = list(steps)

        def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
            self.read.append(messages)
            step = left.pop(0)
            part = TextPart(step) if isinstance(step, str) else ToolCallPart(step.name, json.dumps(step.arguments))
            return ModelResponse(parts=[part])

        async def stream(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
            self.read.append(messages)
            step = left.pop(0)
            if isinstance(step, str):
                yield step
            else:
                for piece in (DeltaToolCall(name=step.name), *pieces_of(json.dumps(step.arguments))):
                    yield {0: piece}

        own = SessionTools(self.session)
        return Agent(
            FunctionModel(answer, stream_function=stream),
            output_type=[str, DeferredToolRequests],
            deps_type=object,
            capabilities=[own, *capabilities] if first else [*capabilities, own],
        )

    def calls_read(self) -> list[tuple[str, Any]]:
        """Return the calls of the newest request, as the model reads them."""
        responses = [one for one in self.read[-1] if isinstance(one, ModelResponse)]
        return [(part.tool_name, part.args) for one in responses for part in one.tool_calls]


def pieces_of(text: str) -> list[DeltaToolCall]:
    return [DeltaToolCall(json_args=text[n : n + 7]) for n in range(0, len(text), 7)]


@pytest.fixture
async def purse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: Any) -> AsyncIterator[Purse]:
    (tmp_path / "purse_of_pydantic.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    given: Any = {"agent": "a", "session_id": "s", "host": Host(delivery=("result",))}
    if "way" in request.fixturenames and request.getfixturevalue("way") == "blocking":
        with Pegboard.open_sync(CONFIG) as blocking:
            yield Purse(blocking.session(**given))
    else:
        async with Pegboard.open(CONFIG) as board:
            yield Purse(await board.session(**given))


@pytest.fixture(params=["direct", "through"])
def through(request: pytest.FixtureRequest) -> bool:
    return request.param == "through"


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    return request.param


@pytest.fixture(params=[True, False], ids=["first", "behind"])
def first(request: pytest.FixtureRequest) -> bool:
    return request.param


def of(tool: str, through: bool, amount: Any = 1) -> Call:
    arguments = {"amount": amount}
    return call("call_tool", name=tool, arguments=arguments) if through else call(tool, **arguments)


@dataclass
class Done:
    """What a run came to."""

    output: Any
    messages: list[ModelMessage]

    def results(self) -> list[str]:
        parts = [part for message in self.messages for part in message.parts]
        return [part.model_response_str() for part in parts if part.part_kind == "tool-return"]

    def calls(self) -> list[str]:
        return [part.tool_name for one in self.messages if isinstance(one, ModelResponse) for part in one.tool_calls]


async def run(agent: Agent[Any, Any], way: Way, message: str | None = "Pay.", **given: Any) -> Done:
    if way == "whole":
        done = await agent.run(message, **given)
        return Done(done.output, done.all_messages())
    if way == "handled":

        async def handles(_: Any, events: AsyncIterable[Any]) -> None:
            parts = [repr(event) async for event in events if event.event_kind.startswith("part_")]
            assert not [part for part in parts if "call_tool" in part]

        done = await agent.run(message, event_stream_handler=handles, **given)
        return Done(done.output, done.all_messages())
    if way == "blocking":
        done = await asyncio.to_thread(agent.run_sync, message, **given)
        return Done(done.output, done.all_messages())
    async with agent.run_stream(message, **given) as result:
        return Done(await result.get_output(), result.all_messages())


class Wraps(AbstractCapability[Any]):
    """What a host wraps all tools of its agent in."""

    def __init__(self, wrap: Callable[[AbstractToolset[Any]], AbstractToolset[Any]]) -> None:
        self._wrap = wrap

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return self._wrap(toolset)


def costly(_: Any, definition: Any, arguments: dict[str, Any]) -> bool:
    return definition.name == "pay" and arguments["amount"] > 5


@pytest.mark.cover(2)
async def test_a_person_is_asked_by_the_host(purse: Purse, through: bool, way: Way, first: bool) -> None:
    """A1: by the arguments that the tool gets; a cheaper call runs at once, and what a person changes counts."""
    asks = Wraps(lambda tools: tools.approval_required(costly))
    agent = purse.agent(LOAD, of("pay", through, 3), of("pay", through, 9), "done", capabilities=[asks], first=first)
    asked = await run(agent, way)
    [waiting] = asked.output.approvals
    assert (waiting.tool_name, waiting.args_as_dict(), purse.paid) == ("pay", {"amount": 9}, [3])

    approved = ToolApproved(override_args={"amount": 7})
    results = DeferredToolResults(approvals={waiting.tool_call_id: approved})
    done = await run(agent, way, None, message_history=asked.messages, deferred_tool_results=results)
    assert (done.output, purse.paid) == ("done", [3, 7])


async def test_a_person_who_denies_is_heard(purse: Purse, through: bool, way: Way) -> None:
    """A3: the host's own question, and the session's."""
    asks = Wraps(lambda tools: tools.approval_required(costly))
    for tool in ("pay", "lend"):
        agent = purse.agent(LOAD, of(tool, through, 9), "done", capabilities=[asks])
        asked = await run(agent, way)
        [waiting] = asked.output.approvals
        results = DeferredToolResults(approvals={waiting.tool_call_id: ToolDenied("Not today.")})
        done = await run(agent, way, None, message_history=asked.messages, deferred_tool_results=results)
        assert (waiting.tool_name, done.results()[-1], purse.paid) == (tool, "Not today.", [])


async def test_the_session_asks_a_person(purse: Purse, through: bool, way: Way) -> None:
    """A1, D4: the request names the tool, and the model reads byte for byte what it wrote."""
    agent = purse.agent(LOAD, of("lend", through, 3), "done", capabilities=[])
    asked = await run(agent, way)
    [waiting] = asked.output.approvals
    assert (waiting.tool_name, waiting.args_as_dict(), purse.paid) == ("lend", {"amount": 3}, [])

    results = DeferredToolResults(approvals={waiting.tool_call_id: True})
    done = await run(agent, way, None, message_history=asked.messages, deferred_tool_results=results)
    written = of("lend", through, 3)
    assert (done.output, purse.paid) == ("done", [-3])
    assert purse.calls_read()[-1] == (written.name, json.dumps(written.arguments))
    assert done.calls() == ["load_tools", "lend"]


@pytest.mark.parametrize("how", ["filtered", "prepared"])
async def test_a_tool_that_the_host_takes_away_does_not_run(
    purse: Purse, how: str, through: bool, way: Way, first: bool
) -> None:
    """P3: not by another name either; others do."""

    async def prepare(_: Any, definitions: list[Any]) -> list[Any]:
        return [one for one in definitions if one.name != "pay"]

    takes = {
        "filtered": Wraps(lambda tools: tools.filtered(lambda ctx, definition: definition.name != "pay")),
        "prepared": Wraps(lambda tools: tools.prepared(prepare)),
    }[how]
    agent = purse.agent(LOAD, of("pay", through, 3), "done", capabilities=[takes], first=first)
    done = await run(agent, way)
    assert (done.output, purse.paid) == ("done", [])


async def test_a_tool_that_the_host_renames_has_its_name_for_hooks(
    purse: Purse, through: bool, way: Way, first: bool
) -> None:
    """P3: the model is told the session's name with a load and calls it so; hooks see the host's."""
    seen: list[str] = []

    async def before(ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        seen.append(call.tool_name)
        return args

    renames = Wraps(lambda tools: RenamedToolset(tools, {"send": "pay"}))
    hooks = Hooks(before_tool_execute=before)
    agent = purse.agent(LOAD, of("pay", through, 3), "done", capabilities=[renames, hooks], first=first)
    done = await run(agent, way)
    assert (done.output, purse.paid, seen) == ("done", [3], ["load_tools", "send"])
    written = of("pay", through, 3)
    assert purse.calls_read()[-1] == (written.name, json.dumps(written.arguments))


@pytest.mark.parametrize("how", ["renamed", "prefixed"])
async def test_a_tool_in_the_list_is_called_by_the_name_that_the_host_gives_it(
    purse: Purse, how: str, way: Way, first: bool
) -> None:
    """P3: a meta-tool too."""
    wraps = {
        "renamed": Wraps(lambda tools: RenamedToolset(tools, {"my_load_tools": "load_tools"})),
        "prefixed": Wraps(lambda tools: tools.prefixed("my")),
    }[how]
    load = call("my_load_tools", names=["purse"])
    done = await run(purse.agent(load, "done", capabilities=[wraps], first=first), way)
    assert (done.output, done.calls(), "pay" in done.results()[0]) == ("done", ["my_load_tools"], True)


async def test_a_limit_counts_a_call_as_one(purse: Purse, through: bool, way: Way) -> None:
    """P3: the call that is over it does not run."""
    agent = purse.agent(LOAD, of("pay", through, 1), of("pay", through, 2), "not reached", capabilities=[])
    with pytest.raises(UsageLimitExceeded, match="tool_calls_limit"):
        await run(agent, way, usage_limits=UsageLimits(tool_calls_limit=2))
    assert purse.paid == [1]


async def test_hooks_see_the_tool_and_may_change_or_refuse_its_call(
    purse: Purse, through: bool, way: Way, first: bool
) -> None:
    """P3: before it is validated and carried out, and after."""
    seen: list[tuple[str, str, Any]] = []

    async def validates(ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        seen.append(("validates", call.tool_name, args if isinstance(args, dict) else json.loads(args)))
        return args

    async def wraps(ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        if tool_def.name == "pay" and args["amount"] > 5:
            return "Too much."
        return await handler({**args, "amount": 4} if tool_def.name == "pay" else args)

    async def after(ctx: Any, *, call: Any, tool_def: Any, args: Any, result: Any) -> Any:
        seen.append(("after", tool_def.name, result))
        return result

    hooks = Hooks(before_tool_validate=validates, tool_execute=wraps, after_tool_execute=after)
    steps = (LOAD, of("pay", through, 9), of("pay", through, 2), "done")
    done = await run(purse.agent(*steps, capabilities=[hooks], first=first), way)
    assert (done.results()[1:], purse.paid) == (["Too much.", "4 is paid"], [4])
    assert [one for one in seen if one[1] == "pay"] == [
        ("validates", "pay", {"amount": 9}),
        ("validates", "pay", {"amount": 2}),
        ("after", "pay", "4 is paid"),
    ]
