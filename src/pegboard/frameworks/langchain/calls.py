"""Calls of a session's tools in a run of LangChain: how they are made, and what the model reads of them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from langchain.tools import ToolRuntime
from langchain_core.messages import AnyMessage, ToolCall, ToolMessage

from pegboard.board.session import Session
from pegboard.core.model.tools import EMPTY
from pegboard.core.state.call_plans import CallAnswer
from pegboard.frameworks import runs
from pegboard.frameworks.langchain.named_calls import added_by_host, call_for_session
from pegboard.frameworks.langchain.returned import under_way
from pegboard.frameworks.runs import SessionRun
from pegboard.ports.framework_runs import FrameworkRun

CALLING: ContextVar[ToolRuntime[Any, Any] | None] = ContextVar("pegboard_calling", default=None)
"""The run whose model has made the call that is carried out."""
_FILES: Final = frozenset({"application/pdf", "text/plain", "text/csv", "text/html", "text/markdown"})
_BLOCKS: Final = {"images": "image", "audios": "audio", "files": "file"}


def messages_of(request: Any) -> Sequence[AnyMessage]:
    """Return the messages of the state in which a call is made."""
    state: Any = request.state
    return state["messages"] if "messages" in state else getattr(state, "messages", state)


@contextmanager
def under_framework_run(request: Any) -> Generator[FrameworkRun, None, None]:
    """Let what is delegated meanwhile, and the tool that is called, know the run."""
    calling = CALLING.set(request.runtime)
    try:
        with under_way(request.runtime) as run:
            yield run
    finally:
        CALLING.reset(calling)


async def answer_to(
    run: SessionRun, messages: Sequence[AnyMessage], call: ToolCall, under_way: FrameworkRun, session: Session
) -> CallAnswer:
    """Return the session's answer to a call; what the host adds beside the schema goes to the tool's code alone."""
    added, tool = added_by_host(messages, call), session.known_tool(call["name"])
    if added and tool is not None:
        known = tool.input_schema.get("properties") or EMPTY
        under_way.given.update({key: value for key, value in added.items() if key not in known})
        call = {**call, "args": {key: value for key, value in call["args"].items() if key not in under_way.given}}
    name, arguments = call_for_session(messages, call)
    return await run.call(name, run.calls_made_at, None, arguments, session)


def message_of(answer: CallAnswer, name: str, call_id: str | None) -> ToolMessage:
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
