"""What is LangChain's own: runs that block, graphs of one's own, decisions, what is behind messages, subagents."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from framework_drivers import Script, Step, call
from framework_tools import PICTURE, RAN
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_driver import ScriptedChat
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime
from langgraph.types import Command

from pegboard import Pegboard, Session, UsageError
from pegboard.frameworks.langchain import SessionTools, delegate_to
from pegboard.frameworks.runs import warn_once

CONFIG = """
plugins:
  notes: {python: "framework_tools:Notes"}
  sums: {python: "framework_tools:Sums"}
  pictures: {python: "framework_tools:Pictures"}
  shredder: {python: "framework_tools:Shredder", approve: {shred: always}}
toolkits:
  notes: {description: The notes of the user, tools: [notes]}
  sums: {description: Arithmetic, tools: [sums], policy: Never do sums in your head.}
  looks: {description: Pictures, tools: [pictures], focus: [{when: draw, tools: [draw], choice: required}]}
defaults: {anticipate: false, dialect: pegboard}
agents:
  assistant: {tools: [sums], allowed_toolkits: [notes, sums, looks], initial_toolkits: [sums]}
  painter: {allowed_toolkits: [looks], initial_toolkits: [looks]}
  clerk: {tools: [shredder]}
  lead: {tools: [delegate], may_delegate: [assistant, painter, clerk]}
"""
LOAD_NOTES = call("load_tools", names=["notes"])
LIST_NOTES = call("note_list")
SHRED = call("shred", paper="draft")
THREAD: Any = {"configurable": {"thread_id": "t"}}


class NoThreads(ThreadPoolExecutor):
    """An executor in which nothing is to be run."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError(f"{fn} is run in a thread")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    RAN.clear()
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    return tmp_path / "pegboard.yaml"


@pytest.fixture
async def board(config: Path) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(config) as board:
        yield board


def agent_of(session: Any, *steps: Step, **options: Any) -> tuple[Any, Script]:
    script = Script(*steps)
    options = {"checkpointer": InMemorySaver(), **options}
    return create_agent(ScriptedChat(script=script), middleware=[SessionTools(session)], **options), script


def said(text: str = "Go on.") -> Any:
    return {"messages": [HumanMessage(text)]}


def texts(messages: Sequence[Any]) -> list[str]:
    return [message.text for message in messages]


def test_a_run_that_blocks_takes_a_session_that_does(config: Path) -> None:
    with Pegboard.open_sync(config) as board:
        agent, script = agent_of(board.session(agent="assistant", session_id="s"), LOAD_NOTES, LIST_NOTES, "Milk.")

        state = agent.invoke(said(), THREAD)

        assert (state["messages"][-1].text, RAN) == ("Milk.", ["note_list"])
        assert "note_list" in script.calls[1].tools
        assert board.session(agent="assistant", session_id="s").surface().turn == 2


def test_a_run_that_blocks_waits_for_a_person(config: Path) -> None:
    """A3: the same as in a run that does not."""
    with Pegboard.open_sync(config) as board:
        agent, _ = agent_of(board.session(agent="clerk", session_id="s"), SHRED, "Gone.")

        [waiting] = agent.invoke(said(), THREAD)["__interrupt__"]
        assert (waiting.value["name"], waiting.value["args"], RAN) == ("shred", {"paper": "draft"}, [])
        state = agent.invoke(Command(resume=True), THREAD)

        assert texts(state["messages"])[-2:] == ["draft is shredded", "Gone."]


async def test_a_run_that_blocks_needs_a_session_that_does(board: Pegboard) -> None:
    agent, _ = agent_of(await board.session(agent="assistant", session_id="s"))

    with pytest.raises(UsageError, match="needs a session that does"):
        agent.invoke(said(), THREAD)


async def test_a_session_that_blocks_serves_a_run_that_does_not(config: Path) -> None:
    with Pegboard.open_sync(config) as board:
        agent, _ = agent_of(board.session(agent="assistant", session_id="s"), LOAD_NOTES, LIST_NOTES)
        await agent.ainvoke(said(), THREAD)
        assert RAN == ["note_list"]


async def test_the_agent_s_own_tools_stay_and_win(board: Pegboard) -> None:
    """Its own tool of the same name runs in the place of the session's."""
    ran: list[str] = []

    @tool
    def add_numbers(first: int, second: int) -> str:
        """Add in one's own way."""
        ran.append("own")
        return "many"

    calls = [call("add_numbers", first=1, second=2), call("note_list")]
    session = await board.session(agent="assistant", session_id="s")
    await session.load("notes")
    agent, script = agent_of(session, calls, tools=[add_numbers])
    state = await agent.ainvoke(said(), THREAD)

    assert script.calls[0].tools.count("add_numbers") == 0  # the session's is not listed; its own is no plain function
    assert (ran, RAN) == (["own"], ["note_list"])
    assert texts(state["messages"])[2:4] == ["many", '["ada: milk"]']


