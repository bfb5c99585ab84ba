"""Agno: an agent or a team that has the tools of a session, anew before every model call.

Agno fixes the tools of a run before its loop, so these go around it. The agent gets one function that stands for its
session; a twin of its model puts into each request what the session has then, and lets the session answer every call.
The loop, the history and the answer stay Agno's: one run, one model, and what is loaded is there at the next request.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy, deepcopy
from dataclasses import fields, replace
from functools import partial
from typing import Any, Final, Protocol, TypeVar, cast

from pegboard.board.session import Session
from pegboard.core.access.approvals.approval import Approval
from pegboard.core.model.agents import Agent as Profile
from pegboard.core.model.delivery import Host, without_native
from pegboard.core.model.model_hosts import host_for
from pegboard.core.model.naming import did_you_mean
from pegboard.core.model.tools import JsonObject
from pegboard.core.state.call_plans import CallAnswer
from pegboard.core.surface.continuations import LIMIT
from pegboard.core.surface.definitions import DEFINING
from pegboard.errors import UsageError
from pegboard.frameworks import runs
from pegboard.frameworks.runs import AnySession, SessionRun
from pegboard.frameworks.versions import warn_if_untested
from pegboard.ports.framework_runs import FRAMEWORK_RUN, FrameworkRun
from pegboard.wire.acceptable_schemas import SchemaProvider, provider_of
from pegboard.wire.kept_notes import HistoryReader, KeptNotes, Said
from pegboard.wire.passed_on import PassedOn, passed_on, tool_called

warn_if_untested("agno")
try:
    from agno.agent import Agent
    from agno.exceptions import AgentRunException, ModelProviderError
    from agno.media import File
    from agno.models.base import Model
    from agno.models.message import Message
    from agno.models.response import ModelResponse, ModelResponseEvent, ToolExecution
    from agno.models.utils import get_model
    from agno.run import RunContext
    from agno.run.agent import RunOutput
    from agno.team import Team
    from agno.tools.function import Function, FunctionCall, ToolResult, UserInputField
    from pydantic import Field, PrivateAttr
except ImportError as error:
    from pegboard.support.installed import install_line

    raise ImportError(f"Agno is missing. Install it: {install_line(extra='agno')}") from error

OwnerT = TypeVar("OwnerT", Agent, Team)
OpenSession = Callable[[RunContext], AnySession | Awaitable[Session]]
ModelRequest = dict[str, Any]
_CALLING: ContextVar[RunContext | None] = ContextVar("pegboard_calling", default=None)
"""The run whose model has made the call that is carried out."""
_FILES: Final = frozenset(File.valid_mime_types())
_FORMS: Final = {
    "agno.models.anthropic": "anthropic",
    "agno.models.openai.responses": "responses",
    "agno.models.openai.open_responses": "responses",
    "agno.models.openai": "chat",
}
"""The form in which the models of a module are asked."""
_FLAGS: Final = {"confirm": "requires_confirmation", "user_input": "requires_user_input"}


def equip(agent: OwnerT, session: AnySession | OpenSession, *, limit: int = LIMIT) -> OwnerT:
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
    host, provider = _host_for(agent.model), _provider_of(agent.model)
    owner.model = runs.twin(agent.model, _AgnoSessionModel)
    function = _SessionFunction(name="pegboard_session", session=session, limit=limit, host=host, provider=provider)
    owner.add_tool(function)
    return agent


class ConfiguredBoard(Protocol):
    """A board over a configuration, as ``Pegboard.open`` gives it."""

    @property
    def configuration(self) -> Configured:
        """Return what the configuration says."""
        ...

    async def session(self, *, agent: str, session_id: str | None = None, principal: str = "local") -> Session:
        """Return a session."""
        ...


class Configured(Protocol):
    """What a configuration says of agents and their models."""

    @property
    def agents(self) -> Mapping[str, Profile]:
        """Return the agents."""
        ...

    @property
    def models(self) -> Mapping[str, JsonObject]:
        """Return the models, as they are written."""
        ...


def agno_agent(board: ConfiguredBoard, name: str, /, *, model: Model | None = None, **given: Any) -> Agent:
    """Return an agent as the configuration describes it, with the tools of a session for each of its runs.

    Its name is ``display_name``, its role ``role``, its model the one of ``models:`` that ``model`` names, else
    ``default``. A run's ``session_id`` and ``user_id`` say whose session it has; no user is ``local``.

    Args:
        board: the board over the configuration.
        name: the agent in it.
        model: in place of the configured one.
        given: anything else that ``agno.agent.Agent`` takes, which wins.

    Raises:
        UsageError: there is no such agent, or no model of it that Agno can make.
    """
    configured = board.configuration
    profile = configured.agents.get(name)
    if profile is None:
        raise UsageError(f"There is no agent '{name}'.", hint=f"There are: {', '.join(configured.agents) or 'none'}.")
    described: dict[str, Any] = {"id": name, "name": profile.display_name or name, "role": profile.role or None}
    described |= {**given, "model": _model_of(configured, profile) if model is None else model}

    async def opened(run: RunContext) -> Session:
        return await board.session(agent=name, session_id=run.session_id, principal=run.user_id or "local")

    return equip(Agent(**described), opened)


def _model_of(configured: Configured, profile: Profile) -> Model:
    """Return the model of an agent as Agno has it.

    Raises:
        UsageError: there is none that Agno can make.
    """
    name = profile.model or "default"
    written = configured.models.get(name)
    if written is None:
        known = ", ".join(configured.models) or "none"
        raise UsageError(
            f"The configuration has no model '{name}' for the agent '{profile.name}'.",
            hint=f"`models:` has: {known}. Add it, or give `agno_agent(…, model=…)`.",
        )
    rest = dict(written)
    rest.pop("prices", None)
    provider, model_id = rest.pop("provider", None), rest.pop("id", None)
    if not isinstance(provider, str) or not isinstance(model_id, str):
        raise UsageError(f"models.{name}: 'provider' and 'id' say which model it is.")
    try:
        made: Any = get_model(f"{provider}:{model_id}")
    except (ImportError, ValueError) as error:
        raise UsageError(f"models.{name}: {error}") from error
    known_keys = {one.name for one in fields(made) if one.init}
    if unknown := sorted(rest.keys() - known_keys):
        raise UsageError(
            f"models.{name}: {type(made).__name__} of Agno has no '{unknown[0]}'.",
            hint=did_you_mean(unknown[0], known_keys),
        )
    return replace(made, **rest) if rest else made


def delegate_to(
    agents: Agent | Mapping[str, Agent], *, events: Callable[[Any], object] | None = None
) -> Callable[[Session, str], Awaitable[str]]:
    """Return what runs delegated tasks, for ``board.on_delegate``: a copy of an agent with the tools of the child.

    It has the dependencies of the run that delegates. Agno counts what it takes in its own run's metrics.

    Args:
        agents: the agent for every child, or one for each by the name of the child's agent, or by its kind.
        events: takes the events of the child's run as they come; it must not wait.
    """

    async def run(child: Session, task: str) -> str:
        one: Any = equip(runs.worker_of(agents, child).deep_copy(), child)
        calling = _CALLING.get()
        given: dict[str, Any] = {"session_id": child.key.session}
        if calling is not None and calling.dependencies is not None:
            given["dependencies"] = calling.dependencies
        done = await (one.arun(task, **given) if events is None else _streamed(one, task, given, events))
        return "The task is not done: a call of it waits for a person." if done.is_paused else str(done.content)

    return run


async def _streamed(one: Any, task: str, given: Mapping[str, Any], events: Callable[[Any], object]) -> Any:
    """Return what a run comes to whose events are handed on."""
    done: Any = None
    async for event in one.arun(task, stream=True, stream_events=True, yield_run_output=True, **given):
        if isinstance(event, RunOutput):
            done = event
        else:
            events(event)
    return done


class _Definition(dict[str, Any]):
    """What Agno hands on of the function that stands for a session."""

    function: _SessionFunction


class _SessionFunction(Function):
    """The function that stands for a session; Agno copies it for each run, and each call has a copy of that."""

    session: Any = Field(exclude=True, repr=False)
    limit: int = Field(exclude=True)
    host: Any = Field(default=None, exclude=True, repr=False)
    provider: Any = Field(default="any", exclude=True, repr=False)
    kept: Any = Field(default_factory=KeptNotes, exclude=True, repr=False)
    answer: Any = Field(default=None, exclude=True, repr=False)
    passed: Any = Field(default=None, exclude=True, repr=False)
    skip_entrypoint_processing: bool = True
    _run: SessionRun | None = PrivateAttr(default=None)  # Agno's copy for a run begins with the defaults
    _history: HistoryReader[Message] | None = PrivateAttr(default=None)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> _SessionFunction:
        return copy(self)

    @property
    def run(self) -> SessionRun:
        """Return the run of this copy."""
        run = self._run  # what is private costs pydantic a microsecond to find
        if run is None:
            about: Any = {"limit": self.limit, "host": self.host, "provider": self.provider}
            run = self._run = SessionRun(self._opened, self._named, **about)
        return run

    def answered(self, answer: CallAnswer, under_way: FrameworkRun) -> ToolResult:
        """Return what the one call of this copy came to; how its own function ends or shows it counts here too.

        Raises:
            AgentRunException: the function itself ends the run, or has its model try again.
        """
        text, media = runs.text_and_media(answer.result, _FILES)
        self.answer = answer
        beside = under_way.returned.get(answer.tool.id) if answer.tool is not None else None
        if beside is not None:
            if isinstance(beside.raised, AgentRunException):
                raise beside.raised
            self.stop_after_tool_call, self.show_result = beside.ends, beside.shown
        return ToolResult(content=text, **cast("dict[str, Any]", media))

    @property
    def waits_for(self) -> Approval | None:
        """Return the approval that this call waits for, or None."""
        return self.answer.approval if self.answer and self.answer.status == "needs_approval" else None

    @property
    def waits(self) -> bool:
        """Return whether this call waits for a person: an approval, or a login."""
        return self.waits_for is not None or (self.answer is not None and runs.about_login(self.answer) is not None)

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

    async def prepared(self, run: SessionRun, request: ModelRequest, session: Session) -> ModelRequest:
        """Return a request with what the session has now, and with what has changed since the one before."""
        messages: list[Message] = request["messages"]
        others = [tool for tool in request["tools"] if not isinstance(tool.get("function"), _Definition)]
        taken = {tool.get("function", {}).get("name") for tool in others}
        users = (one.get_content_string() for one in reversed(messages) if one.role == "user")
        for call in (run.begins and request["run_response"].tools) or ():
            if call.approval_id and not call.is_paused:
                refused = str(call.confirmation_note or "") if call.confirmed is False else None
                handed_in = call.result if call.external_execution_required is False else None
                await runs.record_decision(session, call.approval_id, refused=refused, result=handed_in)
        chosen = await runs.load_chosen(session, taken, request.get("tool_choice"))
        step = await run.step(next(users, None) if run.begins else None, taken, session)
        if chosen is not None and all(one["function"]["name"] != chosen for one in step.functions):
            definition = run.definition_to_choose(session, taken, chosen)
            others.extend([] if definition is None else [definition])
        behind: Sequence[str] = ()
        if step.fixed:
            reader = self._history
            if reader is None:
                reader = self._history = HistoryReader(_said)
            behind = self.kept.behind(repr(session.key), reader.read(messages), step.surface, step.change, step.beside)
        return {
            **request,
            "messages": run.with_texts(messages, step, Message, behind),
            "tools": [*others, *step.functions],
            "tool_choice": step.choice or request.get("tool_choice"),
        }

    @contextmanager
    def under_way(self) -> Generator[FrameworkRun]:
        """Let the function that is called, and what is delegated meanwhile, know the run."""
        run = FrameworkRun(context=self)
        calling, before = _CALLING.set(self._run_context), FRAMEWORK_RUN.set(run)
        try:
            yield run
        finally:
            _CALLING.reset(calling)
            FRAMEWORK_RUN.reset(before)

    def call_of(
        self, name: str, fields: JsonObject | None = None, *, passed: PassedOn | None = None
    ) -> _SessionFunction:
        """Return a function for one call of any name.

        Args:
            name: the tool.
            fields: what a person who approved the call filled in.
            passed: how the model made it, where that was through ``call_tool``.
        """
        one, run, since = copy(self), self.run, time.monotonic()

        def use(arguments: dict[str, Any], session: Session) -> Awaitable[CallAnswer]:
            called, given = (name, arguments) if passed is None else passed.of_session(name, arguments)
            return run.call(called, since, fields, given, session)

        def call(**arguments: Any) -> ToolResult:
            with one.under_way() as under_way:
                return one.answered(run.with_session_sync(partial(use, arguments)), under_way)

        async def acall(**arguments: Any) -> ToolResult:
            with one.under_way() as under_way:
                return one.answered(await run.with_session(partial(use, arguments)), under_way)

        entrypoint = acall if runs.in_event_loop() else call
        entrypoint.__annotations__ = {}  # Agno evaluates them with every call
        one.name, one.entrypoint, one.passed = name, entrypoint, passed
        return one


class _AgnoSessionModel:
    """What the twin of a model does around each request and each batch of calls."""

    def invoke(self, *args: Any, **request: Any) -> ModelResponse:
        own, function = _any(super()), _function_of(request)
        if function is None:
            return own.invoke(*args, **request)
        run = function.run
        given = run.with_session_sync(partial(function.prepared, run, request))
        answer: ModelResponse | None = None
        while answer is None or run.asks_again():
            try:
                answer = _seen(run, own.invoke(*args, **given))
            except ModelProviderError as error:
                if not run.with_session_sync(partial(_dropped, run, given["tools"], error)):
                    raise
        answer.content = f"{answer.content or ''}{run.with_session_sync(run.close)}" or None
        return answer

    async def ainvoke(self, *args: Any, **request: Any) -> ModelResponse:
        own, function = _any(super()), _function_of(request)
        if function is None:
            return await own.ainvoke(*args, **request)
        run = function.run
        given = await run.with_session(partial(function.prepared, run, request))
        answer: ModelResponse | None = None
        while answer is None or run.asks_again():
            try:
                answer = _seen(run, await own.ainvoke(*args, **given))
            except ModelProviderError as error:
                if not await run.with_session(partial(_dropped, run, given["tools"], error)):
                    raise
        answer.content = f"{answer.content or ''}{await run.with_session(run.close)}" or None
        return answer

    def invoke_stream(self, *args: Any, **request: Any) -> Iterator[ModelResponse]:
        own, function = _any(super()), _function_of(request)
        if function is None:
            yield from own.invoke_stream(*args, **request)
            return
        run, again = function.run, True
        given = run.with_session_sync(partial(function.prepared, run, request))
        while again:
            try:
                yield from map(partial(_seen, run), own.invoke_stream(*args, **given))
                again = run.asks_again()
            except ModelProviderError as error:
                if not run.with_session_sync(partial(_dropped, run, given["tools"], error)):
                    raise
        yield ModelResponse(content=run.with_session_sync(run.close) or None)

    async def ainvoke_stream(self, *args: Any, **request: Any) -> AsyncIterator[ModelResponse]:
        own, function = _any(super()), _function_of(request)
        if function is None:
            async for part in own.ainvoke_stream(*args, **request):
                yield part
            return
        run, again = function.run, True
        given = await run.with_session(partial(function.prepared, run, request))
        while again:
            try:
                async for part in own.ainvoke_stream(*args, **given):
                    yield _seen(run, part)
                again = run.asks_again()
            except ModelProviderError as error:
                if not await run.with_session(partial(_dropped, run, given["tools"], error)):
                    raise
        yield ModelResponse(content=await run.with_session(run.close) or None)

    def get_function_calls_to_run(
        self, assistant_message: Message, messages: list[Message], functions: dict[str, Function] | None = None
    ) -> list[FunctionCall]:
        own, function, known = _any(super()), _function_in(functions), dict(functions or {})
        fresh: dict[str, _SessionFunction] = {}
        session_names: set[str] = set()
        written = {call.get("id"): call.get("function", {}) for call in assistant_message.tool_calls or ()}
        if function is not None:
            known.pop(function.name, None)
            names = {n for one in written.values() if (n := str(one.get("name"))) not in known}
            fresh = {name: function.call_of(name) for name in names}
            session_names = set(fresh)
            known |= fresh
        calls: list[FunctionCall] = own.get_function_calls_to_run(assistant_message, messages, known)
        for call in calls:
            if function is not None and isinstance(call.function, _SessionFunction):
                name = call.function.name
                call.arguments = runs.arguments_of(written.get(call.call_id, {}).get("arguments")) or call.arguments
                passed = passed_on(name, call.arguments, known.keys() - session_names)
                call.function = fresh.pop(name, None) or function.call_of(name)
                if passed is not None:
                    call.function = function.call_of(passed.name, passed=passed)
                    call.arguments = deepcopy(passed.arguments)  # hooks change them in place
        return calls

    def get_function_call_to_run_from_tool_execution(
        self, tool_execution: ToolExecution, functions: dict[str, Function] | None = None
    ) -> FunctionCall:
        own, function, name = _any(super()), _function_in(functions), str(tool_execution.tool_name)
        if function is None or name in (functions or {}):
            return own.get_function_call_to_run_from_tool_execution(tool_execution, functions)
        fields = {field.name: field.value for field in tool_execution.user_input_schema or ()}
        arguments, call_id = tool_execution.tool_args, tool_execution.tool_call_id
        return FunctionCall(function=function.call_of(name, fields), arguments=arguments, call_id=call_id)

    def run_function_calls(
        self, function_calls: list[FunctionCall], function_call_results: list[Message], **options: Any
    ) -> Iterator[Any]:
        events = _any(super()).run_function_calls(function_calls, function_call_results, **options)
        yield from map(partial(_judged, function_calls), events)
        function_call_results[:] = _returned(function_calls, function_call_results)
        if (run := _ended_by(function_calls, function_call_results)) is not None:
            run.with_session_sync(run.close)

    async def arun_function_calls(
        self, function_calls: list[FunctionCall], function_call_results: list[Message], **options: Any
    ) -> AsyncIterator[Any]:
        judged = () if options.get("skip_pause_check") else function_calls
        async for event in _any(super()).arun_function_calls(function_calls, function_call_results, **options):
            yield _judged(judged, event)
        function_call_results[:] = _returned(judged, function_call_results)
        if (run := _ended_by(function_calls, function_call_results)) is not None:
            await run.with_session(run.close)


async def _dropped(run: SessionRun, tools: list[dict[str, Any]], error: ModelProviderError, session: Session) -> bool:
    """Return whether a request is to be made again: its tools lose those that the provider does not take."""
    sent = [str(tool.get("function", {}).get("name")) for tool in tools]
    rejected = await run.rejects(error, sent, session)
    tools[:] = [tool for name, tool in zip(sent, tools, strict=True) if name not in rejected]
    return bool(rejected)


def _seen(run: SessionRun, part: ModelResponse) -> ModelResponse:
    """Return an answer of the model, or a part of one; one that has to be the last calls nothing."""
    if not run.answered(content=part.content or part.images or part.audio, calls=part.tool_calls):
        part.tool_calls = []
    return part


def _host_for(model: Model) -> Host | None:
    """Return the host for a model of Agno's own providers, whose list of tools has to stay as it is (D4); else None."""
    theirs = any(kind.__module__.startswith("agno.models.") and kind is not Model for kind in type(model).__mro__)
    return without_native(host_for(str(model.id))) if theirs else None


