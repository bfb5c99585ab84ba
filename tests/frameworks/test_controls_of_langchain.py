"""What LangChain decides by a tool's name sees that tool, called directly or through `call_tool`, in each kind of run.

A control stands before `SessionTools` in the list of middleware, or behind it.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from framework_drivers import Call, Script, call
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelFallbackMiddleware,
    ToolCallLimitMiddleware,
    ToolErrorMiddleware,
    ToolRetryMiddleware,
)
from langchain.chat_models import init_chat_model
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.tools import tool
from langchain_driver import ScriptedChat, claude
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import Field

from pegboard import Host, Pegboard, SyncSession
from pegboard.frameworks.langchain import SessionTools
from pegboard.frameworks.runs import warn_once
from pegboard.testing import StrictProvider

pytestmark = pytest.mark.cover(1)

CONFIG: dict[str, Any] = {
    "store": "memory:",
    "plugins": {"purse": {"python": "purse"}},
    "toolkits": {"purse": {"description": "A purse.", "tools": ["purse"]}},
    "agents": {"a": {"allowed_toolkits": ["purse"], "dialect": "pegboard", "anticipate": False}},
}
MODULE = '''
PAID, TRIED = [], []


def pay(amount: int) -> str:
    """Pay an amount."""
    PAID.append(amount)
    return f"{amount} is paid"


def shake(times: int) -> str:
    """Shake the purse until a coin falls out."""
    TRIED.append(times)
    if len(TRIED) < times:
        raise ConnectionError("nothing fell out")
    return "a coin"


from langchain_core.tools import ToolException


class _Own(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(f"it is {code}")
        self.code = code


def drop(kind: str) -> str:
    """Drop the purse."""
    if kind == "UnicodeDecodeError":
        b"\\xff".decode()
    kinds = {"OSError": OSError(2), "StopIteration": StopIteration(), "SystemExit": SystemExit(), "_Own": _Own(7)}
    raise kinds.get(kind) or ToolException("it is not held")
'''
LOAD = call("load_tools", names=["purse"])
THREAD: Any = {"configurable": {"thread_id": "t"}}
IN_RESULTS = Host(delivery=("result",))
"""Of a model whose list of tools does not change: it calls through `call_tool`."""
KINDS = ("OSError", "UnicodeDecodeError", "StopIteration", "SystemExit", "_Own", "ToolException")
"""What the purse raises when it is dropped."""
WAYS = ("invoke", "ainvoke", "stream", "astream")


class Watched(ScriptedChat):
    """A scripted model that keeps what it was sent."""

    sent: list[list[BaseMessage]] = Field(default_factory=list)
    chosen: list[Any] = Field(default_factory=list)
    listed: list[list[str]] = Field(default_factory=list)

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        self.chosen.append(kwargs.get("tool_choice"))
        self.listed.append([one["function"]["name"] for one in tools if isinstance(one, dict)])
        return super().bind_tools(tools, **kwargs)

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **request: Any) -> Any:
        self.sent.append(messages)
        return await super()._agenerate(messages, *args, **request)


@dataclass(frozen=True, slots=True, kw_only=True)
class Purse:
    """A session that has a purse, how its model calls, how a run is made, and where a control stands."""

    session: SyncSession
    through: bool
    way: str
    first: bool
    streamed: list[str] = field(default_factory=list)

    def call(self, tool: str = "pay", /, **arguments: Any) -> Call:
        return call("call_tool", name=tool, arguments=arguments) if self.through else call(tool, **arguments)

    def agent(self, model: Any, *controls: Any, **options: Any) -> Any:
        tools = SessionTools(self.session)
        middleware = [tools, *controls] if self.first else [*controls, tools]
        made: Any = create_agent
        return made(model, middleware=middleware, **{"checkpointer": InMemorySaver(), **options})

    def run(self, agent: Any, given: Any = None) -> Mapping[str, Any]:
        given = {"messages": [("user", "Pay.")]} if given is None else given
        if self.way == "invoke":
            return agent.invoke(given, THREAD)
        if self.way == "ainvoke":
            return asyncio.run(agent.ainvoke(given, THREAD))
        if self.way == "stream":
            return self.last(agent.stream(given, THREAD, stream_mode=["values", "messages"]))

        async def parts() -> list[Any]:
            return [part async for part in agent.astream(given, THREAD, stream_mode=["values", "messages"])]

        return self.last(asyncio.run(parts()))

    def last(self, parts: Any) -> Mapping[str, Any]:
        """Return the state that a stream ends with; the names of the calls in its pieces are kept."""
        state: dict[str, Any] = {}
        for mode, part in parts:
            if mode == "values":
                state |= part
            elif isinstance(part[0], AIMessageChunk):
                self.streamed.extend(one["name"] for one in part[0].tool_call_chunks if one["name"])
        return state


def module() -> Any:
    import sys

    return sys.modules.get("purse")


def paid() -> list[int]:
    return list(module().PAID) if module() else []


def names_of_calls(messages: Sequence[Any]) -> list[str]:
    return [one["name"] for message in messages if isinstance(message, AIMessage) for one in message.tool_calls]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Host | None], SyncSession]]:
    (tmp_path / "purse.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    with Pegboard.open_sync(CONFIG) as board:

        def session(host: Host | None) -> SyncSession:
            given: dict[str, Any] = {} if host is None else {"host": host}
            return board.session(agent="a", session_id="s", principal="ada", **given)

        yield session


@pytest.fixture(params=[False, True], ids=["direct", "through"])
def through(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=[True, False], ids=["first", "behind"])
def first(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture
def purse(opened: Callable[[Host | None], SyncSession], way: str, first: bool, through: bool) -> Purse:
    return Purse(session=opened(IN_RESULTS if through else None), through=through, way=way, first=first)


@pytest.mark.cover(2)
@pytest.mark.parametrize("decision", ["approve", "edit", "reject"])
@pytest.mark.parametrize("mode", ["batched", "per_call"])
def test_a_person_decides_about_the_tool(purse: Purse, decision: str, mode: Any) -> None:
    """P3: it has not run before, and runs as it was decided."""
    control = HumanInTheLoopMiddleware(interrupt_on={"pay": True}, interrupt_mode=mode)
    agent = purse.agent(Watched(script=Script(LOAD, purse.call(amount=1), "done")), control)

    [waiting] = purse.run(agent)["__interrupt__"]
    asked = waiting.value["action_requests"][0] if mode == "batched" else waiting.value
    assert (asked["name"], asked["args"], paid()) == ("pay", {"amount": 1}, [])

    edited = {"type": "edit", "edited_action": {"name": "pay", "args": {"amount": 7}}}
    answer = edited if decision == "edit" else {"type": decision}
    state = purse.run(agent, Command(resume={"decisions": [answer]} if mode == "batched" else answer))
    assert paid() == {"approve": [1], "edit": [7], "reject": []}[decision]
    assert state["messages"][-1].text.strip() == "done"


@pytest.mark.parametrize("behavior", ["continue", "end"])
def test_a_limit_counts_the_tool(purse: Purse, behavior: Any) -> None:
    """P3: the second call of the run does not run."""
    control = ToolCallLimitMiddleware(tool_name="pay", run_limit=1, exit_behavior=behavior)
    script = Script(LOAD, purse.call(amount=1), purse.call(amount=2), "done")
    state = purse.run(purse.agent(Watched(script=script), control))
    assert paid() == [1]
    assert (state["messages"][-1].text.strip() == "done") == (behavior == "continue")


def test_a_middleware_around_calls_decides_about_the_tool(purse: Purse) -> None:
    """P3: it answers in the tool's place, or gives it other arguments."""
    asked: list[int] = []

    def decided(request: Any) -> Any:
        if request.tool_call["name"] != "pay":
            return request
        asked.append(request.tool_call["args"]["amount"])
        if asked[-1] > 5:
            return ToolMessage("Too much.", tool_call_id=request.tool_call["id"], name="pay")
        return request.override(tool_call={**request.tool_call, "args": {"amount": 4}})

    class Guard(AgentMiddleware[Any, Any, Any]):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            answer = decided(request)
            return answer if isinstance(answer, ToolMessage) else handler(answer)

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            answer = decided(request)
            return answer if isinstance(answer, ToolMessage) else await handler(answer)

    script = Script(LOAD, purse.call(amount=9), purse.call(amount=2), "done")
    state = purse.run(purse.agent(Watched(script=script), Guard()))
    assert (asked, paid()) == ([9, 2], [4])
    results = [one.text for one in state["messages"] if isinstance(one, ToolMessage)]
    assert results[1:] == ["Too much.", "4 is paid"]