async def test_what_stands_behind_a_message_stands_there_again(board: Pegboard) -> None:
    """D4: each request begins with the one before, and the history of the thread has no word of ours."""
    sent: list[list[Any]] = []

    class Watched(ScriptedChat):
        async def _agenerate(self, messages: list[Any], *args: Any, **request: Any) -> Any:
            sent.append(messages)
            return await super()._agenerate(messages, *args, **request)

    script = Script(LOAD_NOTES, LIST_NOTES, "Milk.", "You are welcome.")
    session = await board.session(agent="assistant", session_id="s")
    agent: Any = create_agent(
        Watched(script=script),
        middleware=[SessionTools(session)],
        checkpointer=InMemorySaver(),
        system_prompt="Be brief.",
    )
    await agent.ainvoke(said(), THREAD)
    state = await agent.ainvoke(said("Thanks!"), THREAD)

    for earlier, later in pairwise(sent):
        assert texts(later)[: len(earlier)] == texts(earlier)
    assert texts(sent[0])[0].startswith("Be brief.\n\nNever do sums in your head.")
    assert "Loaded now: notes" in texts(sent[1])[-1]
    assert not any("<system>" in text for text in texts(state["messages"]))


async def test_a_focus_chooses_that_a_tool_is_called(board: Pegboard) -> None:
    """F3: the choice is the step's; a picture is a block of LangChain's."""
    chosen: list[Any] = []

    class Watched(ScriptedChat):
        def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
            chosen.append(kwargs.get("tool_choice"))
            return super().bind_tools(tools, **kwargs)

    session = await board.session(agent="painter", session_id="s")
    script = Script(call("draw"), call("measure_picture"))
    agent: Any = create_agent(Watched(script=script), middleware=[SessionTools(session)])
    messages = (await agent.ainvoke(said("draw a cat")))["messages"]

    assert chosen == ["any", None, None]
    [picture, measured] = [message for message in messages if isinstance(message, ToolMessage)]
    assert dict(picture.content_blocks[0])["mime_type"] == "image/png"
    assert PICTURE.startswith(b"\x89PNG")
    assert measured.artifact == {"width": 3, "height": 2}


async def test_a_person_fills_in_fields(board: Pegboard) -> None:
    """T13: the model does not see them; they come with the decision."""
    agent, script = agent_of(await board.session(agent="clerk", session_id="s"), call("sign", paper="letter"))

    [waiting] = (await agent.ainvoke(said(), THREAD))["__interrupt__"]
    assert list(waiting.value["fields"]["properties"]) == ["signature"]
    decision = {"type": "approve", "fields": {"signature": "Ada"}, "by": "grace"}
    state = await agent.ainvoke(Command(resume=decision), THREAD)

    assert "signature" not in script.calls[0].schemas["sign"]["properties"]
    assert state["messages"][-2].text == "letter is signed by Ada"
    [approval] = await board.approvals.list(ended=True)
    assert approval.by == "grace"


async def test_without_a_checkpointer_one_warning_says_that_a_run_ends(
    board: Pegboard, caplog: pytest.LogCaptureFixture
) -> None:
    """A3: the call has not run, and an operator's word counts for the next one."""
    warn_once.cache_clear()
    for _ in range(2):
        agent, _ = agent_of(await board.session(agent="clerk", session_id="s"), SHRED, checkpointer=None)
        assert (await agent.ainvoke(said()))["__interrupt__"][0].value["name"] == "shred"
    assert sum("checkpointer" in record.message for record in caplog.records) == 1
    [approval] = await board.approvals.list()
    await board.approvals.allow(approval.id, by="grace")
    agent, script = agent_of(await board.session(agent="clerk", session_id="s"), SHRED, checkpointer=None)
    await agent.ainvoke(said())
    assert (script.calls[1].results, RAN) == (("draft is shredded",), ["shred"])


async def test_a_call_that_is_run_elsewhere_is_answered_by_its_result(board: Pegboard) -> None:
    """T13: it never runs here."""
    agent, _ = agent_of(await board.session(agent="clerk", session_id="s"), call("post", paper="letter"))

    [waiting] = (await agent.ainvoke(said(), THREAD))["__interrupt__"]
    assert waiting.value["allowed_decisions"] == ["respond", "reject"]
    state = await agent.ainvoke(Command(resume={"type": "respond", "message": "posted at noon"}), THREAD)

    assert (state["messages"][-2].text, RAN) == ("posted at noon", [])


async def test_arguments_that_a_person_edits_are_those_that_run(board: Pegboard) -> None:
    """A2: what was asked for is refused, what they wrote runs once; LangChain's own form of answers is taken."""
    agent, _ = agent_of(await board.session(agent="clerk", session_id="s"), SHRED)
    await agent.ainvoke(said(), THREAD)

    edited = {"type": "edit", "edited_action": {"name": "shred", "args": {"paper": "copy"}}}
    state = await agent.ainvoke(Command(resume={"decisions": [edited]}), THREAD)

    assert (state["messages"][-2].text, RAN) == ("copy is shredded", ["shred"])
    assert await board.approvals.list() == ()


