"""Agno: an agent or a team that has the tools of a session, anew before every model call.

```
agent = equip(Agent(model=model), session)
```

Agno fixes the tools of a run before its loop, so these go around it. The agent gets one function that stands for its
session; a twin of its model puts into each request what the session has then, and lets the session answer every call.
The loop, the history and the answer stay Agno's: one run, one model, and what is loaded is there at the next request.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from typing import Any, Final, TypeVar

from pegboard.board.session import Session
from pegboard.core.model.tools import JsonObject
from pegboard.core.state.call_plans import CallAnswer
from pegboard.core.surface.continuations import LIMIT
from pegboard.errors import UsageError
from pegboard.frameworks.runs import AnySession, Run, arguments_of, in_event_loop, text_and_media, twin, type_of_field

try:
    from agno.agent import Agent
    from agno.media import Audio, File, Image
    from agno.models.base import Model
    from agno.models.message import Message
    from agno.models.response import ModelResponse, ModelResponseEvent, ToolExecution
    from agno.run import RunContext
    from agno.team import Team
    from agno.tools.function import Function, FunctionCall, ToolResult, UserInputField
    from pydantic import Field, PrivateAttr
except ImportError as error:
    raise ImportError("Agno is missing. Install it: pip install 'pegboard[agno]'") from error

Owner = TypeVar("Owner", Agent, Team)
OpenSession = Callable[[RunContext], AnySession | Awaitable[Session]]
Request = dict[str, Any]
FUNCTION: Final = "pegboard_session"


def equip(agent: Owner, session: AnySession | OpenSession, *, limit: int = LIMIT) -> Owner:
    """Return the agent or team with the tools of a session behind its own, which win where a name is the same.

    Args:
        agent: it has a model; instructions, hooks, memory and other tools stay as they are.
        session: the session, or what opens one for a run from its ``session_id`` and ``user_id``.
        limit: how often in a row the tools of a run change without one being used; then the model has to answer.

    Raises:
        UsageError: the agent has no model.
    """
    if not isinstance(agent.model, Model):
        raise UsageError("The agent has no model of its own.", hint="Give it one first: Agent(model=...).")
    owner: Any = agent
    owner.model = twin(agent.model, _Steps)
    owner.add_tool(_SessionFunction(name=FUNCTION, session=session, limit=limit))
    return agent


def delegate_to(agent: Agent) -> Callable[[Session, str], Awaitable[str]]:
    """Return what runs delegated tasks, for ``board.on_delegate``: a copy of the agent with the tools of the child."""

    async def run(child: Session, task: str) -> str:
        one: Any = equip(agent.deep_copy(), child)
        done = await one.arun(task, session_id=child.key.session)
        return "The task is not done: a call of it waits for a person." if done.is_paused else str(done.content)

    return run


class _Definition(dict[str, Any]):
    """What Agno hands on of the function that stands for a session."""

    function: _SessionFunction


class _SessionFunction(Function):
    """The function that stands for a session; Agno copies it for each run, and each call has a copy of that."""

    session: Any = Field(exclude=True, repr=False)
    limit: int = Field(exclude=True)
    unfinished: dict[str, str] = Field(default_factory=dict, exclude=True, repr=False)
    answer: Any = Field(default=None, exclude=True, repr=False)
    skip_entrypoint_processing: bool = True
    _run: Run | None = PrivateAttr(default=None)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> _SessionFunction:
        return copy(self)

    @property
    def run(self) -> Run:
        """Return the run of this copy."""
        if self._run is None:
            self._run = Run(self._opened, self._named, self.unfinished, limit=self.limit)
        return self._run

    def _opened(self) -> AnySession | Awaitable[Session]:
        return self.session if isinstance(self.session, AnySession) else self.session(self._run_context)

    def _named(self) -> tuple[str, str]:
        assert self._run_context is not None
        return self._run_context.session_id, self._run_context.run_id

    def to_dict(self) -> dict[str, Any]:
        """Return the definition, in the place of which the model's twin puts others."""
        definition = _Definition(super().to_dict())
        definition.function = self
        return definition

    async def prepared(self, request: Request, session: Session) -> Request:
        """Return a request with what the session has now, and with what has changed since the one before."""
        messages: list[Message] = request["messages"]
        others = [tool for tool in request["tools"] if not isinstance(tool.get("function"), _Definition)]
        taken = {tool.get("function", {}).get("name") for tool in others}
        message = next((one.get_content_string() for one in reversed(messages) if one.role == "user"), None)
        if self.run.begins:
            await _settle(request.get("run_response"), session)
        step = await self.run.step(message if self.run.begins else None, taken, session)
        return {
            **request,
            "messages": _with_texts(messages, step.prefix, step.note),
            "tools": [*others, *step.functions],
            "tool_choice": step.choice or request.get("tool_choice"),
        }

    def seen(self, part: ModelResponse) -> ModelResponse:
        """Return an answer of the model, or a part of one; one that has to be the last calls nothing."""
        if not self.run.answered(content=part.content or part.images or part.audio, calls=part.tool_calls):
            part.tool_calls = []
        return part

    def call_of(self, name: str, fields: JsonObject | None = None) -> _SessionFunction:
        """Return a function for one call of any name; ``fields`` is what a person who approved it filled in."""
        one, use = copy(self), partial(self.run.call, name, time.monotonic(), fields)

        def run(**arguments: Any) -> ToolResult:
            one.answer = self.run.wait(partial(use, arguments))
            return _result(one.answer)

        async def arun(**arguments: Any) -> ToolResult:
            one.answer = await self.run.come(partial(use, arguments))
            return _result(one.answer)

        one.name, one.entrypoint = name, arun if in_event_loop() else run
        return one


