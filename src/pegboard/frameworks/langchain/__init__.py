"""LangChain and LangGraph: a middleware that gives an agent the tools of a session, anew before every model call.

``create_agent(model, middleware=[SessionTools(session)])`` is all that an agent needs. A call that a person
approves is an ``interrupt()`` inside it: with a checkpointer it outlives the process, and is answered by
``Command(resume=…)``.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast

from pegboard.board.session import Session
from pegboard.core.model.delivery import Host, without_native
from pegboard.core.model.model_hosts import host_for
from pegboard.core.model.tools import EMPTY, JsonObject
from pegboard.core.state.call_plans import CallAnswer
from pegboard.core.surface.continuations import LIMIT
from pegboard.frameworks import runs
from pegboard.frameworks.runs import AnySession, SessionRun
from pegboard.frameworks.versions import warn_if_untested
from pegboard.ports.framework_runs import FrameworkRun
from pegboard.wire.acceptable_schemas import SchemaProvider, provider_of
from pegboard.wire.kept_notes import ENDED
from pegboard.wire.provider_forms import cut_by

warn_if_untested("langchain")
try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse, ToolCallRequest
    from langchain.tools import ToolRuntime
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import (
        AIMessage,
        AnyMessage,
        BaseMessage,
        HumanMessage,
        SystemMessage,
        ToolCall,
        ToolMessage,
    )
    from langchain_core.runnables import Runnable, RunnableConfig
    from langchain_core.tools import BaseTool
    from langgraph.runtime import Runtime
    from langgraph.types import Command

    from pegboard.frameworks.langchain.approvals import decided_by, decision_of
    from pegboard.frameworks.langchain.hooks import awaited
    from pegboard.frameworks.langchain.named_calls import (
        RequestedTools,
        added_by_host,
        as_written,
        name_of_tool,
        named,
        naming_model,
        of_session,
        requested,
    )
    from pegboard.frameworks.langchain.notes import (
        RequestNote,
        definitions_for,
        loaded_before,
        noted,
        with_note,
        with_notes,
        with_prefix,
    )
    from pegboard.frameworks.langchain.returned import direct_answer, under_way, with_returned
    from pegboard.frameworks.langchain.session_tool import SessionTool, failed, failure
except ImportError as error:
    from pegboard.support.installed import install_line

    raise ImportError(f"LangChain is missing. Install it: {install_line(extra='langchain')}") from error

AnyRuntime = Runtime[Any] | ToolRuntime[Any, Any]
OpenSession = Callable[[AnyRuntime], AnySession | Awaitable[Session]]
MakeAgent = Callable[[Session], Runnable[Any, Any]]
AnyModelRequest = ModelRequest[Any]
Response = ModelResponse[Any]
ToolAnswer = ToolMessage | Command[Any]

_CALLING: ContextVar[ToolRuntime[Any, Any] | None] = ContextVar("pegboard_calling", default=None)
"""The run whose model has made the call that is carried out."""
_FILES: Final = frozenset({"application/pdf", "text/plain", "text/csv", "text/html", "text/markdown"})
_BLOCKS: Final = {"images": "image", "audios": "audio", "files": "file"}
_PROVIDERS: Final = {"langchain_anthropic": "anthropic", "langchain_openai": "chat"}
_FAKES: Final = "langchain_core.language_models.fake_chat_models"
_MOST: Final = 1_000
"""How many runs are known that were given up and never begun anew."""


class SessionTools(AgentMiddleware[Any, Any, Any]):
    """The tools of a session and all that belongs to them, for the runs of an agent.

    Args:
        session: the session, or what opens one for a run, from its context and its thread id.
        limit: how often in a row the tools of a run change without one being used; then the model has to answer.
    """

    def __init__(self, session: AnySession | OpenSession, *, limit: int = LIMIT) -> None:
        super().__init__()
        self.tools = []
        self._session = session
        self._limit = limit
        self._runs: OrderedDict[tuple[str, str], SessionRun] = OrderedDict()

    # -- what LangChain asks for -----------------------------------------------------------------

    def wrap_model_call(self, request: AnyModelRequest, handler: Callable[[AnyModelRequest], Response]) -> Response:
        """Return what the model answers to a request with what the session has now."""
        run = self._run(request.runtime, request.messages, request.model)
        if (direct := direct_answer(request.messages)) is not None:
            run.answered(content=direct.text, calls=())
            return self._ended(run, ModelResponse(result=[direct]), run.with_session_sync(run.close))
        with under_way(request.runtime):
            given, note, tools = run.with_session_sync(partial(_prepared, run, request))
        response: Response | None = None
        while response is None or run.asks_again():
            try:
                with requested(tools):
                    response = _seen(run, handler(given))
            except Exception as error:
                rejected = run.with_session_sync(partial(run.rejects, error, [*map(name_of_tool, given.tools)]))
                if not rejected:
                    raise
                given = _without(given, rejected)
        return self._ended(run, noted(_named(response, tools), note), run.with_session_sync(run.close))

    @awaited
    async def awrap_model_call(
        self, request: AnyModelRequest, handler: Callable[[AnyModelRequest], Awaitable[Response]]
    ) -> Response:
        """Return what the model answers to a request with what the session has now."""
        run = self._run(request.runtime, request.messages, request.model)
        if (direct := direct_answer(request.messages)) is not None:
            run.answered(content=direct.text, calls=())
            return self._ended(run, ModelResponse(result=[direct]), await run.with_session(run.close))
        with under_way(request.runtime):
            given, note, tools = await run.with_session(partial(_prepared, run, request))
        response: Response | None = None
        while response is None or run.asks_again():
            try:
                with requested(tools):
                    response = _seen(run, await handler(given))
            except Exception as error:
                rejected = await run.with_session(partial(run.rejects, error, [*map(name_of_tool, given.tools)]))
                if not rejected:
                    raise
                given = _without(given, rejected)
        return self._ended(run, noted(_named(response, tools), note), await run.with_session(run.close))

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolAnswer]) -> ToolAnswer:
        """Return what a call came to; one that is not the agent's own tool passes through the session (P3)."""
        if request.tool is not None:
            return handler(request)
        run, since = self._run_of(request), time.time()

        def answered(call: ToolCall) -> Any:
            with _calling(request) as under_way:
                answer = run.with_session_sync(partial(_answer, run, _messages_of(request), call, under_way))
                if (decision := decision_of(answer, call["name"], call["id"], since)) is not None:
                    answer = run.with_session_sync(partial(decided_by, answer, decision))
            message = with_returned(_message(answer, call["name"], call["id"]), answer, under_way)
            if answer.status == "error":
                raise failure(message, under_way.raised[-1] if under_way.raised else None)
            return message

        try:
            return handler(request.override(tool=SessionTool(name=request.tool_call["name"], answered=answered)))
        except Exception as error:
            return failed(error)

    @awaited
    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolAnswer]]
    ) -> ToolAnswer:
        """Return what a call came to; one that is not the agent's own tool passes through the session (P3)."""
        if request.tool is not None:
            return await handler(request)
        run, since = self._run_of(request), time.time()

        async def answered(call: ToolCall) -> Any:
            with _calling(request) as under_way:
                answer = await run.with_session(partial(_answer, run, _messages_of(request), call, under_way))
                if (decision := decision_of(answer, call["name"], call["id"], since)) is not None:
                    answer = await run.with_session(partial(decided_by, answer, decision))
            message = with_returned(_message(answer, call["name"], call["id"]), answer, under_way)
            if answer.status == "error":
                raise failure(message, under_way.raised[-1] if under_way.raised else None)
            return message

        try:
            return await handler(request.override(tool=SessionTool(name=request.tool_call["name"], answered=answered)))
        except Exception as error:
            return failed(error)

    # -- for a graph of one's own ----------------------------------------------------------------

    def call_model(
        self,
        model: BaseChatModel,
        messages: Sequence[AnyMessage],
        runtime: AnyRuntime,
        tools: Sequence[BaseTool | dict[str, Any]] = (),
    ) -> BaseMessage:
        """Return what a model answers with the tools of the session, for a node of a graph of one's own.

        Args:
            model: any chat model that takes tools.
            messages: the conversation, a system message first where there is one.
            runtime: that of the node.
            tools: the graph's own, which win where a name is the same.
        """
        request = _request_of(model, messages, runtime, tools)
        return self.wrap_model_call(
            request, lambda given: ModelResponse(result=[_bound(given).invoke(_sent(given))])
        ).result[0]

    async def acall_model(
        self,
        model: BaseChatModel,
        messages: Sequence[AnyMessage],
        runtime: AnyRuntime,
        tools: Sequence[BaseTool | dict[str, Any]] = (),
    ) -> BaseMessage:
        """Return what a model answers with the tools of the session, as `call_model` does."""

        async def answered(given: AnyModelRequest) -> Response:
            return ModelResponse(result=[await _bound(given).ainvoke(_sent(given))])

        return (await self.awrap_model_call(_request_of(model, messages, runtime, tools), answered)).result[0]

    # -- the runs -------------------------------------------------------------------------------

    def _run(
        self, runtime: AnyRuntime, messages: Sequence[AnyMessage], model: BaseChatModel | None = None
    ) -> SessionRun:
        """Return the run that a conversation is in: it is named by the user's newest message."""
        info = runtime.execution_info
        own = next((str(one.id) for one in reversed(messages) if isinstance(one, HumanMessage)), "")
        thread, graph = (None, "") if info is None else (info.thread_id, info.checkpoint_ns.rpartition("|")[0])
        if thread is None:
            thread = "" if isinstance(self._session, AnySession) else own
        key = f"{thread}|{graph}", own
        run = self._runs.get(key)
        if run is None:
            while len(self._runs) >= _MOST:
                self._runs.popitem(last=False)
            opens, host = partial(self._opened, runtime), _host_for(model)
            provider = _provider_of(model)
            run = SessionRun(opens, lambda: key, limit=self._limit, host=host, provider=provider)
            self._runs[key] = run
        return run

    def _run_of(self, request: Any) -> SessionRun:
        """Return the run whose model has made a call."""
        return self._run(request.runtime, _messages_of(request))

    def _opened(self, runtime: AnyRuntime) -> AnySession | Awaitable[Session]:
        return self._session if isinstance(self._session, AnySession) else self._session(runtime)

    def _ended(self, run: SessionRun, response: Response, closing: str) -> Response:
        """Return an answer with what the user reads behind it; a run that is over is known no longer."""
        if run.over:
            self._runs = OrderedDict((key, one) for key, one in self._runs.items() if one is not run)
        return _with_text(response, closing) if closing else response