def _provider_of(model: Model) -> SchemaProvider:
    """Return whose rules the schemas of a model's requests keep."""
    modules = [kind.__module__ for kind in type(model).__mro__]
    forms = (form for module in modules for part, form in _FORMS.items() if module.startswith(part))
    return provider_of(next(forms, ""), str(model.id))


def _said(message: Message) -> Said:
    """Return a message as it stands in a history, of which Agno sends the newest runs alone."""
    calls = [call.get("function", {}) for call in message.tool_calls or ()]
    return Said(
        own=message.id,
        defining=message.get_content_string() if message.tool_name in DEFINING else "",
        called=tuple(tool_called(one.get("name"), runs.arguments_of(one.get("arguments"))) for one in calls),
    )


def _any(own: Any) -> Any:
    """Return what stands behind the twin, which no type names."""
    return own


def _function_of(request: ModelRequest) -> _SessionFunction | None:
    for tool in request.get("tools") or ():
        if isinstance(definition := tool.get("function"), _Definition):
            return definition.function
    return None


def _function_in(functions: Mapping[str, Function] | None) -> _SessionFunction | None:
    for one in (functions or {}).values():
        if isinstance(one, _SessionFunction):
            return one
    return None


def _function_for(call_id: str | None, calls: Sequence[FunctionCall]) -> _SessionFunction | None:
    for call in calls:
        if call.call_id == call_id and isinstance(call.function, _SessionFunction):
            return call.function
    return None


def _judged(calls: Sequence[FunctionCall], event: Any) -> Any:
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
    return event


def _ended_by(calls: Sequence[FunctionCall], results: Sequence[Message]) -> SessionRun | None:
    """Return the run that the result of a function ends; None where the model goes on, or has to be waited for."""
    functions = [call.function for call in calls if isinstance(call.function, _SessionFunction)]
    if not functions or len(results) < len(calls) or not any(one.stop_after_tool_call for one in results):
        return None
    run = functions[0].run
    run.answered(content=None, calls=())
    return run


def _returned(calls: Sequence[FunctionCall], results: Sequence[Message]) -> Iterator[Message]:
    """Yield the results of a batch for the model, without those that are waited for."""
    for result in results:
        function = _function_for(result.tool_call_id, calls)
        if function is not None and function.answer is not None:
            result.tool_call_error = function.answer.is_error
        if function is not None and function.passed is not None:
            result.tool_name = function.passed.via  # some providers want the name of the call
        if function is None or not function.waits:
            yield result