class _Steps:
    """What the twin of a model does around each request and each batch of calls."""

    def invoke(self, *args: Any, **request: Any) -> ModelResponse:
        """Return the answer to a request with the session's tools."""
        own, function = _any(super()), _function_of(request)
        if function is None:
            return own.invoke(*args, **request)
        given = function.run.wait(partial(function.prepared, request))
        answer = function.seen(own.invoke(*args, **given))
        while function.run.asks_again():
            answer = function.seen(own.invoke(*args, **given))
        answer.content = f"{answer.content or ''}{function.run.wait(function.run.close)}" or None
        return answer

    async def ainvoke(self, *args: Any, **request: Any) -> ModelResponse:
        """Return the answer to a request with the session's tools."""
        own, function = _any(super()), _function_of(request)
        if function is None:
            return await own.ainvoke(*args, **request)
        given = await function.run.come(partial(function.prepared, request))
        answer = function.seen(await own.ainvoke(*args, **given))
        while function.run.asks_again():
            answer = function.seen(await own.ainvoke(*args, **given))
        answer.content = f"{answer.content or ''}{await function.run.come(function.run.close)}" or None
        return answer

    def invoke_stream(self, *args: Any, **request: Any) -> Iterator[ModelResponse]:
        """Yield the parts of the answer to a request with the session's tools."""
        own, function = _any(super()), _function_of(request)
        if function is None:
            yield from own.invoke_stream(*args, **request)
            return
        given = function.run.wait(partial(function.prepared, request))
        yield from map(function.seen, own.invoke_stream(*args, **given))
        while function.run.asks_again():
            yield from map(function.seen, own.invoke_stream(*args, **given))
        yield ModelResponse(content=function.run.wait(function.run.close) or None)

    async def ainvoke_stream(self, *args: Any, **request: Any) -> AsyncIterator[ModelResponse]:
        """Yield the parts of the answer to a request with the session's tools."""
        own, function, again = _any(super()), _function_of(request), True
        given = request if function is None else await function.run.come(partial(function.prepared, request))
        while again:
            async for part in own.ainvoke_stream(*args, **given):
                yield part if function is None else function.seen(part)
            again = function is not None and function.run.asks_again()
        if function is not None:
            yield ModelResponse(content=await function.run.come(function.run.close) or None)

    def get_function_calls_to_run(
        self, assistant_message: Message, messages: list[Message], functions: dict[str, Function] | None = None
    ) -> list[FunctionCall]:
        """Return the calls of a batch; what is no function of the agent's own is asked of the session."""
        own, function, known = _any(super()), _function_in(functions), dict(functions or {})
        written = {call.get("id"): call.get("function", {}) for call in assistant_message.tool_calls or ()}
        if function is not None:
            known.pop(FUNCTION, None)
            known |= {n: function.call_of(n) for one in written.values() if (n := str(one.get("name"))) not in known}
        calls: list[FunctionCall] = own.get_function_calls_to_run(assistant_message, messages, known)
        for call in calls:
            if function is not None and isinstance(call.function, _SessionFunction):
                call.function = function.call_of(call.function.name)
                call.arguments = arguments_of(written.get(call.call_id, {}).get("arguments")) or call.arguments
        return calls

    def get_function_call_to_run_from_tool_execution(
        self, tool_execution: ToolExecution, functions: dict[str, Function] | None = None
    ) -> FunctionCall:
        """Return the call that a run goes on with, once a person has approved it."""
        own, function, name = _any(super()), _function_in(functions), str(tool_execution.tool_name)
        if function is None or name in (functions or {}):
            return own.get_function_call_to_run_from_tool_execution(tool_execution, functions)
        fields = {field.name: field.value for field in tool_execution.user_input_schema or ()}
        arguments, call_id = tool_execution.tool_args, tool_execution.tool_call_id
        return FunctionCall(function=function.call_of(name, fields), arguments=arguments, call_id=call_id)

    def run_function_calls(
        self, function_calls: list[FunctionCall], function_call_results: list[Message], **options: Any
    ) -> Iterator[Any]:
        """Yield what becomes of a batch of calls; where a person approves one, the run waits."""
        events = _any(super()).run_function_calls(function_calls, function_call_results, **options)
        yield from map(partial(_judged, function_calls), events)
        function_call_results[:] = _answered(function_calls, function_call_results)

    async def arun_function_calls(
        self, function_calls: list[FunctionCall], function_call_results: list[Message], **options: Any
    ) -> AsyncIterator[Any]:
        """Yield what becomes of a batch of calls; where a person approves one, the run waits."""
        judged = () if options.get("skip_pause_check") else function_calls
        async for event in _any(super()).arun_function_calls(function_calls, function_call_results, **options):
            yield _judged(judged, event)
        function_call_results[:] = _answered(judged, function_call_results)


