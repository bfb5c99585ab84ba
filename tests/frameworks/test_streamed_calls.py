"""What is streamed of a call through `call_tool` comes under the name of the tool that it names, with its arguments."""

import json
from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agent as OpenAIAgent
from agents import Runner, function_tool
from openai_agents_driver import model_of_form as openai_model
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    ModelResponse,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai_driver import model_of_form as pydantic_model

from pegboard import Host, Pegboard, Session
from pegboard.frameworks.openai_agents import equip
from pegboard.frameworks.pydantic_ai import SessionTools
from pegboard.testing import ModelAnswer, RawReply, StrictProvider

pytestmark = pytest.mark.cover(1)

CONFIG: dict[str, Any] = {
    "store": "memory:",
    "plugins": {"purse": {"python": "purse_of_streams"}},
    "toolkits": {"purse": {"description": "A purse.", "tools": ["purse"]}},
    "agents": {"a": {"allowed_toolkits": ["purse"], "dialect": "pegboard", "anticipate": False}},
}
MODULE = '''
PAID = []


def pay(amount: int, to: str = "ada") -> str:
    """Pay an amount."""
    PAID.append(amount)
    return f"{amount} is paid"
'''
LOAD = [("load_tools", {"names": ["purse"]})]


@pytest.fixture
async def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Session]:
    (tmp_path / "purse_of_streams.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    async with Pegboard.open(CONFIG) as board:
        yield await board.session(agent="a", session_id="s", principal="ada")


def paid() -> list[int]:
    import sys

    return list(sys.modules["purse_of_streams"].PAID) if "purse_of_streams" in sys.modules else []


def through(amount: int, **more: Any) -> tuple[str, Any]:
    return "call_tool", {"name": "pay", "arguments": {"amount": amount}, **more}


async def raw_events(agent: Any, message: str = "Pay.") -> list[Any]:
    """Return the raw events of a run, in order."""
    result = Runner.run_streamed(agent, message)
    return [event.data async for event in result.stream_events() if event.type == "raw_response_event"]


def calls_built(events: list[Any]) -> list[tuple[str, Any]]:
    """Return the calls that a reader of raw events builds: names as they begin, arguments from their pieces."""
    built: dict[Any, list[str]] = {}
    answer = 0
    for event in events:
        match event.type:
            case "response.completed":
                answer += 1
            case "response.output_item.added" if event.item.type == "function_call":
                built[answer, event.output_index] = [event.item.name, event.item.arguments]
            case "response.function_call_arguments.delta":
                built[answer, event.output_index][1] += event.delta
    return [(name, json.loads(text)) for name, text in built.values()]


def names_in(events: list[Any]) -> str:
    """Return all that raw events say, but for the tools that a provider repeats."""
    return json.dumps([event.model_dump(exclude={"response": {"tools"}}, warnings=False) for event in events])


@pytest.mark.parametrize("form", ["responses", "chat"])
async def test_raw_events_of_openai_agents_have_the_tool(session: Session, form: str) -> None:
    """P3: whole calls, two in one answer; what was direct stays as it came, numbers rise, and history is as written."""
    answers: list[ModelAnswer] = [LOAD, [through(3), through(4, why="late")], "Paid."]
    with StrictProvider(*answers) as server:
        agent: Any = equip(OpenAIAgent(name="A", model=openai_model(form, server.url)), session)
        events = await raw_events(agent)

    assert calls_built(events) == [
        ("load_tools", {"names": ["purse"]}),
        ("pay", {"amount": 3}),
        ("pay", {"amount": 4}),
    ]
    assert "call_tool" not in names_in(events)
    ends = [n for n, event in enumerate(events) if event.type == "response.completed"]
    for begin, end in zip([0, *[n + 1 for n in ends]], ends, strict=False):
        numbers = [event.sequence_number for event in events[begin : end + 1]]
        assert numbers == sorted(set(numbers))
    assert (sorted(paid()), server.refusals) == ([3, 4], [])  # calls of one answer run side by side
    assert "call_tool" in json.dumps(server.bodies[-1].get("input") or server.bodies[-1]["messages"])


@pytest.mark.parametrize("form", ["responses", "chat"])
async def test_raw_events_of_a_call_that_names_no_tool_come_as_they_are(session: Session, form: str) -> None:
    """P3: its tool is the agent's own, or its arguments are none; the model reads why it has not run."""

    @function_tool
    def burn(amount: int) -> str:
        return "burnt"

    answers: list[ModelAnswer] = [
        [("call_tool", {"name": "burn", "arguments": {"amount": 1}})],
        [("call_tool", {"nothing": 1})],
        "Done.",
    ]
    with StrictProvider(*answers) as server:
        agent: Any = equip(OpenAIAgent(name="A", model=openai_model(form, server.url), tools=[burn]), session)
        events = await raw_events(agent)

    assert calls_built(events) == [
        ("call_tool", {"name": "burn", "arguments": {"amount": 1}}),
        ("call_tool", {"nothing": 1}),
    ]
    assert server.refusals == []


async def test_text_beside_a_held_call_is_not_delayed(session: Session) -> None:
    """P3: what comes within the call is passed on at once."""
    call: Any = {"type": "function_call", "id": "f", "call_id": "c", "name": "call_tool"}
    text: Any = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": []}
    part: Any = {"type": "output_text", "text": "Wait.", "annotations": []}
    written = json.dumps(through(3)[1])
    done: Any = {**call, "arguments": written, "status": "completed"}
    about: Any = {"id": "r", "object": "response", "created_at": 1, "model": "m", "parallel_tool_calls": True,
                  "tool_choice": "auto", "tools": []}  # fmt: skip
    events: list[dict[str, Any]] = [
        {"type": "output_item.added", "output_index": 0, "item": {**call, "arguments": "", "status": "in_progress"}},
        {"type": "function_call_arguments.delta", "output_index": 0, "item_id": "f", "delta": written[:9]},
        {"type": "output_item.added", "output_index": 1, "item": {**text, "status": "in_progress"}},
        {"type": "output_text.delta", "output_index": 1, "item_id": "m", "content_index": 0, "delta": "Wait.",
         "logprobs": []},
        {"type": "function_call_arguments.delta", "output_index": 0, "item_id": "f", "delta": written[9:]},
        {"type": "function_call_arguments.done", "output_index": 0, "item_id": "f", "arguments": written},
        {"type": "output_item.done", "output_index": 0, "item": done},
        {"type": "output_item.done", "output_index": 1, "item": {**text, "content": [part]}},
        {"type": "completed",
         "response": {**about, "status": "completed", "output": [done, {**text, "content": [part]}]}},
    ]  # fmt: skip
    body = "".join(
        f"data: {json.dumps({**one, 'type': 'response.' + one['type'], 'sequence_number': n})}\n\n"
        for n, one in enumerate(events)
    )
    await session.load("purse")
    with StrictProvider(RawReply(body=body, content_type="text/event-stream"), "Done.") as server:
        agent: Any = equip(OpenAIAgent(name="A", model=openai_model("responses", server.url)), session)
        seen = await raw_events(agent)

    kinds = [(event.type.removeprefix("response."), getattr(event, "output_index", None)) for event in seen[:9]]
    assert kinds.index(("output_text.delta", 1)) < kinds.index(("output_item.added", 0))
    assert [event.sequence_number for event in seen[:8]] == sorted(event.sequence_number for event in seen[:8])
    assert (calls_built(seen[:8]), paid()) == ([("pay", {"amount": 3})], [3])


# -- pydantic-ai


async def part_events(agent: Agent[Any, Any], way: str) -> list[Any]:
    """Return what is streamed of the parts of the model's answers, in order."""
    seen: list[Any] = []

    async def handles(_: Any, stream: AsyncIterable[Any]) -> None:
        seen.extend([event async for event in stream])

    match way:
        case "handler":
            await agent.run("Pay.", event_stream_handler=handles)
        case "events":
            async with agent.run_stream_events("Pay.") as stream:
                seen = [event async for event in stream]
        case _:
            async with agent.iter("Pay.") as run:
                async for node in run:
                    if Agent.is_model_request_node(node):
                        async with node.stream(run.ctx) as stream:
                            async for event in stream:
                                seen.append(event)
                                assert not held_in(stream.response)
    return [event for event in seen if event.event_kind.startswith("part_")]


def held_in(response: ModelResponse) -> list[str]:
    return [part.tool_name for part in response.tool_calls if part.tool_name == "call_tool"]


def parts_built(events: list[Any]) -> list[tuple[str, Any]]:
    """Return the calls that a reader of part events builds."""
    built: list[Any] = []
    for event in events:
        if isinstance(event, PartStartEvent) and isinstance(event.part, ToolCallPart):
            built.append(event.part)
        elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, ToolCallPartDelta):
            built[-1] = event.delta.apply(built[-1])
    ended = [event.part for event in events if isinstance(event, PartEndEvent)]
    assert [part.tool_name for part in ended if isinstance(part, ToolCallPart)] == [one.tool_name for one in built]
    return [(part.tool_name, part.args_as_dict()) for part in built]