async def test_an_answer_that_decides_nothing_can_be_put_right(board: Pegboard) -> None:
    agent, _ = agent_of(await board.session(agent="clerk", session_id="s"), SHRED)
    await agent.ainvoke(said(), THREAD)

    with pytest.raises(ValueError, match="'maybe' does not answer a call that waits"):
        await agent.ainvoke(Command(resume="maybe"), THREAD)
    state = await agent.ainvoke(Command(resume=True), THREAD)

    assert (state["messages"][-2].text, RAN) == ("draft is shredded", ["shred"])


async def test_what_an_operator_allowed_needs_no_second_word(board: Pegboard) -> None:
    """A3: the run goes on with anything, and the next call waits for a person of its own."""
    again = call("shred", paper="copy")
    agent, _ = agent_of(await board.session(agent="clerk", session_id="s"), SHRED, again)
    await agent.ainvoke(said(), THREAD)
    [approval] = await board.approvals.list()
    await board.approvals.allow(approval.id, by="grace")

    state = await agent.ainvoke(Command(resume=True), THREAD)

    assert [waiting.value["args"] for waiting in state["__interrupt__"]] == [{"paper": "copy"}]
    assert RAN == ["shred"]


async def test_a_person_answers_several_calls_of_one_step(board: Pegboard) -> None:
    """A3: each by its own id; what was refused does not run."""
    agent, script = agent_of(await board.session(agent="clerk", session_id="s"), [SHRED, call("shred", paper="copy")])
    waiting = (await agent.ainvoke(said(), THREAD))["__interrupt__"]

    decisions = {one.id: one.value["args"]["paper"] == "copy" for one in waiting}
    await agent.ainvoke(Command(resume=decisions), THREAD)

    assert "refused it" in script.calls[1].results[0]
    assert (script.calls[1].results[1], RAN) == ("copy is shredded", ["shred"])


async def test_a_step_needs_no_thread(board: Pegboard) -> None:
    asyncio.get_running_loop().set_default_executor(NoThreads(1))
    agent, _ = agent_of(await board.session(agent="assistant"), LOAD_NOTES, LIST_NOTES, "Done.")
    done = await agent.ainvoke(said(), THREAD)
    assert done["messages"][-1].text == "Done."


@pytest.mark.parametrize("switch", ["LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"])
async def test_langsmith_has_spans_until_the_end_of_a_call(
    board: Pegboard, monkeypatch: pytest.MonkeyPatch, switch: str
) -> None:
    tools = SessionTools(await board.session(agent="assistant"))
    hooks = ("awrap_model_call", "awrap_tool_call")
    assert not any(inspect.iscoroutinefunction(getattr(tools, hook)) for hook in hooks)
    monkeypatch.setenv(switch, "true")
    assert all(inspect.iscoroutinefunction(getattr(tools, hook)) for hook in hooks)


async def test_each_run_opens_its_own_session(board: Pegboard) -> None:
    """S1: from its thread and its context, once a run."""
    opened: list[Any] = []

    async def session_of(runtime: Any) -> Session:
        opened.append((runtime.execution_info.thread_id, runtime.context))
        return await board.session(
            agent="assistant", session_id=runtime.execution_info.thread_id, principal=runtime.context
        )

    agent, script = agent_of(session_of, LOAD_NOTES, LIST_NOTES, "Milk.")
    await agent.ainvoke(said(), THREAD, context="ada")
    await agent.ainvoke(said(), {"configurable": {"thread_id": "u"}}, context="bob")

    assert opened == [("t", "ada"), ("u", "bob")]
    assert [("note_list" in each.tools) for each in script.calls] == [False, True, True, False]


async def test_a_node_of_a_graph_of_one_s_own_asks_the_model(board: Pegboard) -> None:
    session = await board.session(agent="assistant", session_id="s")
    script, tools = Script(LOAD_NOTES), SessionTools(session)

    answer = await tools.acall_model(
        ScriptedChat(script=script), [SystemMessage("Be brief."), HumanMessage("Go on.", id="1")], Runtime()
    )

    assert isinstance(answer, AIMessage)
    assert answer.tool_calls[0]["name"] == "load_tools"
    assert script.calls[0].system.startswith("Be brief.\n\nNever do sums in your head.")


async def test_each_kind_of_child_has_its_agent_and_its_events(board: Pegboard) -> None:
    """P8: by the name of the child's agent; one that waits for a person says so; one that no one does is an error."""
    written: list[str] = []
    scripts = {"assistant": Script(LIST_NOTES, "Milk it is."), "clerk": Script(SHRED)}

    def maker(name: str) -> Any:
        return lambda child: create_agent(ScriptedChat(script=scripts[name]), middleware=[SessionTools(child)])

    def seen(event: Any) -> None:
        written.append(event[0].text)

    board.on_delegate = delegate_to({name: maker(name) for name in scripts}, events=seen)
    tasks = [call("delegate", task="Do it.", agent=name) for name in ("assistant", "clerk", "painter")]
    agent, script = agent_of(await board.session(agent="lead", session_id="s"), tasks)
    await agent.ainvoke(said(), THREAD)

    first, second, third = script.calls[1].results
    assert "Milk it is." in first
    assert "a call of it waits for a person" in second
    assert "No agent of the framework is given for 'painter'" in third
    assert "Milk it is." in "".join(written)