def test_a_middleware_around_the_model_sees_the_tool_and_the_model_its_own_call(purse: Purse) -> None:
    """D4: history, answers and the pieces of a stream name the tool; the model reads what it wrote."""
    seen: list[list[str]] = []

    class Sees(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            response = handler(request)
            seen.append(names_of_calls([*request.messages, *response.result]))
            return response

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            response = await handler(request)
            seen.append(names_of_calls([*request.messages, *response.result]))
            return response

    model = Watched(script=Script(LOAD, purse.call(amount=3), "done"))
    state = purse.run(purse.agent(model, Sees()))
    named, written = ["load_tools", "pay"], ["load_tools", purse.call().name]
    assert paid() == [3]
    assert (seen[1:], names_of_calls(state["messages"])) == ([named, named], named)
    assert purse.streamed in ([], named)
    assert names_of_calls(model.sent[-1]) == written
    [again] = [one for one in model.sent[-1] if isinstance(one, AIMessage)][1:]
    assert again.tool_calls[0]["args"] == dict(purse.call(amount=3).arguments)


@pytest.mark.parametrize("form", ["name", "function"])
def test_a_choice_of_the_tool_lists_it(purse: Purse, form: str) -> None:
    """P3: the provider takes no choice of a tool that it has no definition of; loaded or not."""
    choice: Any = "pay" if form == "name" else {"type": "function", "function": {"name": "pay"}}

    class Chooses(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(tool_choice=choice if len(request.messages) == 3 else None))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(request.override(tool_choice=choice if len(request.messages) == 3 else None))

    model = Watched(script=Script(LOAD, call("pay", amount=3), "done"))
    purse.run(purse.agent(model, Chooses()))
    assert model.chosen == [None, choice, None]
    assert (model.listed[1].count("pay"), paid()) == (1, [3])
    assert model.listed[2] == [one for one in model.listed[1] if one != "pay" or not purse.through]


def test_a_tool_that_failed_is_tried_again(purse: Purse) -> None:
    """P3: by a middleware behind or before; the tool runs each time."""
    control = ToolRetryMiddleware(max_retries=3, tools=["shake"], retry_on=(ConnectionError,), initial_delay=0)
    model = Watched(script=Script(LOAD, purse.call("shake", times=3), "done"))
    state = purse.run(purse.agent(model, control))
    assert module().TRIED == [3, 3, 3]
    assert ("a coin" in state["messages"][-2].text, state["messages"][-1].text.strip()) == (True, "done")


@pytest.mark.parametrize("control", ["other_kind", "other_tool", "given_up", "answers"])
def test_a_middleware_around_calls_decides_about_a_failure(purse: Purse, control: str) -> None:
    """P3, P6: what it does not answer the model reads, as of any failure, and the run goes on."""
    controls = {
        "other_kind": ToolRetryMiddleware(tools=["shake"], retry_on=(ValueError,), initial_delay=0),
        "other_tool": ToolRetryMiddleware(tools=["pay", "call_tool"], initial_delay=0),
        "given_up": ToolRetryMiddleware(tools=["shake"], max_retries=1, initial_delay=0, on_failure="error"),
        "answers": ToolErrorMiddleware(on_error=lambda error, request: f"{request.tool_call['name']}: {error.args[0]}"),
    }
    model = Watched(script=Script(LOAD, purse.call("shake", times=9), "done"))
    state = purse.run(purse.agent(model, controls[control]))
    read = state["messages"][-2]
    assert ([9, 9] if control == "given_up" else [9]) == module().TRIED
    assert ("nothing fell out" in read.text, read.status, read.name) == (True, "error", "shake")
    assert (read.text.startswith("shake: "), state["messages"][-1].text.strip()) == (control == "answers", "done")


@pytest.mark.parametrize("position", ["behind", "before"])
@pytest.mark.parametrize(
    "kind", ["OSError", "UnicodeDecodeError", "StopIteration", "SystemExit", "_Own", "ToolException"]
)
def test_a_middleware_sees_what_kind_of_failure_it_was(
    opened: Callable[[Host | None], SyncSession], kind: str, position: str
) -> None:
    """X5: with the text that the model reads; what would end more than the call is a plain failure."""
    seen: list[Exception] = []

    class Sees(AgentMiddleware[Any, Any, Any]):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            try:
                return handler(request)
            except Exception as error:
                seen.append(error)
                raise

    purse = Purse(session=opened(IN_RESULTS), through=True, way="invoke", first=position == "behind")
    script = Script(LOAD, purse.call("drop", kind=kind), "done")
    state = purse.run(purse.agent(Watched(script=script), Sees()))
    read = state["messages"][-2].text
    assert (str(seen[0]), kind in read, state["messages"][-1].text) == (read, True, "done")
    shown = {"StopIteration": "RuntimeError", "SystemExit": "ToolException"}.get(kind, kind)
    assert type(seen[0]).__name__ == shown
    assert getattr(seen[0], "code", 7) == 7


def test_without_the_error_of_langgraph_one_warning_says_where_retries_belong(
    opened: Callable[[Host | None], SyncSession], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """P6: the run goes on, and the model reads what failed."""
    warn_once.cache_clear()
    monkeypatch.setattr("pegboard.frameworks.langchain.session_tool._ToolInvocationError", None)
    purse = Purse(session=opened(IN_RESULTS), through=True, way="invoke", first=False)
    control = ToolRetryMiddleware(max_retries=3, tools=["shake"], initial_delay=0)
    script = Script(LOAD, purse.call("shake", times=8), purse.call("shake", times=9), "done")
    state = purse.run(purse.agent(Watched(script=script), control))
    assert (module().TRIED, state["messages"][-1].text) == ([8, 9], "done")
    assert "nothing fell out" in state["messages"][-2].text
    assert sum("ToolInvocationError" in record.message for record in caplog.records) == 1


def test_a_model_that_a_middleware_falls_back_to_makes_the_call(purse: Purse) -> None:
    """P3: also where it comes in behind."""

    class Fails(Watched):
        async def _agenerate(self, *args: Any, **request: Any) -> Any:
            raise ValueError("The provider is down.")

    script = Script(LOAD, purse.call(amount=3), "done")
    state = purse.run(purse.agent(Fails(), ModelFallbackMiddleware(Watched(script=script))))
    assert (paid(), names_of_calls(state["messages"])) == ([3], ["load_tools", "pay"])


@pytest.mark.parametrize("form", ["anthropic", "chat", "responses"])
@pytest.mark.parametrize("way", WAYS)
def test_a_provider_reads_byte_for_byte_what_its_model_wrote(
    opened: Callable[[Host | None], SyncSession], form: str, way: str
) -> None:
    """D4: the calls in a request are those that LangChain alone would send."""
    written = call("call_tool", arguments={"amount": 3}, name="pay")

    def assistant(body: Mapping[str, Any]) -> str:
        items = body.get("messages") or body["input"]
        return json.dumps(
            [one for one in items if one.get("role") == "assistant" or one.get("type") == "function_call"]
        )

    @tool
    def load_tools(names: list[str]) -> str:
        """Load."""
        return "loaded"

    @tool
    def call_tool(name: str, arguments: dict[str, Any]) -> str:
        """Call."""
        return "3 is paid"

    sent: list[str] = []
    for own in (True, False):
        steps = [[(one.name, dict(one.arguments))] for one in (LOAD, written)]
        with StrictProvider(*steps, "done") as server:
            options: Any = {"base_url": f"{server.url}/v1", "api_key": "none", "use_responses_api": form == "responses"}
            model: Any = claude(server.url) if form == "anthropic" else ChatOpenAI(model="gpt-4.1", **options)
            purse = Purse(session=opened(None), through=True, way=way, first=True)
            alone: Any = create_agent(model, tools=[load_tools, call_tool])
            state = purse.run(alone if own else purse.agent(model))
        assert state["messages"][-1].text.strip() == "done"
        sent.append(assistant(server.bodies[-1]))
        assert (server.refusals, server.rewritten) == ([], 0)
    assert sent[0] == sent[1]
    assert (paid(), set(purse.streamed)) == ([3], {"load_tools", "pay"} if "stream" in way else set())


@pytest.mark.parametrize("way", WAYS)
def test_a_model_that_the_run_s_configuration_chooses_keeps_the_controls(
    opened: Callable[[Host | None], SyncSession], way: str
) -> None:
    """P3, D4: it is no chat model before there is a run; the limit counts, and the provider reads what it wrote."""
    written = call("call_tool", name="pay", arguments={"amount": 3})
    steps = [[(one.name, dict(one.arguments))] for one in (LOAD, written, written)]
    with StrictProvider(*steps, "done") as server:
        given: Any = {"configurable_fields": ("temperature",), "base_url": server.url, "api_key": "none"}
        model: Any = init_chat_model("claude-sonnet-4-5", model_provider="anthropic", **given)
        purse = Purse(session=opened(IN_RESULTS), through=True, way=way, first=True)
        state = purse.run(purse.agent(model, ToolCallLimitMiddleware(tool_name="pay", run_limit=1)))
    assert (paid(), state["messages"][-1].text.strip(), server.refusals) == ([3], "done", [])
    assert names_of_calls(state["messages"]) == ["load_tools", "pay", "pay"]
    blocks = [block for one in server.bodies[-1]["messages"] if one["role"] == "assistant" for block in one["content"]]
    assert [block["name"] for block in blocks] == ["load_tools", "call_tool", "call_tool"]
