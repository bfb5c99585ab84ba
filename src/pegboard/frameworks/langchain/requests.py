"""Requests of LangChain to a model with what a session has, and the answers to them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, cast

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.runtime import Runtime

from pegboard.board.session import Session
from pegboard.frameworks import runs
from pegboard.frameworks.langchain.answer_ends import cut_of, with_unreadable
from pegboard.frameworks.langchain.graph_runs import AnyRuntime
from pegboard.frameworks.langchain.named_calls import (
    RequestedTools,
    messages_as_written,
    name_of_tool,
    naming_model,
    with_tool_names,
)
from pegboard.frameworks.langchain.notes import (
    RequestNote,
    definitions_for,
    loaded_before,
    with_note,
    with_notes,
    with_prefix,
)
from pegboard.frameworks.runs import SessionRun
from pegboard.wire.kept_notes import ENDED

AnyModelRequest = ModelRequest[Any]
Response = ModelResponse[Any]


class SessionRequest(ModelRequest[Any]):
    """A request with what a session has: whatever model middleware behind gives to it, its twin is asked."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, (naming_model(value) or value) if name == "model" else value)


async def prepare_request(
    run: SessionRun, request: AnyModelRequest, session: Session
) -> tuple[AnyModelRequest, RequestNote, RequestedTools]:
    """Return a request with what the session has now, what is behind its newest message, and its tools."""
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
    messages, names = with_note(with_notes(request.messages), note.text), naming_model(request.model) is not None
    given = SessionRequest(**{one.name: getattr(request, one.name) for one in fields(request)}).override(
        messages=messages if names else cast("list[AnyMessage]", [*map(messages_as_written, messages)]),
        system_message=with_prefix(request.system_message, step.prefix),
        tools=[*request.tools, *step.functions],
        tool_choice="any" if step.choice == "required" else request.tool_choice,
    )
    return given, note, tools


def with_named(response: Response, tools: RequestedTools) -> Response:
    """Return an answer with the calls of the tools that it names, which a model of the configuration does not name."""
    return replace(response, result=[with_tool_names(response.result[0], tools.own), *response.result[1:]])


def without_rejected(request: AnyModelRequest, rejected: Collection[str]) -> AnyModelRequest:
    """Return a request without tools that its provider does not take."""
    return request.override(tools=[tool for tool in request.tools if name_of_tool(tool) not in rejected])


def without_last_calls(run: SessionRun, response: Response) -> Response:
    """Return an answer of the model; one that has to be the last calls nothing."""
    answer = response.result[0]
    if not isinstance(answer, AIMessage):
        return response
    if response.structured_response is None:
        answer = with_unreadable(answer)
        response = replace(response, result=[answer, *response.result[1:]])
    calls = answer.tool_calls if response.structured_response is None else ()
    content, cut = answer.text or response.structured_response, cut_of(answer)
    if run.take_answer(content=content, calls=calls, cut=cut) or not calls:
        return response
    kept = [
        one for one in answer.content if isinstance(one, str) or one.get("type") not in ("tool_use", "function_call")
    ]
    without = answer.model_copy(
        update={"tool_calls": [], "content": kept if isinstance(answer.content, list) else answer.content}
    )
    return replace(response, result=[without])


def with_text(response: Response, text: str) -> Response:
    """Return an answer with a text behind its own."""
    answer = response.result[-1]
    content = (
        [*answer.content, {"type": "text", "text": text}]
        if isinstance(answer.content, list)
        else f"{answer.content}{text}"
    )
    return replace(response, result=[*response.result[:-1], answer.model_copy(update={"content": content})])


def request_of(
    model: BaseChatModel,
    messages: Sequence[AnyMessage],
    runtime: AnyRuntime,
    tools: Sequence[BaseTool | dict[str, Any]],
) -> AnyModelRequest:
    """Return the request of a node of a graph of one's own, as LangChain's agents make one."""
    first = messages[0] if messages else None
    system = first if isinstance(first, SystemMessage) else None
    rest = list(messages[1:] if system is not None else messages)
    return ModelRequest(
        model=model, messages=rest, system_message=system, tools=list(tools), runtime=cast("Runtime[Any]", runtime)
    )


def bind_model(request: AnyModelRequest) -> Runnable[Any, Any]:
    """Return the model of a request with its tools."""
    return request.model.bind_tools(request.tools, tool_choice=request.tool_choice) if request.tools else request.model


def messages_to_send(request: AnyModelRequest) -> list[AnyMessage]:
    """Return the messages of a request as its model is given them."""
    return request.messages if request.system_message is None else [request.system_message, *request.messages]