def delegate_to(
    agents: MakeAgent | Mapping[str, MakeAgent], *, events: Callable[[Any], object] | None = None
) -> Callable[[Session, str], Awaitable[str]]:
    """Return what runs delegated tasks, for ``board.on_delegate``: an agent that is made over the child's session.

    It has the context and the callbacks of the run that delegates, by which its usage counts there.

    Args:
        agents: makes the agent for every child, or one for each by the name of the child's agent, or by its kind:
            ``lambda child: create_agent(model, middleware=[SessionTools(child)])``.
        events: takes what the child's model writes as it comes, ``(message, metadata)``; it must not wait.
    """

    async def run(child: Session, task: str) -> str:
        agent: Any = runs.worker_of(agents, child)(child)
        calling, config = _CALLING.get(), RunnableConfig(configurable={"thread_id": child.key.session})
        given = {} if calling is None or calling.context is None else {"context": calling.context}
        state: dict[str, Any] = {}
        begun = {"messages": [HumanMessage(task)]}
        async for mode, part in agent.astream(begun, config, stream_mode=["values", "messages"], **given):
            if mode == "values":
                state = {**state, **part}
            elif events is not None:
                events(part)
        if "__interrupt__" in state:
            return "The task is not done: a call of it waits for a person."
        return str(state["messages"][-1].text)

    return run


