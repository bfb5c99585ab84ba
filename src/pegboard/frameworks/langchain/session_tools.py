"""The middleware of LangChain that gives an agent the tools of a session."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelResponse, ToolCallRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphInterrupt
from langgraph.types import Command

from pegboard.core.state.call_plans import CallAnswer
from pegboard.core.surface.continuations import LIMIT
from pegboard.frameworks.langchain.approvals import decided_by, decision_of
from pegboard.frameworks.langchain.calls import answer_to, message_of, messages_of, under_framework_run
from pegboard.frameworks.langchain.graph_runs import AnyRuntime, GraphRuns, OpenSession, owner_of
from pegboard.frameworks.langchain.hooks import as_awaitable_hook
from pegboard.frameworks.langchain.named_calls import name_of_tool, with_requested_tools
from pegboard.frameworks.langchain.notes import keep_note_in_answer
from pegboard.frameworks.langchain.requests import (
    AnyModelRequest,
    Response,
    bind_model,
    messages_to_send,
    prepare_request,
    request_of,
    with_named,
    with_text,
    without_last_calls,
    without_rejected,
)
from pegboard.frameworks.langchain.returned import direct_answer, under_way, with_returned
from pegboard.frameworks.langchain.session_tool import SessionTool, failure, failure_message, is_failure
from pegboard.frameworks.owned_run import OwnedRun
from pegboard.frameworks.runs import AnySession
from pegboard.ports.framework_runs import FrameworkRun

ToolAnswer = ToolMessage | Command[Any]


class SessionTools(AgentMiddleware[Any, Any, Any]):
    """The tools of a session and all that belongs to them, for the runs of an agent.

    Args:
        session: the session, or what opens one for a run, from its context and its thread id.
        limit: how often in a row the tools of a run change without one being used; then the model has to answer.
    """

    def __init__(self, session: AnySession | OpenSession, *, limit: int = LIMIT) -> None:
        super().__init__()
        self.tools = []
        self._runs = GraphRuns(session, limit)

    # -- what LangChain asks for -----------------------------------------------------------------

    def wrap_model_call(self, request: AnyModelRequest, handler: Callable[[AnyModelRequest], Response]) -> Response:
        """Return what the model answers to a request with what the session has now."""
        run = self._runs.run_of(request.runtime, request.messages, request.model)
        if (direct := direct_answer(request.messages)) is not None:
            run.take_answer(content=direct.text, calls=())
            return self._end_run(run, ModelResponse(result=[direct]), run.with_session_sync(run.close))
        with run.under_way(owner_of(request.runtime)):
            with under_way(request.runtime):
                given, note, tools = run.with_session_sync(partial(prepare_request, run, request))
            response: Response | None = None
            while response is None or run.asks_model_again():
                try:
                    with with_requested_tools(tools):
                        response = without_last_calls(run, handler(given))
                except Exception as error:
                    rejected = run.with_session_sync(
                        partial(run.rejected_tools, error, [*map(name_of_tool, given.tools)])
                    )
                    if not rejected:
                        raise
                    given = without_rejected(given, rejected)
        return self._end_run(
            run, keep_note_in_answer(with_named(response, tools), note), run.with_session_sync(run.close)
        )

    @as_awaitable_hook
    async def awrap_model_call(
        self, request: AnyModelRequest, handler: Callable[[AnyModelRequest], Awaitable[Response]]
    ) -> Response:
        """Return what the model answers to a request with what the session has now."""
        run = self._runs.run_of(request.runtime, request.messages, request.model)
        if (direct := direct_answer(request.messages)) is not None:
            run.take_answer(content=direct.text, calls=())
            return self._end_run(run, ModelResponse(result=[direct]), await run.with_session(run.close))
        with run.under_way(owner_of(request.runtime)):
            with under_way(request.runtime):
                given, note, tools = await run.with_session(partial(prepare_request, run, request))
            response: Response | None = None
            while response is None or run.asks_model_again():
                try:
                    with with_requested_tools(tools):
                        response = without_last_calls(run, await handler(given))
                except Exception as error:
                    rejected = await run.with_session(
                        partial(run.rejected_tools, error, [*map(name_of_tool, given.tools)])
                    )
                    if not rejected:
                        raise
                    given = without_rejected(given, rejected)
        return self._end_run(
            run, keep_note_in_answer(with_named(response, tools), note), await run.with_session(run.close)
        )

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolAnswer]) -> ToolAnswer:
        """Return what a call came to; one that is not the agent's own tool passes through the session (P3)."""
        run, since = self._run_of_call(request), time.time()

        def answer_call(call: ToolCall) -> Any:
            with under_framework_run(request) as under_way:
                answer = run.with_session_sync(partial(answer_to, run, messages_of(request), call, under_way))
                if (decision := decision_of(answer, call["name"], call["id"], since)) is not None:
                    answer = run.with_session_sync(partial(decided_by, answer, decision))
            return _result_for_langchain(answer, call, under_way)

        own = None if run.cut else request.tool  # no call of an answer that was cut runs, the agent's own neither
        tool = SessionTool(name=request.tool_call["name"], answered=answer_call) if own is None else own
        try:
            return handler(request.override(tool=tool))
        except GraphInterrupt:
            run.with_session_sync(run.pause)
            raise
        except BaseException as error:
            return _message_of_failure(error, run)

    @as_awaitable_hook
    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolAnswer]]
    ) -> ToolAnswer:
        """Return what a call came to; one that is not the agent's own tool passes through the session (P3)."""
        run, since = self._run_of_call(request), time.time()

        async def answer_call(call: ToolCall) -> Any:
            with under_framework_run(request) as under_way:
                answer = await run.with_session(partial(answer_to, run, messages_of(request), call, under_way))
                if (decision := decision_of(answer, call["name"], call["id"], since)) is not None:
                    answer = await run.with_session(partial(decided_by, answer, decision))
            return _result_for_langchain(answer, call, under_way)

        own = None if run.cut else request.tool  # no call of an answer that was cut runs, the agent's own neither
        tool = SessionTool(name=request.tool_call["name"], answered=answer_call) if own is None else own
        try:
            return await handler(request.override(tool=tool))
        except GraphInterrupt:
            await run.with_session(run.pause)
            raise
        except BaseException as error:
            return _message_of_failure(error, run)

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
        request = request_of(model, messages, runtime, tools)
        return self.wrap_model_call(
            request, lambda given: ModelResponse(result=[bind_model(given).invoke(messages_to_send(given))])
        ).result[0]

    async def acall_model(
        self,
        model: BaseChatModel,
        messages: Sequence[AnyMessage],
        runtime: AnyRuntime,
        tools: Sequence[BaseTool | dict[str, Any]] = (),
    ) -> BaseMessage:
        """Return what a model answers with the tools of the session, as `call_model` does."""

        async def call_model_without_middleware(given: AnyModelRequest) -> Response:
            return ModelResponse(result=[await bind_model(given).ainvoke(messages_to_send(given))])

        return (
            await self.awrap_model_call(request_of(model, messages, runtime, tools), call_model_without_middleware)
        ).result[0]

    def _run_of_call(self, request: ToolCallRequest) -> OwnedRun:
        """Return the run whose model has made a call; it goes on."""
        run = self._runs.run_of(request.runtime, messages_of(request))
        run.go_on(owner_of(request.runtime))
        return run

    def _end_run(self, run: OwnedRun, response: Response, closing: str) -> Response:
        """Return an answer with what the user reads behind it; a run that is over is known no longer."""
        if run.over:
            self._runs.forget(run)
        return with_text(response, closing) if closing else response


def _result_for_langchain(answer: CallAnswer, call: ToolCall, under_way: FrameworkRun) -> Any:
    """Return what LangChain is given of a call; raises what middleware behind ours sees of one that failed."""
    message = with_returned(message_of(answer, call["name"], call["id"]), answer, under_way)
    if answer.status == "error":
        raise failure(message, under_way.raised[-1] if under_way.raised else None)
    return message


def _message_of_failure(error: BaseException, run: OwnedRun) -> ToolMessage:
    """Return what the model reads of a call that failed; raises what middleware before sees, or ends the run."""
    if not is_failure(error):
        run.give_up()
        raise error
    return failure_message(error)
