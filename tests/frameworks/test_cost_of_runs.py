"""Test what adapters log of a run's tools, and what a session answers to the same question (F4)."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from benchmarks.bill.adapters import model_of
from benchmarks.bill.conversations import Turn, ten
from benchmarks.bill.model import ScriptedModel
from benchmarks.bill.provider import Provider
from benchmarks.bill.toolkits import read, write
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from pegboard import Host, Pegboard, Session, UsageError
from pegboard.frameworks.pydantic_ai import SessionTools

CONFIG = """
plugins:
  notes: {python: "framework_tools:Notes"}
  sums: {python: "framework_tools:Sums"}
toolkits:
  notes: {tools: [notes]}
defaults: {anticipate: false}
agents:
  assistant: {tools: [sums], allowed_toolkits: [notes], dialect: pegboard}
"""
FIXED = Host(delivery=("result",))


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board:
        yield board


def agent_that_calls(session: Session, *calls: ToolCallPart, together: asyncio.Barrier | None = None) -> Agent[None]:
    """Return an agent whose model makes some calls, one in each answer, beside another agent's where they meet."""
    left = list(calls)

    async def answer(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        if together is not None:
            await together.wait()
        return ModelResponse(parts=[left.pop(0) if left else TextPart("done")])

    return Agent(FunctionModel(answer), capabilities=[SessionTools(session)])


LOAD = ToolCallPart("load_tools", {"names": ["notes"]})
LIST = ToolCallPart("call_tool", {"name": "note_list", "arguments": {}})


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if "tokens of tools" in record.message]


async def test_one_line_at_the_end_of_a_run_says_what_its_tools_came_to(
    board: Pegboard, caplog: pytest.LogCaptureFixture
) -> None:
    """F4: the tokens are those of the surface in each request, and of the answer that has what was loaded."""
    session = await board.session(session_id="s", host=FIXED)
    tokens = (await (await board.session(session_id="other", host=FIXED)).surface()).tokens
    third = await board.session(session_id="third", host=FIXED)
    loaded = await third.call("load_tools", {"names": ["notes"]})
    with caplog.at_level(logging.INFO, "pegboard"):
        await agent_that_calls(session, LOAD, LIST).run("Go on.")

    (line,) = lines(caplog)
    cost = await session.run_cost()
    assert line == f"session 's' of assistant: {cost.line()}"
    answer = board.services.counter.count(loaded.result.content[0]["text"])
    suffixes = cost.tokens - 3 * tokens.total - 2 * answer
    assert 0 < suffixes < 30  # what is loaded, in one line, behind the two later requests
    assert (cost.requests, cost.breaks, cost.predicted) == (3, 0, True)
    assert cost.read == (2 * tokens.total + answer) / cost.tokens


async def test_a_list_that_grows_is_a_break(board: Pegboard) -> None:
    """D1: an array is written again when a tool joins it."""
    session = await board.session(session_id="s", host=Host())
    await agent_that_calls(session, LOAD, ToolCallPart("note_list", {})).run("Go on.")

    cost = await session.run_cost()
    assert (cost.requests, cost.breaks) == (3, 1)


async def test_runs_and_sessions_do_not_mix(board: Pegboard, caplog: pytest.LogCaptureFixture) -> None:
    """F4: each run counts its own requests, beside another session's and behind a run of its own."""
    one, other = [await board.session(session_id=name, host=FIXED) for name in ("one", "other")]
    together = asyncio.Barrier(2)
    with caplog.at_level(logging.INFO, "pegboard"):
        await asyncio.gather(
            agent_that_calls(one, LOAD, together=together).run("Go on."),
            agent_that_calls(other, LIST, together=together).run("Go on."),
        )
        first = await one.run_cost()
        await agent_that_calls(one).run("Go on.")

    second, beside = await one.run_cost(), await other.run_cost()
    assert sorted(lines(caplog)) == sorted(
        [f"session 'one' of assistant: {cost.line()}" for cost in (first, second)]
        + [f"session 'other' of assistant: {beside.line()}"]
    )
    assert (first.requests, second.requests, beside.requests) == (2, 1, 2)
    assert second.read > first.read
    assert first.listed is not None
    assert second.listed is not None
    assert second.listed < first.listed


async def test_without_lines_of_information_nothing_is_counted(
    board: Pegboard, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F4: who does not read the line does not wait for a tokenizer."""
    counted: list[str] = []
    monkeypatch.setattr(type(board.services.counter), "count", lambda _, text: counted.append(text) or 1)
    session = await board.session(session_id="s", host=FIXED)
    with caplog.at_level(logging.WARNING, "pegboard"):
        await agent_that_calls(session, LOAD, LIST).run("Go on.")

    before = len(counted)
    await session.run_cost()
    assert lines(caplog) == []
    assert len(counted) > before


async def test_a_share_is_of_two_numbers(board: Pegboard) -> None:
    session = await board.session(session_id="s")
    await session.surface()

    assert (await session.run_cost(read=30, of=120)).read == 0.25
    with pytest.raises(UsageError, match="The input is 5 tokens read of None"):
        await session.run_cost(read=5)
    with pytest.raises(UsageError, match="The input is 5 tokens read of 4"):
        await session.run_cost(read=5, of=4)


async def test_a_providers_own_numbers_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """F4, D4: ten turns by a provider's real client: what it reports is the share, and the list is never broken."""
    toolkits, model = read(), ScriptedModel("loads")
    monkeypatch.syspath_prepend(tmp_path)
    config = write(toolkits, tmp_path)
    turns: tuple[Turn, ...] = tuple(ten(toolkits))
    async with Pegboard.open(config) as board:
        await board.ready()
        session = await board.session(agent="assistant", session_id="s")
        messages: list[ModelMessage] = []
        new: list[ModelMessage] = []
        with Provider("anthropic", model, len) as provider, caplog.at_level(logging.INFO, "pegboard"):
            agent = Agent(
                model_of("anthropic", provider.url),
                capabilities=[SessionTools(session)],
                model_settings={"cache": True},
            )
            for turn in turns:
                model.begin(turn)
                run = await agent.run(turn.message, message_history=messages)
                messages, new = run.all_messages(), run.new_messages()
        usages = [message.usage for message in new if isinstance(message, ModelResponse)]
        cost = await session.run_cost()

    usage = sum(usages, RequestUsage())
    assert len(lines(caplog)) == len(turns)
    share = usage.cache_read_tokens / usage.input_tokens
    assert f"{share:.0%} read from cache (of all input, as reported), 0 breaks" in lines(caplog)[-1]
    assert (cost.requests, cost.breaks) == (len(usages), 0)
