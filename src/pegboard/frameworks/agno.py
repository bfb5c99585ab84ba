"""Agno: an agent or a team that has the tools of a session, anew before every model call.

```
agent = equip(Agent(model=model), session)
```

Agno fixes the tools of a run before its loop, so these go around it. The agent gets one function that stands for its
session; a twin of its model puts into each request what the session has then, and lets the session answer every call.
The loop, the history and the answer stay Agno's: one run, one model, and what is loaded is there at the next request.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import cache, partial
from typing import Any, Final, TypeVar

from pegboard.board.session import Session
from pegboard.core.model.tools import CallResult, Tool
from pegboard.core.surface.continuations import LIMIT
from pegboard.errors import UsageError
from pegboard.frameworks.runs import AnySession, Run, arguments_of, in_event_loop, text_and_media

try:
    from agno.agent import Agent
    from agno.media import Audio, File, Image
    from agno.models.base import Model
    from agno.models.message import Message
    from agno.models.response import ModelResponse
    from agno.run import RunContext
    from agno.team import Team
    from agno.tools.function import Function, FunctionCall, ToolResult
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
    owner.model = _twin(agent.model)
    owner.add_tool(_SessionFunction(name=FUNCTION, session=session, limit=limit))
    return agent


def delegate(agent_of: Callable[[Session], Agent]) -> Callable[[Session, str], Awaitable[str]]:
    """Return what runs delegated tasks, for ``board.on_delegate``.

    Args:
        agent_of: makes the agent for the session of a child; it is equipped here.
    """

    async def run(child: Session, task: str) -> str:
        agent: Any = equip(agent_of(child), child)
        return str((await agent.arun(task, session_id=child.key.session)).get_content_as_string())

    return run


class _Definition(dict[str, Any]):
    """What Agno hands on of the function that stands for a session, with the run that it belongs to."""

    run: _AgnoRun


class _SessionFunction(Function):
    """The function that stands for a session; Agno copies it for each run, and the copy knows the run."""

    session: Any = Field(exclude=True, repr=False)
    limit: int = Field(exclude=True)
    unfinished: dict[str, str] = Field(default_factory=dict, exclude=True, repr=False)
    skip_entrypoint_processing: bool = True
    _run: _AgnoRun | None = PrivateAttr(default=None)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> _SessionFunction:
        return copy(self)

    @property
    def run(self) -> _AgnoRun:
        """Return the run of this copy."""
        if self._run is None:
            self._run = _AgnoRun(self)
        return self._run

    @property
    def context(self) -> RunContext:
        """Return what Agno knows of the run."""
        assert self._run_context is not None
        return self._run_context

    def to_dict(self) -> dict[str, Any]:
        """Return the definition, in the place of which the model's twin puts others."""
        definition = _Definition(super().to_dict())
        definition.run = self.run
        return definition


class _AgnoRun(Run):
    """A run in Agno's terms: its requests and its calls."""

    def __init__(self, function: _SessionFunction) -> None:
        super().__init__(self._opened, self._named, function.unfinished, limit=function.limit)
        self._function = function
        self._defined: dict[str, tuple[Tool, dict[str, Any]]] = {}

    def _opened(self) -> AnySession | Awaitable[Session]:
        given = self._function.session
        return given if isinstance(given, AnySession) else given(self._function.context)

    def _named(self) -> tuple[str, str]:
        return self._function.context.session_id, self._function.context.run_id

    async def prepared(self, request: Request, session: Session) -> Request:
        """Return a request with what the session has now, and with what has changed since the one before."""
        messages: list[Message] = request["messages"]
        others = [tool for tool in request["tools"] if not isinstance(tool.get("function"), _Definition)]
        taken = {tool.get("function", {}).get("name") for tool in others}
        step = await self.step(_newest_of_user(messages) if self.begins else None, taken, session)
        self._defined = {tool.wire: self._definition(tool) for tool in step.tools}
        return {
            **request,
            "messages": _with_texts(messages, step.prefix, step.note),
            "tools": [*others, *(definition for _, definition in self._defined.values())],
            "tool_choice": step.choice or request.get("tool_choice"),
        }

    def _definition(self, tool: Tool) -> tuple[Tool, dict[str, Any]]:
        """Return a definition for Agno's providers; some edit it, so that it is this run's own."""
        known = self._defined.get(tool.wire)
        if known is not None and known[0] is tool:
            return known
        schema = json.loads(json.dumps(tool.input_schema))
        function = {"name": tool.wire, "description": tool.description, "parameters": schema}
        return tool, {"type": "function", "function": function}

    def seen(self, part: ModelResponse) -> ModelResponse:
        """Return an answer of the model, or a part of one; one that has to be the last calls nothing."""
        if not self.answered(content=part.content or part.images or part.audio, calls=part.tool_calls):
            part.tool_calls = []
        return part

    def function(self, name: str) -> Function:
        """Return a function for one call of any name: the session knows what it means."""
        function, arrived = copy(self._function), time.monotonic()

        def run(**arguments: Any) -> ToolResult:
            return _result(self.wait(partial(self.call, name, arguments, arrived)).result)

        async def arun(**arguments: Any) -> ToolResult:
            return _result((await self.come(partial(self.call, name, arguments, arrived))).result)

        function.name, function.entrypoint = name, arun if in_event_loop() else run
        return function