@pytest.mark.parametrize("way", ["handler", "events", "iter"])
@pytest.mark.parametrize("form", ["anthropic", "responses", "chat"])
async def test_parts_that_pydantic_ai_streams_have_the_tool(session: Session, form: str, way: str) -> None:
    """P3: two in one answer; the history goes back as the model wrote it, and reads the tool's name."""
    answers: list[ModelAnswer] = [LOAD, [through(3), through(4, why="late")], "Paid."]
    with StrictProvider(*answers) as server:
        agent = Agent(pydantic_model(form, server.url), capabilities=[SessionTools(session)])
        events = await part_events(agent, way)

    assert parts_built(events) == [
        ("load_tools", {"names": ["purse"]}),
        ("pay", {"amount": 3}),
        ("pay", {"amount": 4}),
    ]
    assert not any("call_tool" in repr(event) for event in events)
    assert any(isinstance(event, PartDeltaEvent) or "Paid" in repr(event) for event in events)
    assert (sorted(paid()), server.refusals) == ([3, 4], [])
    body = server.bodies[-1]
    assert json.dumps(body.get("input") or body["messages"]).count('"call_tool"') == 2


@pytest.mark.parametrize("way", ["handler", "iter"])
async def test_parts_of_a_call_that_names_no_tool_come_as_they_are(session: Session, way: str) -> None:
    """P3: its tool is the agent's own, or its arguments are none; the model reads why it has not run."""
    ran: list[int] = []

    def burn(amount: int) -> str:
        ran.append(amount)
        return "burnt"

    answers: list[ModelAnswer] = [
        [("call_tool", {"name": "burn", "arguments": {"amount": 1}})],
        [("call_tool", {"nothing": 1})],
        "Done.",
    ]
    with StrictProvider(*answers) as server:
        agent = Agent(pydantic_model("chat", server.url), capabilities=[SessionTools(session)], tools=[burn])
        if way == "handler":
            events = await part_events(agent, way)
            assert parts_built(events) == [
                ("call_tool", {"name": "burn", "arguments": {"amount": 1}}),
                ("call_tool", {"nothing": 1}),
            ]
        else:
            async with agent.run_stream("Pay.") as result:
                assert await result.get_output() == "Done."
    assert (ran, server.refusals) == ([], [])