async def _prepared(
    run: SessionRun, request: AnyModelRequest, session: Session
) -> tuple[AnyModelRequest, RequestNote, RequestedTools]:
    """Return a request with what the session has now, what stands behind its newest message, and its tools."""
    newest = next((one for one in reversed(request.messages) if isinstance(one, AIMessage | HumanMessage)), None)
    message = newest.text if isinstance(newest, HumanMessage) else None
    taken = frozenset(map(name_of_tool, request.tools))
    tools = RequestedTools(own=taken, defined=partial(run.definition_to_choose, session, taken))
    await runs.load_chosen(session, taken, request.tool_choice)
    step = await run.step(message, taken, session)
    loaded, before = step.surface.suffix, loaded_before(request.messages)
    ahead = definitions_for(step, request.messages) if step.surface.ahead or step.beside else ""
    news = ((loaded or ENDED) if loaded != before else "", ahead, step.change)
    note = RequestNote(text=" ".join(text for text in news if text), loaded=loaded)
    messages, model = with_note(with_notes(request.messages), note.text), naming_model(request.model)
    given = request.override(
        model=request.model if model is None else model,
        messages=cast("list[AnyMessage]", [*map(as_written, messages)]) if model is None else messages,
        system_message=with_prefix(request.system_message, step.prefix),
        tools=[*request.tools, *step.functions],
        tool_choice="any" if step.choice == "required" else request.tool_choice,
    )
    return given, note, tools


def _named(response: Response, tools: RequestedTools) -> Response:
    """Return an answer with the calls of the tools that it names: a model that came in behind does not name them."""
    return replace(response, result=[named(response.result[0], tools.own), *response.result[1:]])


def _without(request: AnyModelRequest, rejected: Collection[str]) -> AnyModelRequest:
    """Return a request without tools that its provider does not take."""
    return request.override(tools=[tool for tool in request.tools if name_of_tool(tool) not in rejected])


