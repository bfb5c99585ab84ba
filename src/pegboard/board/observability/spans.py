"""One span for each call that a session answers, by OpenTelemetry's conventions for GenAI (``execute_tool``).

It is under the span of the caller, and over those that the call makes. It has no argument and no result, unless
the user wants them (``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT``); then secrets in them are masked.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from pegboard.core.model.masking import Masker
from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import JsonObject
from pegboard.core.state.active_tools import LoadedTool
from pegboard.core.state.call_plans import CallAnswer, CallStatus
from pegboard.dialects.names import META_PLUGIN
from pegboard.ports import SessionKey
from pegboard.support.tracing import captures_content

_WAITING: Final = ("needs_approval", "needs_login")
_RAN: Final[frozenset[CallStatus]] = frozenset({"ok", "error", "timeout"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanStart:
    """What a span begins with.

    Attributes:
        key: the session.
        name: the wire name that the model wrote; empty where a call is resumed, until its tool is known.
        arguments: those of the call, None where it is resumed.
        call_id: the name that the provider of the model gave the call, or None.
        approval: the approval that the call is resumed with, or None.
        masker: what hides secrets.
    """

    key: SessionKey
    name: str
    arguments: JsonObject | None
    call_id: str | None
    approval: str | None
    masker: Masker


class CalledSession(Protocol):
    """A session as a call left it."""

    @property
    def decided(self) -> Mapping[str, Any]:
        """Return how its tools were found to run, by wire name."""
        ...


async def run_in_span(
    tracer: Any, start: SpanStart, call: Callable[[], Awaitable[tuple[CalledSession, CallAnswer, bool]]]
) -> CallAnswer:
    """Return the answer of a call that is carried out within a span of its own.

    Args:
        tracer: OpenTelemetry's.
        start: what the span begins with.
        call: returns the session after the call, the answer, and whether the next request has other tools.
    """
    trace: Any = sys.modules["opentelemetry.trace"]
    span = tracer.start_span(_name(start.name), attributes=_span_attributes(start))
    with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        try:
            session, answer, changed = await call()
        except BaseException as error:
            _mark_failed(span, type(error).__qualname__)
            raise
        if span.is_recording():
            _describe(span, start, session, answer, changed=changed)
        return answer


def _name(tool: str) -> str:
    return f"execute_tool {one_line(tool, limit=100)}".strip()


def _span_attributes(start: SpanStart) -> dict[str, Any]:
    key = start.key
    found = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": one_line(start.name, limit=100),
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": start.call_id,
        "gen_ai.agent.name": key.agent,
        "gen_ai.conversation.id": key.session,
        "pegboard.approval.id": start.approval,
    }
    return {name: value for name, value in found.items() if value}


def _describe(span: Any, start: SpanStart, session: CalledSession, answer: CallAnswer, *, changed: bool) -> None:
    tool = answer.tool
    decided = session.decided.get(tool.wire) if tool is not None else None
    ran = answer.status in _RAN
    decision = "allowed" if ran else answer.status if answer.status in _WAITING else "refused"
    found: dict[str, Any] = {
        "pegboard.decision": decision,
        "pegboard.status": answer.status,
        "pegboard.reason": answer.reason or (None if ran else answer.status),
        "pegboard.list_changed": changed,
    }
    if tool is not None:
        found["pegboard.plugin"] = tool.plugin
        if tool.plugin != META_PLUGIN and tool.wire != start.name:
            found["gen_ai.tool.name"] = tool.wire
            span.update_name(_name(tool.wire))
    if decided is not None:
        loaded: LoadedTool = decided.tool
        found["pegboard.lease"] = str(loaded.until)
        found["pegboard.lease.reason"] = loaded.because[0].value
    if answer.approval is not None:
        found["pegboard.approval.id"] = answer.approval.id
    if captures_content():
        found |= _content(start, answer)
    span.set_attributes({name: value for name, value in found.items() if value is not None})
    if answer.is_error:
        _mark_failed(span, answer.status)


def _content(start: SpanStart, answer: CallAnswer) -> dict[str, Any]:
    mask = start.masker.value
    content = {"gen_ai.tool.call.result": _text(mask([dict(block) for block in answer.result.content]))}
    if start.arguments is not None:
        content["gen_ai.tool.call.arguments"] = _text(mask(dict(start.arguments)))
    return content


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _mark_failed(span: Any, kind: str) -> None:
    trace: Any = sys.modules["opentelemetry.trace"]
    span.set_attribute("error.type", kind)
    span.set_status(trace.StatusCode.ERROR, kind)
