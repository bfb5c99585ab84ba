"""The calls of one answer of a model of Agno: which of them wait for a person, and what they end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from agno.models.message import Message
from agno.models.response import ModelResponseEvent
from agno.tools.function import FunctionCall, UserInputField

from pegboard.core.model.tools import JsonObject
from pegboard.frameworks import runs
from pegboard.frameworks.agno.session_function import AgnoSessionFunction
from pegboard.frameworks.owned_run import OwnedRun
from pegboard.frameworks.runs import SessionFunction

_FLAGS: Final = {"confirm": "requires_confirmation", "user_input": "requires_user_input"}


class CallBatch(list[FunctionCall]):
    """The calls of an answer, with the run whose model has made them."""

    def __init__(self, calls: Sequence[FunctionCall], run: OwnedRun | None) -> None:
        super().__init__(calls)
        self.run = run
        self.waits = False


def finish_event(calls: Sequence[FunctionCall], event: Any) -> Any:
    """Return an event of a batch: a call that waits for a person pauses its run, one that failed says so."""
    completed = calls and getattr(event, "event", "") == ModelResponseEvent.tool_call_completed.value
    for execution in event.tool_executions if completed else ():
        function = _function_for(execution.tool_call_id, calls)
        if function is None or function.answer is None:
            continue
        execution.tool_call_error = function.answer.is_error
        if (approval := function.waits_for) is not None:
            fields: JsonObject = approval.fields.get("properties", {})
            form = [UserInputField(n, runs.type_of_field(one), one.get("description")) for n, one in fields.items()]
            event.event, execution.result = ModelResponseEvent.tool_call_paused.value, None
            execution.approval_id, execution.user_input_schema = approval.id, form or None
            setattr(execution, _FLAGS.get(approval.kind, "external_execution_required"), True)
            function.requires_confirmation = True
        elif (login := runs.about_login(function.answer)) is not None:
            event.event, execution.result = ModelResponseEvent.tool_call_paused.value, None
            execution.approval_id, execution.requires_confirmation = login["id"], True
            execution.confirmation_note = function.answer.message
            function.requires_confirmation = True
    if isinstance(calls, CallBatch) and getattr(event, "event", "") == ModelResponseEvent.tool_call_paused.value:
        calls.waits = True
    return event


def batch_under_way(calls: Sequence[FunctionCall]) -> AbstractContextManager[None]:
    """Let the run of a batch go on meanwhile."""
    run = calls.run if isinstance(calls, CallBatch) else None
    return nullcontext() if run is None else run.under_way(None)


def ends_of_batch(
    calls: Sequence[FunctionCall], results: Sequence[Message]
) -> Iterator[tuple[OwnedRun, SessionFunction[object]]]:
    """Yield the run that a batch ends, or that waits for a person behind it, and what that is for its session."""
    run = calls.run if isinstance(calls, CallBatch) else None
    if run is None or not isinstance(calls, CallBatch):
        return
    if calls.waits:
        yield run, run.pause
    elif any(one.stop_after_tool_call for one in results):
        run.take_answer(content=None, calls=())
        yield run, run.close


def returned_results(calls: Sequence[FunctionCall], results: Sequence[Message]) -> Iterator[Message]:
    """Yield the results of a batch for the model, without those that are waited for."""
    for result in results:
        function = _function_for(result.tool_call_id, calls)
        if function is not None and function.answer is not None:
            result.tool_call_error = function.answer.is_error
        if function is not None and function.passed is not None:
            result.tool_name = function.passed.via  # some providers want the name of the call
        if function is None or not function.waits:
            yield result


def _function_for(call_id: str | None, calls: Sequence[FunctionCall]) -> AgnoSessionFunction | None:
    for call in calls:
        if call.call_id == call_id and isinstance(call.function, AgnoSessionFunction):
            return call.function
    return None