def _seen(run: SessionRun, response: Response) -> Response:
    """Return an answer of the model; one that has to be the last calls nothing."""
    answer = response.result[0]
    if not isinstance(answer, AIMessage):
        return response
    calls = answer.tool_calls if response.structured_response is None else ()
    content, cut = answer.text or response.structured_response, _cut_of(answer)
    if run.answered(content=content, calls=calls, cut=cut) or not calls:
        return response
    kept = [
        one for one in answer.content if isinstance(one, str) or one.get("type") not in ("tool_use", "function_call")
    ]
    without = answer.model_copy(
        update={"tool_calls": [], "content": kept if isinstance(answer.content, list) else answer.content}
    )
    return replace(response, result=[without])


def _cut_of(answer: AIMessage) -> str:
    """Return why an answer of the model is not whole, or nothing, by what its provider says of its end."""
    about = answer.response_metadata
    details: JsonObject = about.get("incomplete_details") or EMPTY
    return cut_by(about.get("stop_reason") or about.get("finish_reason") or details.get("reason"))


async def _answer(
    run: SessionRun, messages: Sequence[AnyMessage], call: ToolCall, under_way: FrameworkRun, session: Session
) -> CallAnswer:
    """Return the session's answer to a call; what the host adds beside the schema goes to the tool's code alone."""
    added, tool = added_by_host(messages, call), session.known_tool(call["name"])
    if added and tool is not None:
        known = tool.input_schema.get("properties") or EMPTY
        under_way.given.update({key: value for key, value in added.items() if key not in known})
        call = {**call, "args": {key: value for key, value in call["args"].items() if key not in under_way.given}}
    name, arguments = of_session(messages, call)
    return await run.call(name, run.arrived, None, arguments, session)


def _messages_of(request: Any) -> Sequence[AnyMessage]:
    """Return the messages of the state in which a call is made."""
    state: Any = request.state
    return state["messages"] if "messages" in state else getattr(state, "messages", state)


def _with_text(response: Response, text: str) -> Response:
    answer = response.result[-1]
    content = (
        [*answer.content, {"type": "text", "text": text}]
        if isinstance(answer.content, list)
        else f"{answer.content}{text}"
    )
    return replace(response, result=[*response.result[:-1], answer.model_copy(update={"content": content})])


def _host_for(model: BaseChatModel | None) -> Host | None:
    """Return the host for the model of a run; None for one that is for tests, and so without a cache (D4)."""
    if model is None or any(kind.__module__ == _FAKES for kind in type(model).__mro__):
        return None
    return without_native(host_for(":".join(_form_and_name(model))))


def _provider_of(model: BaseChatModel | None) -> SchemaProvider:
    """Return whose rules the schemas of a run keep."""
    return "any" if model is None else provider_of(*_form_and_name(model))


def _form_and_name(model: BaseChatModel) -> tuple[str, str]:
    """Return the form in which a model is asked, where it is known, and the name of the model."""
    known: Any = model
    form = _PROVIDERS.get(type(model).__module__.partition(".")[0], "")
    if form == "chat" and getattr(known, "use_responses_api", None):
        form = "responses"
    return form, str(getattr(known, "model_name", None) or getattr(known, "model", ""))


@contextmanager
def _calling(request: Any) -> Generator[FrameworkRun, None, None]:
    """Let what is delegated meanwhile, and the tool that is called, know the run."""
    calling = _CALLING.set(request.runtime)
    try:
        with under_way(request.runtime) as run:
            yield run
    finally:
        _CALLING.reset(calling)


def _message(answer: CallAnswer, name: str, call_id: str | None) -> ToolMessage:
    """Return what the model reads of a call; the structured content goes along for the program."""
    text, media = runs.text_and_media(answer.result, _FILES)
    blocks: list[str | dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    for kind, found in media.items():
        for one in found:
            data = b64encode(one["content"]).decode()
            blocks.append({"type": _BLOCKS[kind], "base64": data, "mime_type": one["mime_type"]})
    return ToolMessage(
        content=blocks if media else text,
        artifact=answer.result.structured,
        name=name,
        tool_call_id=call_id or "",
        status="error" if answer.is_error else "success",
    )


def _request_of(
    model: BaseChatModel,
    messages: Sequence[AnyMessage],
    runtime: AnyRuntime,
    tools: Sequence[BaseTool | dict[str, Any]],
) -> AnyModelRequest:
    first = messages[0] if messages else None
    system = first if isinstance(first, SystemMessage) else None
    rest = list(messages[1:] if system is not None else messages)
    return ModelRequest(
        model=model, messages=rest, system_message=system, tools=list(tools), runtime=cast("Runtime[Any]", runtime)
    )


def _bound(request: AnyModelRequest) -> Runnable[Any, Any]:
    return request.model.bind_tools(request.tools, tool_choice=request.tool_choice) if request.tools else request.model


def _sent(request: AnyModelRequest) -> list[AnyMessage]:
    return request.messages if request.system_message is None else [request.system_message, *request.messages]
