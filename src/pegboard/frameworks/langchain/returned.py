"""What a tool of LangChain does to its run beside its result: commands, and results that end the run."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from pegboard.core.state.call_plans import CallAnswer
from pegboard.ports.framework_runs import FRAMEWORK_RUN, FrameworkRun

_DIRECT: Final = "pegboard_direct"
"""Where a result that ends its run, and the answer that repeats it, say so: their metadata, never sent."""


@contextmanager
def under_way(runtime: object) -> Generator[FrameworkRun, None, None]:
    """Let sources know the run that uses a session meanwhile."""
    run = FrameworkRun(context=runtime)
    before = FRAMEWORK_RUN.set(run)
    try:
        yield run
    finally:
        FRAMEWORK_RUN.reset(before)
        run.context = None  # what was started meanwhile, and lasts, has a copy of the context variable


def with_returned(message: ToolMessage, answer: CallAnswer, run: FrameworkRun) -> Any:
    """Return the result of a call as its tool returned it: with its commands and artifact, and marked where it ends.

    Raises:
        GraphBubbleUp: the tool itself asks a person, or leaves its graph.
    """
    beside = run.returned.get(answer.tool.id) if answer.tool is not None else None
    if beside is None:
        return message
    if isinstance(beside.raised, GraphBubbleUp):
        raise beside.raised
    if beside.artifact is not None:
        message.artifact = beside.artifact
    if beside.ends and not answer.is_error:
        message.response_metadata[_DIRECT] = True
    if beside.update is None or answer.is_error:
        return message
    parts = [_with_message(part, message) for part in beside.update]
    return parts if len(parts) > 1 else parts[0]


def _with_message(part: Any, message: ToolMessage) -> Any:
    """Return what a tool returned with the session's message in place of its own: that is bounded and masked."""
    if not isinstance(part, Command):
        return _replace_message(part, message)
    update: Any = part.update
    if isinstance(update, dict) and "messages" in update:
        messages = [_replace_message(one, message) for one in update["messages"]]
        made = copy(update)
        made["messages"] = messages
        return Command(graph=part.graph, update=made, resume=part.resume, goto=part.goto)
    return part


def _replace_message(one: Any, message: ToolMessage) -> Any:
    return message if isinstance(one, ToolMessage) and one.tool_call_id == message.tool_call_id else one


def direct_answer(messages: Sequence[AnyMessage]) -> AIMessage | None:
    """Return the answer with which a run ends whose newest calls all have results that end it; else None."""
    results: list[ToolMessage] = []
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            break
        if not message.response_metadata.get(_DIRECT):
            return None
        results.insert(0, message)
    if not results:
        return None
    content = results[0].content if len(results) == 1 else "\n\n".join(one.text for one in results)
    return AIMessage(content, response_metadata={_DIRECT: True})


def repeats_result(message: AnyMessage) -> bool:
    """Return whether a message repeats a result that ended its run; a model reads that once."""
    return isinstance(message, AIMessage) and bool(message.response_metadata.get(_DIRECT))