class _Steps:
    """What the twin of a model does around each request and each batch of calls."""

    def invoke(self, *args: Any, **request: Any) -> ModelResponse:
        """Return the answer to a request with the session's tools."""
        own, run = _any(super()), _run_of(request)
        if run is None:
            return own.invoke(*args, **request)
        given = run.wait(partial(run.prepared, request))
        answer = run.seen(own.invoke(*args, **given))
        while run.asks_again():
            answer = run.seen(own.invoke(*args, **given))
        return _closed(answer, run.wait(run.close))

    async def ainvoke(self, *args: Any, **request: Any) -> ModelResponse:
        """Return the answer to a request with the session's tools."""
        own, run = _any(super()), _run_of(request)
        if run is None:
            return await own.ainvoke(*args, **request)
        given = await run.come(partial(run.prepared, request))
        answer = run.seen(await own.ainvoke(*args, **given))
        while run.asks_again():
            answer = run.seen(await own.ainvoke(*args, **given))
        return _closed(answer, await run.come(run.close))

    def invoke_stream(self, *args: Any, **request: Any) -> Iterator[ModelResponse]:
        """Yield the parts of the answer to a request with the session's tools."""
        own, run = _any(super()), _run_of(request)
        if run is None:
            yield from own.invoke_stream(*args, **request)
            return
        given = run.wait(partial(run.prepared, request))
        yield from map(run.seen, own.invoke_stream(*args, **given))
        while run.asks_again():
            yield from map(run.seen, own.invoke_stream(*args, **given))
        yield _closed(ModelResponse(), run.wait(run.close))

    async def ainvoke_stream(self, *args: Any, **request: Any) -> AsyncIterator[ModelResponse]:
        """Yield the parts of the answer to a request with the session's tools."""
        own, run = _any(super()), _run_of(request)
        given = request if run is None else await run.come(partial(run.prepared, request))
        again = True
        while again:
            async for part in own.ainvoke_stream(*args, **given):
                yield part if run is None else run.seen(part)
            again = run is not None and run.asks_again()
        if run is not None:
            yield _closed(ModelResponse(), await run.come(run.close))

    def get_function_calls_to_run(
        self, assistant_message: Message, messages: list[Message], functions: dict[str, Function] | None = None
    ) -> list[FunctionCall]:
        """Return the calls of a batch; what is no function of the agent's own is asked of the session."""
        own, run = _any(super()), _run_in(functions)
        if run is None:
            return own.get_function_calls_to_run(assistant_message, messages, functions)
        known = {name: own for name, own in (functions or {}).items() if not isinstance(own, _SessionFunction)}
        written = {call.get("id"): call.get("function", {}) for call in assistant_message.tool_calls or ()}
        for name in {str(call.get("name")) for call in written.values()} - known.keys():
            known[name] = run.function(name)
        calls: list[FunctionCall] = own.get_function_calls_to_run(assistant_message, messages, known)
        for call in calls:
            if isinstance(call.function, _SessionFunction) and call.call_id in written:
                call.arguments = arguments_of(written[call.call_id].get("arguments")) or call.arguments
        return calls


@cache
def _twin_of(kind: type[Model]) -> type[Model]:
    return type(kind.__name__, (_Steps, kind), {"__module__": kind.__module__, "__qualname__": kind.__qualname__})


def _twin(model: Model) -> Model:
    """Return a model with the clients and settings of another one, and all that its class can."""
    if isinstance(model, _Steps):
        return model
    kind = _twin_of(type(model))
    twin = kind.__new__(kind)
    vars(twin).update(vars(model))
    return twin


def _any(own: Any) -> Any:
    """Return what stands behind the twin, which no type names."""
    return own


def _run_of(request: Request) -> _AgnoRun | None:
    """Return the run that a request belongs to."""
    found = (tool.get("function") for tool in request.get("tools") or ())
    return next((function.run for function in found if isinstance(function, _Definition)), None)


def _run_in(functions: Mapping[str, Function] | None) -> _AgnoRun | None:
    return next((own.run for own in (functions or {}).values() if isinstance(own, _SessionFunction)), None)


def _closed(answer: ModelResponse, text: str) -> ModelResponse:
    if text:
        answer.content = f"{answer.content or ''}{text}"
    return answer


def _newest_of_user(messages: Sequence[Message]) -> str | None:
    return next((message.get_content_string() for message in reversed(messages) if message.role == "user"), None)


def _with_texts(messages: Sequence[Message], prefix: str, note: str) -> list[Message]:
    """Return the messages with a text behind the system's and one behind the newest; the history keeps neither."""
    sent = list(messages)
    if note:
        sent[-1] = _with_text(sent[-1], f"<system>{note}</system>")
    if prefix and sent[0].role in ("system", "developer"):
        sent[0] = _with_text(sent[0], prefix)
    elif prefix:
        sent.insert(0, Message(role="system", content=prefix))
    return sent


def _with_text(message: Message, text: str) -> Message:
    content = message.get_content_string()
    return message.model_copy(update={"content": f"{content}\n\n{text}" if content else text})


def _result(result: CallResult) -> ToolResult:
    text, media = text_and_media(result, File.valid_mime_types())
    return ToolResult(
        content=text,
        images=[Image(content=one.data, mime_type=one.mime_type) for one in media if one.kind == "image"] or None,
        audios=[Audio(content=one.data, mime_type=one.mime_type) for one in media if one.kind == "audio"] or None,
        files=[File(content=one.data, mime_type=one.mime_type) for one in media if one.kind == "file"] or None,
    )
