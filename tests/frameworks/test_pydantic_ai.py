"""What pydantic-ai has and other frameworks have not."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from framework_drivers import call
from framework_tools import PICTURE, RAN
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import HandleDeferredToolCalls, PrepareTools
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolAvailabilityDeltaPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.settings import ToolOrOutput
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDefinition, ToolDenied
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai_driver import PydanticTalk

from pegboard import Cache, Host, Pegboard, Session, SyncSession
from pegboard.frameworks.pydantic_ai import SessionTools, delegate_to
from pegboard.support.installed import install_line

CONFIG = """
plugins:
  notes: {python: "framework_tools:Notes"}
  sums: {python: "framework_tools:Sums"}
  pictures: {python: "framework_tools:Pictures"}
  shredder: {python: "framework_tools:Shredder", approve: {shred: always}}
toolkits:
  notes: {description: The notes of the user, tools: [notes]}
  sums:
    tools: [sums]
    focus: [{when: add, tools: [add_numbers], choice: required}, {when: sum, tools: [add_numbers]}]
defaults: {anticipate: false}
agents:
  clerk: {tools: [shredder], dialect: pegboard}
  assistant: {tools: [pictures], allowed_toolkits: [notes, sums], initial_toolkits: [sums], dialect: pegboard}
"""


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    RAN.clear()
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board:
        yield board


@pytest.fixture
async def session(board: Pegboard) -> Session:
    return await board.session(agent="assistant", session_id="s")


class Recorder:
    """A model that calls one tool, or none, and keeps the settings that each request had and the names of its tools."""

    def __init__(self, name: str = "", **arguments: Any) -> None:
        self.settings: list[Any] = []
        self.tools: list[list[str]] = []
        self.messages: list[ModelMessage] = []
        self._calls = [ToolCallPart(name, arguments)] if name else []
        self.model = FunctionModel(self._answer)

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.settings.append(info.model_settings)
        self.tools.append([tool.name for tool in info.function_tools])
        self.messages = messages
        return ModelResponse(parts=[self._calls.pop() if self._calls else TextPart("done")])


async def test_a_run_opens_the_session_of_its_user(board: Pegboard) -> None:
    """S1: one agent for everyone; whose session it is, each run says."""

    async def opened(ctx: RunContext[str]) -> Session:
        return await board.session(agent="assistant", session_id=ctx.conversation_id, principal=ctx.deps)

    agent = Agent(Recorder("load_tools", names=["notes"]).model, deps_type=str, capabilities=[SessionTools(opened)])
    await agent.run("Go on.", deps="ada", conversation_id="first")

    loaded = await (await board.session(agent="assistant", session_id="first", principal="ada")).surface()
    others = await (await board.session(agent="assistant", session_id="first", principal="bob")).surface()
    assert ("note_list" in loaded.names, "note_list" in others.names) == (True, False)


async def test_the_session_of_a_run_takes_the_place_of_its_agents(board: Pegboard, session: Session) -> None:
    other = await board.session(agent="assistant", session_id="other")
    agent = Agent(Recorder("load_tools", names=["notes"]).model, capabilities=[SessionTools(session)])

    await agent.run("Go on.", capabilities=[SessionTools(other)])

    assert "note_list" in (await other.surface()).names
    assert "note_list" not in (await session.surface()).names


async def test_tools_of_the_agent_stand_beside_those_of_the_session(session: Session) -> None:
    agent = Agent(TestModel(call_tools=["today"]), capabilities=[SessionTools(session)])

    @agent.tool_plain
    def today() -> str:
        """Return the day."""
        return "Sunday"

    assert (await agent.run("Go on.")).output == '{"today":"Sunday"}'


async def test_what_prepares_the_tools_of_the_agent_prepares_those_of_the_session(session: Session) -> None:
    def today() -> str:
        """Return the day."""
        return "Sunday"

    async def without_sums(ctx: RunContext[Any], tools: list[ToolDefinition]) -> list[ToolDefinition]:
        return [tool for tool in tools if tool.name != "add_numbers"]

    recorder = Recorder()
    tools = FunctionToolset([today], instructions="Days are in English.")
    agent = Agent(
        recorder.model, toolsets=[tools], capabilities=[SessionTools(session), PrepareTools(prepare_func=without_sums)]
    )
    await agent.run("Go on.")

    [names] = recorder.tools
    assert (names[0], "draw" in names, "add_numbers" in names) == ("today", True, False)
    assert "Days are in English." in str(recorder.messages[0])


async def test_the_framework_has_the_same_definitions_at_each_step(session: Session) -> None:
    """A step costs what a step of the framework costs: nothing of the session is defined or copied again for it."""
    seen: list[list[ToolDefinition]] = []

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(info.function_tools)
        call = ToolCallPart("add_numbers", {"first": 1, "second": 2})
        return ModelResponse(parts=[call if len(seen) < 3 else TextPart("done")])

    await Agent(FunctionModel(answer), capabilities=[SessionTools(session)]).run("Go on.")

    assert len(seen) == 3
    assert all(one is other for step in seen[1:] for one, other in zip(seen[0], step, strict=True))


async def test_what_joins_is_announced_once_by_the_framework(session: Session) -> None:
    """D1: the record from which a provider gets its `tool_addition` is written by the framework, once for a load."""
    talk = PydanticTalk(session)
    await talk.run("Go on.", call("load_tools", names=["notes"]), call("note_list"))
    await talk.run("Go on.", call("note_list"))

    parts = [part for message in talk.messages for part in message.parts]
    added = [part.tools_added for part in parts if isinstance(part, ToolAvailabilityDeltaPart)]

    assert added == [["note_list", "note_add"]]


@pytest.mark.parametrize(("message", "forced"), [("Please add.", True), ("Form a sum.", False)])
async def test_a_focus_is_a_choice_of_tools_for_one_step(session: Session, message: str, forced: bool) -> None:
    """F3: the list of tools is not edited."""
    model = Recorder("add_numbers", first=1, second=2)

    await Agent(model.model, capabilities=[SessionTools(session)]).run(message)

    choice, later = (cast("Any", settings or {}).get("tool_choice") for settings in model.settings)
    names: list[str] = choice if forced else choice.function_tools
    assert isinstance(choice, list if forced else ToolOrOutput)
    assert ("add_numbers" in names, "draw" in names, later) == (True, False, None)
    assert model.tools[0] == model.tools[1]


async def test_the_text_of_a_message_in_parts_reaches_the_session(session: Session) -> None:
    """F3, S5: pictures are passed over."""
    model = Recorder()

    await Agent(model.model, capabilities=[SessionTools(session)]).run(
        ["Please add.", BinaryContent(b"...", media_type="image/png")]
    )

    assert "add_numbers" in model.settings[0]["tool_choice"]


@pytest.mark.parametrize(
    ("tool", "content"),
    [
        ("draw", [BinaryContent(PICTURE, media_type="image/png")]),
        ("measure_picture", {"width": 3, "height": 2}),
    ],
)
async def test_pictures_and_objects_reach_the_model_as_such(session: Session, tool: str, content: object) -> None:
    model = Recorder(tool)

    await Agent(model.model, capabilities=[SessionTools(session)]).run("Go on.")

    returned = [part.content for part in model.messages[-1].parts if part.part_kind == "tool-return"]
    assert returned == [content]


async def test_behind_a_warm_cache_the_list_of_the_wire_counts(board: Pegboard) -> None:
    """D3: what lapsed stays listed while that is cheaper, and its call runs."""
    session = await board.session(agent="assistant", session_id="s", host=Host(cache=Cache(tokens=100_000)))
    await session.load("notes", keep="turn")
    talk = PydanticTalk(session)

    await talk.run("Go on.")
    ran = await talk.run("Go on.", call("note_list"))

    assert "note_list" in ran.calls[0].tools
    assert ran.calls[1].results == ('["ada: milk"]',)


def waiting_call(output: object) -> str:
    """Return the id of the one call that waits for an approval."""
    assert isinstance(output, DeferredToolRequests)
    [call] = output.approvals
    return call.tool_call_id


def clerk(session: Session | SyncSession, name: str = "shred", **arguments: Any) -> Agent[Any, Any]:
    model = Recorder(name, **arguments).model
    return Agent(model, output_type=[str, DeferredToolRequests], capabilities=[SessionTools(session)])


async def test_a_request_names_the_approval_and_why_it_is_needed(board: Pegboard) -> None:
    """A3: so that the application can show it, or leave it to an operator."""
    asked = await clerk(await board.session(agent="clerk", session_id="s"), paper="draft").run("Shred it.")

    [approval] = await board.approvals.list()
    about = asked.output.metadata[waiting_call(asked.output)]
    assert (about["approval"], about["reason"]) == (approval.id, approval.reason)


async def test_what_an_operator_allowed_meanwhile_runs(board: Pegboard) -> None:
    """A3."""
    session = await board.session(agent="clerk", session_id="s")
    asked = await clerk(session, paper="draft").run("Shred it.")
    [approval] = await board.approvals.list()
    await board.approvals.allow(approval.id, by="grace")

    results = DeferredToolResults(approvals={waiting_call(asked.output): True})
    await clerk(session, name="").run(message_history=asked.all_messages(), deferred_tool_results=results)

    assert RAN == ["shred"]
    assert [(one.status, one.by) for one in await board.approvals.list(ended=True)] == [("used", "grace")]


async def test_arguments_that_a_person_changed_are_those_that_run(board: Pegboard) -> None:
    """A2: the approval counts for them, and not for what the model wrote."""
    session = await board.session(agent="clerk", session_id="s")
    asked = await clerk(session, paper="original").run("Shred it.")

    changed = ToolApproved(override_args={"paper": "copy"})
    results = DeferredToolResults(approvals={waiting_call(asked.output): changed})
    done = await clerk(session, name="").run(message_history=asked.all_messages(), deferred_tool_results=results)

    returned = [
        part.content for message in done.new_messages() for part in message.parts if part.part_kind == "tool-return"
    ]
    assert returned == ["copy is shredded"]


async def test_a_person_fills_in_what_a_tool_asks_of_one(board: Pegboard) -> None:
    """T13: the fields come with the approval, in its metadata; what does not fit runs nothing."""
    session = await board.session(agent="clerk", session_id="s")
    asked = await clerk(session, name="sign", paper="contract").run("Sign it.")
    waits = waiting_call(asked.output)
    assert list(asked.output.metadata[waits]["fields"]["properties"]) == ["signature"]

    for fields, returned in (({"signature": 5}, "do not fit"), ({"signature": "Ada"}, "contract is signed by Ada")):
        results = DeferredToolResults(approvals={waits: True}, metadata={waits: {"fields": fields}})
        done = await clerk(session, name="").run(message_history=asked.all_messages(), deferred_tool_results=results)
        assert returned in str(done.new_messages())

    assert RAN == ["sign"]


async def test_what_runs_elsewhere_is_a_call_of_the_application(board: Pegboard) -> None:
    """T13: its result goes to the model and to the audit trail; it never ran here."""
    session = await board.session(agent="clerk", session_id="s")
    asked = await clerk(session, name="post", paper="letter").run("Post it.")
    [call] = asked.output.calls

    results = DeferredToolResults(calls={call.tool_call_id: "It is in the box."})
    done = await clerk(session, name="").run(message_history=asked.all_messages(), deferred_tool_results=results)

    assert "It is in the box." in str(done.new_messages())
    assert (RAN, await board.approvals.list()) == ([], ())


async def test_a_handler_of_the_application_decides_within_the_run(board: Pegboard) -> None:
    """A3: the framework's own capability; a refusal does not wait in Pegboard either."""
    session = await board.session(agent="clerk", session_id="s")

    def decided(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        return DeferredToolResults(approvals={call.tool_call_id: ToolDenied("Keep it.") for call in requests.approvals})

    model = Recorder("shred", paper="draft")
    agent = Agent(model.model, capabilities=[SessionTools(session), HandleDeferredToolCalls(decided)])
    ran = await agent.run("Shred it.")

    assert "Keep it." in str(ran.new_messages())
    assert (RAN, await board.approvals.list()) == ([], ())


async def test_a_run_that_fails_ends_its_turn(session: Session) -> None:
    """S6: so does one that is cancelled."""
    waits = asyncio.Event()

    async def fails(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise RuntimeError("no network")

    async def waits_for_ever(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        waits.set()
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(RuntimeError, match="no network"):
        await Agent(FunctionModel(fails), capabilities=[SessionTools(session)]).run("Go on.")
    run = asyncio.create_task(Agent(FunctionModel(waits_for_ever), capabilities=[SessionTools(session)]).run("Go on."))
    await waits.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run

    assert (await session.surface()).turn == 3


def test_a_program_that_blocks_has_a_session_that_does(tmp_path: Path) -> None:
    """The session of `Pegboard.open_sync`, with `run_sync`: load, call, an approval, the end of the turn."""
    RAN.clear()
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    with Pegboard.open_sync(tmp_path / "pegboard.yaml") as board:
        session = board.session(agent="clerk", session_id="s")
        asked = clerk(session, paper="draft").run_sync("Shred it.")
        results = DeferredToolResults(approvals={waiting_call(asked.output): True})
        clerk(session, name="").run_sync(message_history=asked.all_messages(), deferred_tool_results=results)

        assert (RAN, session.surface().turn) == (["shred"], 2)


def test_where_it_is_missing_the_error_has_the_install_line() -> None:
    program = "import sys; sys.modules['pydantic_ai'] = None; import pegboard.frameworks.pydantic_ai"

    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert ran.stderr.splitlines()[-1] == (
        f"ImportError: pydantic-ai is missing. Install it: {install_line(extra='pydantic-ai')}"
    )


async def test_a_delegated_task_has_the_dependencies_and_counts_in_the_usage_of_the_run(tmp_path: Path) -> None:
    """P8: the child's requests are in the parent's usage, its events go where the host says, and each has its agent."""
    config = {"store": "memory:", "agents": {"lead": {"tools": ["delegate"], "may_delegate": ["scribe"]}, "scribe": {}}}
    seen: list[object] = []
    events: list[object] = []

    async def take(ctx: RunContext[str], stream: AsyncIterable[object]) -> None:
        events.extend([event async for event in stream])

    scribe = Agent(TestModel(call_tools=[], custom_output_text="written"), deps_type=str)
    scout = Agent(TestModel(call_tools=[], custom_output_text="explored"), deps_type=str)

    @scribe.instructions
    def noted(ctx: RunContext[str]) -> str:
        seen.append(ctx.deps)
        return "Write."

    def lead(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        tasks: list[dict[str, str]] = [{"task": "Write.", "agent": "scribe"}, {"task": "Look.", "kind": "explore"}]
        if len(asked) < len(tasks):
            return ModelResponse(parts=[ToolCallPart("delegate", tasks[len(asked)])])
        return ModelResponse(parts=[TextPart(" ".join(str(part.content) for part in asked))])

    async with Pegboard.open(config) as board:
        board.on_delegate = delegate_to({"scribe": scribe, "explore": scout}, events=take)
        session = await board.session(agent="lead", session_id="s")
        agent = Agent(FunctionModel(lead), deps_type=str, capabilities=[SessionTools(session)])
        done = await agent.run("Go on.", deps="the desk")
        assert (done.output, seen) == ("written explored", ["the desk"])
        assert done.usage.requests == 5
        assert events
        board.on_delegate = delegate_to({"other": scribe})
        assert "No agent of the framework is given for 'scribe'" in (await agent.run("Go on.", deps="x")).output