async def test_pydantic_ai_streams_what_stands_beside_a_held_call_at_once(session: Session) -> None:
    """P3: text and thoughts are passed on as they come; the call comes once it is whole."""
    pieces = [json.dumps(through(3)[1])[n : n + 6] for n in range(0, 60, 6)]
    seen: list[str] = []
    sent: list[str] = []

    async def stream(messages: list[Any], _: AgentInfo) -> AsyncIterator[Any]:
        if any(isinstance(one, ModelResponse) for one in messages):
            yield "Paid."
            return
        yield {0: DeltaThinkingPart(content="Let me see. ")}
        yield {1: DeltaToolCall(name="call_tool")}
        for piece in pieces:
            yield {1: DeltaToolCall(json_args=piece)}
            sent.append(piece)
        seen.append("whole")
        yield {2: DeltaToolCall(name="load_tools", json_args='{"names": []}')}

    async def handles(_: Any, events: AsyncIterable[Any]) -> None:
        async for event in events:
            if isinstance(event, PartStartEvent):
                name = event.part.tool_name if isinstance(event.part, ToolCallPart) else event.part.part_kind
                seen.append(f"{name} {len(sent)}")

    session.host = Host(delivery=("result",))
    await session.load("purse")
    agent = Agent(FunctionModel(stream_function=stream), capabilities=[SessionTools(session)])
    await agent.run("Pay.", event_stream_handler=handles)
    assert seen == ["thinking 0", "whole", "pay 10", "load_tools 10", "text 10"]
    assert paid() == [3]


async def test_a_hook_around_the_request_reads_the_tool(session: Session) -> None:
    """P3: also one before the session's own, whole and streamed."""
    read: list[str] = []

    class Reads(AbstractCapability[Any]):
        async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
            response = await handler(request_context)
            read.extend(part.tool_name for part in response.tool_calls)
            return response

    for way in ("whole", "streamed"):
        with StrictProvider(LOAD, [through(3)], "Paid.") as server:
            agent = Agent(pydantic_model("chat", server.url), capabilities=[Reads(), SessionTools(session)])
            await (agent.run("Pay.") if way == "whole" else part_events(agent, "handler"))
    assert read == ["load_tools", "pay"] * 2