def _any(own: Any) -> Any:
    """Return what stands behind the twin, which no type names."""
    return own


def _function_of(request: Request) -> _SessionFunction | None:
    found = (tool.get("function") for tool in request.get("tools") or ())
    return next((definition.function for definition in found if isinstance(definition, _Definition)), None)


def _function_in(functions: Mapping[str, Function] | None) -> _SessionFunction | None:
    return next((one for one in (functions or {}).values() if isinstance(one, _SessionFunction)), None)


def _answers(calls: Sequence[FunctionCall]) -> dict[str | None, CallAnswer]:
    answers = {call.call_id: call.function.answer for call in calls if isinstance(call.function, _SessionFunction)}
    return {call_id: answer for call_id, answer in answers.items() if answer is not None}


def _judged(calls: Sequence[FunctionCall], event: Any) -> Any:
    """Return an event of a batch: a call that waits for a person pauses its run, one that failed says so."""
    answers = _answers(calls) if getattr(event, "event", "") == ModelResponseEvent.tool_call_completed.value else {}
    for execution in event.tool_executions if answers else ():
        answer = answers.get(execution.tool_call_id)
        if answer is None or answer.approval is None or answer.status != "needs_approval":
            execution.tool_call_error = answer.is_error if answer else execution.tool_call_error
            continue
        fields: JsonObject = answer.approval.fields.get("properties", {})
        form = [UserInputField(n, type_of_field(one), one.get("description")) for n, one in fields.items()]
        event.event, execution.result = ModelResponseEvent.tool_call_paused.value, None
        execution.approval_id, execution.user_input_schema = answer.approval.id, form or None
        execution.requires_confirmation = answer.approval.kind == "confirm" or None
        execution.requires_user_input = answer.approval.kind == "user_input" or None
        execution.external_execution_required = answer.approval.kind == "external" or None
        for call in (one for one in calls if one.call_id == execution.tool_call_id):
            call.function.requires_confirmation = True
    return event


def _answered(calls: Sequence[FunctionCall], results: Sequence[Message]) -> Iterator[Message]:
    """Yield the results of a batch for the model, without those that are waited for."""
    answers = _answers(calls)
    for result in results:
        answer = answers.get(result.tool_call_id)
        result.tool_call_error = answer.is_error if answer else result.tool_call_error
        if answer is None or answer.status != "needs_approval":
            yield result


async def _settle(run: Any, session: Session) -> None:
    """Take into the session what a person decided in Agno: a refusal, or the result of a call that ran elsewhere."""
    for call in (one for one in (run and run.tools) or () if one.approval_id and not one.is_paused):
        with suppress(UsageError):
            if call.confirmed is False:
                reason = str(call.confirmation_note or "")
                await session.approvals.refuse(call.approval_id, by=session.key.principal, reason=reason)
            elif call.external_execution_required is False:
                await session.resume(call.approval_id, result=call.result)


def _with_texts(messages: Sequence[Message], prefix: str, note: str) -> list[Message]:
    """Return the messages with a text behind the system's and one behind the newest; the history keeps neither."""
    sent = [*messages[:-1], _with_text(messages[-1], f"<system>{note}</system>" if note else "")]
    if sent[0].role in ("system", "developer"):
        return [_with_text(sent[0], prefix), *sent[1:]]
    return [Message(role="system", content=prefix), *sent] if prefix else sent


def _with_text(message: Message, text: str) -> Message:
    content = message.get_content_string()
    return message.model_copy(update={"content": f"{content}\n\n{text}" if content else text}) if text else message


def _result(answer: CallAnswer) -> ToolResult:
    text, media = text_and_media(answer.result, File.valid_mime_types())
    forms: dict[str, Any] = {"image": Image, "audio": Audio, "file": File}
    made = {
        kind: [form(content=m.data, mime_type=m.mime_type) for m in media if m.kind == kind]
        for kind, form in forms.items()
    }
    return ToolResult(
        content=text, images=made["image"] or None, audios=made["audio"] or None, files=made["file"] or None
    )
