"""OpenAI Agents: an agent that has the tools of a session, anew before every model call.

The SDK asks an agent for its tools at each step, and a tool for approval before its call; `equip` answers both from a
session. What the model is to know behind the history, and a call of a tool that it was not shown, go through a twin of
its model. The loop, the history and the state of a run stay the SDK's.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar, cast
from uuid import uuid4
from weakref import WeakKeyDictionary, ref

from pegboard.board.session import Session
from pegboard.core.model.delivery import Host
from pegboard.core.state.call_plans import CallAnswer
from pegboard.core.surface.continuations import LIMIT
from pegboard.core.surface.definitions import DEFINING
from pegboard.dialects.names import META_PLUGIN
from pegboard.frameworks import runs
from pegboard.frameworks.runs import AnySession, StepRequest
from pegboard.frameworks.versions import warn_if_untested
from pegboard.wire.acceptable_schemas import SchemaProvider, provider_of
from pegboard.wire.kept_notes import HistoryReader, KeptNotes, Said
from pegboard.wire.passed_on import THROUGH, PassedOn, passed_on, tool_called

warn_if_untested("openai-agents")
try:
    from agents import (
        Agent,
        FunctionTool,
        FunctionToolResult,
        Handoff,
        Model,
        ModelProvider,
        ModelResponse,
        MultiProvider,
        RunContextWrapper,
        Runner,
        Tool,
        ToolOutputFileContent,
        ToolOutputImage,
        ToolOutputText,
        ToolsToFinalOutputResult,
        Usage,
    )
    from agents.tool_context import ToolContext
    from openai.types.responses import (
        Response,
        ResponseCompletedEvent,
        ResponseFunctionToolCall,
        ResponseOutputItem,
        ResponseOutputItemDoneEvent,
    )
except ImportError as error:
    from pegboard.support.installed import install_line

    raise ImportError(f"OpenAI Agents is missing. Install it: {install_line(extra='openai-agents')}") from error

AgentT = TypeVar("AgentT", bound=Agent[Any])
AnyContext = RunContextWrapper[Any]
OpenSession = Callable[[AnyContext], AnySession | Awaitable[Session]]
_RUNNING: ContextVar[_EquippedRun | None] = ContextVar("pegboard_running", default=None)
"""The run whose step this is."""
_CALLING: ContextVar[ToolContext[Any] | None] = ContextVar("pegboard_calling", default=None)
"""The call that is carried out."""
_NAMES: Final[WeakKeyDictionary[AnyContext, str]] = WeakKeyDictionary()
"""The names of the runs, by what all agents of a run share."""
_FILES: Final = frozenset({"application/pdf"})
_ANY_TOOL: Final = frozenset({"auto", "none", "required"})
"""The choices that name no tool."""
_GOES_ON: Final = frozenset(
    {
        "apply_patch_call",
        "computer_call",
        "custom_tool_call",
        "function_call",
        "local_shell_call",
        "mcp_approval_request",
        "shell_call",
    }
)
"""What a model answers that the SDK answers in turn."""


def equip(
    agent: AgentT, session: AnySession | OpenSession, *, limit: int = LIMIT, provider: ModelProvider | None = None
) -> AgentT:
    """Return a copy of an agent that has the tools of a session behind its own, which win where a name is the same.

    Args:
        agent: instructions, handoffs, guardrails, hooks and other tools stay as they are.
        session: the session, or what opens one for a run from its context.
        limit: how often in a row the tools of a run change without one being used; then the model has to answer.
        provider: what knows the agent's model where that is a name; the SDK's own by default. A model, or a provider
            of models, in a run's ``RunConfig`` does not count for this agent.
    """
    plain: Any = agent
    if isinstance(agent, _SessionAgent):
        plain = cast("Any", copy(agent))
        plain.model = plain.pegboard_host.model
    host = _Host(session, limit, plain.model)
    made: Any = runs.twin(plain, _SessionAgent)
    made.model = _stepping(plain.model, host, provider)
    made.tool_use_behavior = _stopping(plain.tool_use_behavior, host)
    made.pegboard_host = host
    return made


def delegate_to(
    agents: Agent[Any] | Mapping[str, Agent[Any]], *, events: Callable[[Any], object] | None = None
) -> Callable[[Session, str], Awaitable[str]]:
    """Return what runs delegated tasks, for ``board.on_delegate``: a copy of an agent with the tools of the child.

    It has the context of the run that delegates, and counts in its usage.

    Args:
        agents: the agent for every child, or one for each by the name of the child's agent, or by its kind.
        events: takes the events of the child's run as they come; it must not wait.
    """

    async def run(child: Session, task: str) -> str:
        calling = _CALLING.get()
        agent = equip(runs.worker_of(agents, child), child)
        given: dict[str, Any] = (
            {} if calling is None else {"context": calling.context, "run_config": calling.run_config}
        )
        if events is None:
            done: Any = await Runner.run(agent, task, **given)
        else:
            done = Runner.run_streamed(agent, task, **given)
            async for event in done.stream_events():
                events(event)
        if calling is not None:
            calling.usage.add(done.context_wrapper.usage)
        return (
            "The task is not done: a call of it waits for a person." if done.interruptions else str(done.final_output)
        )

    return run


class _Host:
    """What an equipped agent keeps over its runs; ``model`` is the one that it was given."""

    def __init__(self, session: AnySession | OpenSession, limit: int, model: Any) -> None:
        self.model = model
        self.owned: WeakKeyDictionary[object, _EquippedRun] = WeakKeyDictionary()
        """The runs by what the SDK says that has ended, with the end of each."""
        self.kept = KeptNotes()
        self.passed: dict[str, _Passed] = {}
        self.empty: dict[str, str] = {}
        self._session = session
        self._limit = limit
        self._runs: WeakKeyDictionary[AnyContext, _EquippedRun] = WeakKeyDictionary()
        self._waiting: list[_EquippedRun] = []

    def run_of(self, context: AnyContext) -> _EquippedRun:
        """Return the run of a context; one that goes on after a decision is the one that waited for it."""
        known = self._runs.get(context)
        if known is None:
            known = next((run for run in self._waiting if run.decided_in(context)), None) or self.new_run(context)
            self._runs[context] = known
        return known

    def new_run(self, context: AnyContext) -> _EquippedRun:
        """Return a run that nobody else knows."""
        session = self._session
        opens = session if isinstance(session, AnySession) else partial(session, context)
        return _EquippedRun(self, opens, self._limit, _NAMES.setdefault(context, uuid4().hex))

    def note_empty(self, call_id: str, written: str) -> None:
        """Note what the model wrote as the arguments of a call that has none; the oldest is forgotten first."""
        self.empty[call_id] = written
        if len(self.empty) > _MOST_PASSED:
            del self.empty[next(iter(self.empty))]

    def note_passed(self, call_id: str, passed: _Passed) -> None:
        """Note how the model made a call through ``call_tool``; the oldest is forgotten first."""
        self.passed[call_id] = passed
        if len(self.passed) > _MOST_PASSED:
            del self.passed[next(iter(self.passed))]

    def waits(self, run: _EquippedRun) -> None:
        """Note that a run waits for a person."""
        self._waiting = [*(one for one in self._waiting if one is not run), run][-_MOST_WAITING:]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Passed:
    """A call through ``call_tool``, with its arguments as text: as the SDK is shown them, and as the model wrote."""

    call: PassedOn
    shown: str
    written: str


_MOST_PASSED: Final = 10_000
"""How many calls through ``call_tool`` are sent back as they were made; older ones as calls of the tool itself."""
_MOST_WAITING: Final = 1000
"""How many runs that wait are known again in this process; the others go on as in a new one."""


class _EquippedRun:
    """One run of an equipped agent over its session."""

    def __init__(
        self, host: _Host, session: AnySession | Callable[[], AnySession | Awaitable[Session]], limit: int, name: str
    ) -> None:
        self.host = host
        self.step: StepRequest | None = None
        self._run = runs.SessionRun(
            (lambda: session) if isinstance(session, AnySession) else session,
            lambda: (name, name),
            is_over=self._is_over,
            limit=limit,
            provider=_provider_of(host.model),
        )
        self._owner: ref[object] | None = None
        self._task: asyncio.Task[Any] | None = None
        self._waits = False
        self._tools: dict[str, tuple[Any, FunctionTool]] = {}
        self._arrived = 0.0
        self._asked: dict[str, tuple[str, str]] = {}
        """By call id, the tool and the approval of what a person was asked about in this process."""
        self._answered: set[str] = set()
        self._called: set[str] = set()
        self._meta: set[str] = set()
        """The names of the meta-tools that were called."""
        self._not_run: set[str] = set()
        """The calls that were answered without their tool, by id."""
        self._again: list[tuple[str, str, _Passed | None]] = []
        self._sent = self._key = ""
        self._names: dict[Any, str] = {}
        """The tools of the calls of the history, by call id."""
        self._history = HistoryReader(self._said)
        self._done: list[ResponseOutputItem] = []

    def own_by(self, owner: object | None) -> None:
        """Note what the SDK gives to the model with the end of this run."""
        if owner is not None:
            self._owner = ref(owner)
            self.host.owned[owner] = self

    def _is_over(self) -> bool:
        """Return whether the run was given up; one of which the SDK tells no end is where another one begins."""
        if self._owner is not None:
            return self._owner() is None
        return bool(self._called) or self._task is None or self._task.done()

    async def end(self) -> None:
        """End the run, whatever became of it; one that waits for a person goes on later (S6)."""
        await self._run.with_session(self._run.pause if self._waits else self._run.end)

    def decided_in(self, context: AnyContext) -> bool:
        """Return whether a person has decided in a context about a call that this run waits for."""
        return any(context.is_tool_approved(name, call_id) is not None for call_id, (name, _) in self._asked.items())

    # -- before a request

    async def offered(self, context: AnyContext, taken: set[str]) -> list[Tool]:
        """Return the session's tools for a step, or for what is decided before one."""
        if not context.turn_input:  # a state is read, and no run goes on
            return await self._run.with_session(self._known)
        message = _text_of(context.turn_input) if self._run.begins else None
        self._task, self._waits = asyncio.current_task(), False
        return await self._run.with_session(partial(self._stepped, message, taken))

    async def _stepped(self, message: str | None, taken: set[str], session: Session) -> list[Tool]:
        begins = self._run.begins
        if begins and (host := _host_for(self.host.model)) is not None:
            session.adopt_host(host)
        self._key = repr(session.key)
        self.step = await self._run.step(message, taken, session)
        tools = {one["function"]["name"]: self._tool(one["function"]) for one in self.step.functions}
        waiting = await _waiting(session) if begins or self._asked else ()
        held = {one.tool: self.stand_in(one.tool) for one in waiting if one.tool not in taken}
        return [*(held | tools).values()]

    async def _known(self, session: Session) -> list[Tool]:
        shown = [one.tool.wire for one in (await session.surface()).tools]
        return [self.stand_in(name) for name in dict.fromkeys([*shown, *(one.tool for one in await _waiting(session))])]

    def _tool(self, function: dict[str, Any]) -> FunctionTool:
        name = function["name"]
        known = self._tools.get(name)
        if known is None or known[0] is not function:
            known = (function, self._made(name, function["description"] or "", function["parameters"]))
            self._tools[name] = known
        return known[1]

    def stand_in(self, name: str, *, asks: bool = True) -> FunctionTool:
        """Return a tool for calls of a name that no request shows: the session answers them (X1, P9)."""
        return self._made(name, "", {"type": "object"}, asks=asks)

    def _made(self, name: str, description: str, schema: Any, *, asks: bool = True) -> FunctionTool:
        return FunctionTool(
            name=name,
            description=description,
            params_json_schema=schema,
            on_invoke_tool=_ToolInvoker(self, name),
            strict_json_schema=False,
            needs_approval=partial(self._needs_approval, name) if asks else False,
        )

    async def prepared(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return a request with what the model is to know now; its list of tools loses what only stood in."""
        step, tools, items = self.step, request["tools"], request["input"]
        assert step is not None
        shown = {one["function"]["name"] for one in step.functions}
        tools[:] = [tool for tool in tools if not (_is_ours(tool) and tool.name not in shown)]
        items = [{"role": "user", "content": items}] if isinstance(items, str) else [*map(self._as_written, items)]
        await self._run.with_session(partial(self._record, items))
        if step.fixed and not _is_kept(request):
            behind = self.host.kept.behind(self._key, self._history.read(items), step.surface, step.change, step.beside)
            items = _with_notes(items, behind)
        elif step.note and not (_is_kept(request) and step.note == self._sent):
            items.append(_noted(step.note))
        self._sent, self._done = step.note, []
        settings = request["model_settings"]
        if step.choice is not None and tools:
            settings = replace(settings, tool_choice=step.choice)
        elif isinstance(chosen := settings.tool_choice, str) and chosen not in _ANY_TOOL:
            await self._run.with_session(partial(self._list_chosen, chosen, request))
        return {**request, "input": items, "model_settings": settings}

    async def _list_chosen(self, name: str, request: Mapping[str, Any], session: Session) -> None:
        """Load and list the tool that the agent's settings have the model call, where its list lacks it."""
        tools: list[Tool] = request["tools"]
        listed = {*(tool.name for tool in tools), *(handoff.tool_name for handoff in request["handoffs"])}
        tool = None if name in listed else session.known_tool(name)
        if tool is None:
            return
        await session.load(tool.wire)
        tools.append(self._made(tool.wire, tool.description, json.loads(json.dumps(tool.input_schema))))
        runs.warn_once(
            f"tool_choice is '{name}', which the list of the agent's tools does not have: it is loaded, and listed in "
            "the requests that have this choice. The provider reads these without its cache."
        )

    def _said(self, item: Any) -> Said:
        """Return an item of a history as what is said in it."""
        call_id = item.get("call_id")
        called: tuple[str, ...] = ()
        if item.get("type") == "function_call":
            self._names[call_id] = item["name"]
            called = (tool_called(item["name"], runs.arguments_of(item.get("arguments"))),)
        return Said(
            called=called,
            text=json.dumps(item, sort_keys=True, default=str),
            defining=str(item.get("output", "")) if self._names.get(call_id) in DEFINING else "",
        )

    async def rejects(self, request: Mapping[str, Any], error: Exception) -> bool:
        """Return whether a request is to be made again: its tools lose those that the provider does not take."""
        tools: list[Tool] = request["tools"]
        rejected = await self._run.with_session(partial(self._run.rejects, error, [tool.name for tool in tools]))
        tools[:] = [tool for tool in tools if not (_is_ours(tool) and tool.name in rejected)]
        return bool(rejected)

    async def _record(self, items: Sequence[Any], session: Session) -> None:
        """Take into the session what a person refused, or ran elsewhere, since the last request (A3, T13)."""
        newest: list[Any] = []
        for item in reversed(items):
            if item.get("type") != "function_call_output":
                break
            newest.append(item)
        newest = [item for item in newest if item["call_id"] not in self._called]
        waiting = await _waiting(session) if newest else ()
        if not waiting:
            return
        calls = {item["call_id"]: item for item in items if item.get("type") == "function_call"}
        for item in newest:
            call_id, words = item["call_id"], str(item["output"])
            asked, made = self._asked.pop(call_id, ("", ""))[1], calls.get(call_id, {})
            about = _real_call(made.get("name"), runs.arguments_of(made.get("arguments")) or {})
            about = about[0], runs.own_arguments(str(about[0]), about[1], session)
            own = (
                one for one in waiting if one.id == asked or (not asked and (one.tool, dict(one.arguments)) == about)
            )
            if (approval := next(own, None)) is not None:
                elsewhere = approval.kind == "external"
                refused, result = (None, words) if elsewhere else (words, None)
                await runs.record_decision(session, approval.id, refused=refused, result=result)

    # -- after an answer

    def answered(self, request: Mapping[str, Any], output: list[Any]) -> None:
        """Take an answer of the model, or what a limit leaves of it: its calls find their tools."""
        self._arrived = time.monotonic()
        over = {handoff.tool_name for handoff in request["handoffs"]}
        calls = [item for item in output if item.type in _GOES_ON and getattr(item, "name", "") not in over]
        content = any(item.type != "reasoning" and item not in calls for item in output)
        if self._run.answered(content=content, calls=calls):
            output[:] = [self._as_shown(request, item) if item in calls else item for item in output]
        else:
            output[:] = [item for item in output if item not in calls]
        self._bind(request["tools"], [item for item in output if getattr(item, "name", "") not in over])

    def item_done(self, request: Mapping[str, Any], item: Any) -> Any:
        """Return a part of an answer that is streamed; a call through ``call_tool`` is one of the tool it names."""
        item = self._as_shown(request, item)
        self._done.append(item)
        over = {handoff.tool_name for handoff in request["handoffs"]}
        self._bind(request["tools"], [item] if getattr(item, "name", "") not in over else [])
        return item

    def _as_shown(self, request: Mapping[str, Any], item: Any) -> Any:
        """Return an item of an answer; a call through ``call_tool`` is one of the tool that it names."""
        if item.type != "function_call" or getattr(item, "namespace", None):
            return item
        own = {tool.name for tool in request["tools"] if not _is_ours(tool)}
        own |= {handoff.tool_name for handoff in request["handoffs"]}
        passed = passed_on(item.name, _arguments(item.arguments), own)
        if passed is None:
            return item if item.name in own else self._with_arguments(item)
        made = item.model_copy(update={"name": passed.name, "arguments": json.dumps(passed.arguments)})
        self.host.note_passed(item.call_id, _Passed(call=passed, shown=made.arguments, written=item.arguments))
        return made

    def _with_arguments(self, item: Any) -> Any:
        """Return a call of the session; one without arguments has an empty object, which the SDK can read."""
        if not _is_empty(item.arguments):
            return item
        self.host.note_empty(item.call_id, item.arguments)
        return item.model_copy(update={"arguments": "{}"})

    def _of_session(self, call_id: str, name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return name and arguments of a call for the session."""
        passed = self.host.passed.get(call_id)
        return (name, arguments) if passed is None else passed.call.of_session(name, arguments)

    def _as_written(self, item: Any) -> Any:
        """Return an item of a history for the model: a call as it was made."""
        if item.get("type") != "function_call":
            return item
        passed = self.host.passed.get(item.get("call_id"))
        if passed is None:
            written = self.host.empty.get(item.get("call_id"))
            return item if written is None or item["arguments"] != "{}" else {**item, "arguments": written}
        name, arguments = passed.call.of_session(item["name"], runs.arguments_of(item["arguments"]) or {})
        same = (item["name"], item["arguments"]) == (passed.call.name, passed.shown)
        return {**item, "name": name, "arguments": passed.written if same else json.dumps(arguments)}

    async def completed(self, request: Mapping[str, Any], response: Response) -> bool:
        """Take the end of an answer that was streamed; return whether the model is to be asked once more."""
        response.output = response.output or self._done
        self._done = []
        self.answered(request, response.output)
        again = self.asks_again()
        if not again:
            await self.close()
        return again

    async def close(self) -> None:
        """End the turn where the newest answer calls nothing (S6)."""
        await self._run.with_session(self._run.close)

    def _bind(self, tools: list[Tool], items: Sequence[Any]) -> None:
        """Let the session answer the calls of tools that the model was not shown (X1, P9)."""
        names = {tool.name: index for index, tool in enumerate(tools)}
        for call in items:
            if call.type != "function_call" or getattr(call, "namespace", None):
                continue
            self._answered.add(call.call_id)
            index, readable = names.get(call.name), _arguments(call.arguments) is not None
            if index is None:
                names[call.name] = len(tools)
                tools.append(self.stand_in(call.name, asks=readable))
            elif not readable and _is_ours(tools[index]):
                tools[index] = self.stand_in(call.name, asks=False)

    def is_meta(self, tool: FunctionTool) -> bool:
        """Return whether a tool only manages the others."""
        return _is_ours(tool) and tool.name in self._meta

    def asks_again(self) -> bool:
        """Return whether the model is to be asked once more, since it answered nothing right after a change."""
        return self._run.asks_again()

    def repeated(self, request: Mapping[str, Any]) -> list[ResponseFunctionToolCall]:
        """Return the calls that are made again without the model, since a person is to be asked anew (A6)."""
        again, self._again = self._again, []
        if _is_kept(request):
            return []  # a server that keeps the conversation knows only calls of its own
        made = partial(ResponseFunctionToolCall, type="function_call", status="completed")
        calls = [made(name=name, arguments=text, call_id=f"call_{uuid4().hex}") for name, text, _ in again]
        for call, (*_, passed) in zip(calls, again, strict=True):
            if passed is not None:
                self.host.note_passed(call.call_id, passed)
        self._bind(request["tools"], calls)
        return calls

    # -- a call

    async def _needs_approval(self, name: str, context: AnyContext, arguments: dict[str, Any], call_id: str) -> bool:  # noqa: ARG002
        """Return whether a person approves a call first, who is asked by this (A1)."""
        if await self._run.with_session(lambda session: session.runs_unasked(name)):
            return False
        called, given = self._of_session(call_id, name, arguments)
        decision = await self._run.with_session(
            lambda session: session.decide(called, runs.own_arguments(called, given, session), ask=True)
        )
        if decision.status != "needs_approval" or decision.approval is None:
            return False
        self._asked[call_id] = (name, decision.approval.id)
        self._waits = True
        self.host.waits(self)
        return True

    def has_run(self, result: FunctionToolResult) -> bool:
        """Return whether a result is that of its tool, and not an answer in place of one."""
        raw: Any = None if result.run_item is None else result.run_item.raw_item
        call_id = raw.get("call_id") if isinstance(raw, Mapping) else getattr(raw, "call_id", None)
        return call_id not in self._not_run

    async def called(self, name: str, context: ToolContext[Any], text: str) -> Any:
        """Return what the model reads of a call."""
        call_id = context.tool_call_id
        self._called.add(call_id)
        arguments = _arguments(text)
        if arguments is None:
            return f"The arguments of '{name}' are not a JSON object. It was not called."
        approved = context.is_tool_approved(name, call_id) is True
        for_all = approved and call_id in self._answered and call_id not in self._asked
        asked = self._asked.pop(call_id, None)
        arrived = time.monotonic() if approved else self._arrived
        called, given = self._of_session(call_id, name, arguments)
        made = partial(self._run.call, called, arrived, {} if approved else None, given, call_id=call_id)
        answer = await self._run.with_session(partial(_allowed_for_all, made) if for_all else made)
        if answer.tool is not None and answer.tool.plugin == META_PLUGIN:
            self._meta.add(name)
        if answer.status not in ("ok", "error"):
            self._not_run.add(call_id)
        if answer.status == "needs_approval" and (approved or asked is None):
            self._again.append((name, text, self.host.passed.get(call_id)))
        return _returned(answer)


async def _allowed_for_all(make: Callable[[Session], Awaitable[CallAnswer]], session: Session) -> CallAnswer:
    """Return the answer of a call of a tool that a person has approved for the whole run: nobody was asked about it."""
    answer = await make(session)
    if answer.status != "needs_approval" or answer.approval is None:
        return answer
    return await runs.allowed(session, answer.approval, fields={})


class _ToolInvoker:
    """What the SDK invokes for a tool of a session."""

    def __init__(self, run: _EquippedRun, name: str) -> None:
        self._run = run
        self._name = name

    async def __call__(self, context: ToolContext[Any], arguments: str) -> Any:
        if context.run_config is not None and context.run_config.model is not None:
            _warn_of_model()
        calling = _CALLING.set(context)
        try:
            return await self._run.called(self._name, context, arguments)
        finally:
            _CALLING.reset(calling)


class _SessionAgent:
    """What an equipped agent does where the SDK asks it for its tools and instructions."""

    pegboard_host: _Host

    async def get_all_tools(self, run_context: AnyContext) -> list[Tool]:
        own: list[Tool] = await _any(super()).get_all_tools(run_context)
        run = (
            self.pegboard_host.run_of(run_context)
            if run_context.turn_input
            else self.pegboard_host.new_run(run_context)
        )
        if run_context.turn_input:
            _RUNNING.set(run)
        handoffs = (_handoff_name(one) for one in _any(self).handoffs)
        return [*own, *await run.offered(run_context, {*(tool.name for tool in own), *handoffs})]

    async def get_system_prompt(self, run_context: AnyContext) -> str | None:
        own: str | None = await _any(super()).get_system_prompt(run_context)
        step = self.pegboard_host.run_of(run_context).step
        prefix = step.prefix if step is not None else ""
        return "\n\n".join(text for text in (own, prefix) if text) or own

    def clone(self, **changes: Any) -> Any:
        """Return a copy with changes, over the same session."""
        host, steps = self.pegboard_host, _any(self).model
        plain = _any(super()).clone(**changes)
        plain.pegboard_host = host
        if "tool_use_behavior" in changes:
            plain.tool_use_behavior = _stopping(changes["tool_use_behavior"], host)
        if "model" in changes:
            plain.model = _stepping(changes["model"], host, getattr(steps, "_provider", None))
        return plain


class _StopsBehindTools:
    """What an agent does that ends a run with the result of a tool: a tool that has not run ends none.

    Args:
        given: what the agent was made with, the first tool or some by name; no meta-tool is the first.
        host: the agent's.
    """

    def __init__(self, given: Any, host: _Host) -> None:
        self.given = given
        self._host = host

    def __call__(self, context: AnyContext, results: list[FunctionToolResult]) -> ToolsToFinalOutputResult:
        run = self._host.run_of(context)
        for result in filter(run.has_run, results):
            names = {result.tool.name, result.tool.qualified_name}
            if (
                not run.is_meta(result.tool)
                if isinstance(self.given, str)
                else names & {*self.given["stop_at_tool_names"]}
            ):
                return ToolsToFinalOutputResult(is_final_output=True, final_output=result.output)
        return ToolsToFinalOutputResult(is_final_output=False, final_output=None)

    def _is_named(self, tool: FunctionTool, run: _EquippedRun) -> bool:
        if isinstance(self.given, str):
            return not run.is_meta(tool)
        return not {tool.name, tool.qualified_name}.isdisjoint(self.given["stop_at_tool_names"])


def _stopping(behavior: Any, host: _Host) -> Any:
    """Return what an equipped agent does with the results of tools; a function of the host is asked as it is."""
    given = behavior.given if isinstance(behavior, _StopsBehindTools) else behavior
    declared = given == "stop_on_first_tool" or isinstance(given, dict)
    return _StopsBehindTools(given, host) if declared else given


class _SessionModel:
    """What the twin of a model does around each request."""

    pegboard_host: _Host

    async def _cleanup_on_run_end(self, owner: object) -> None:
        """End the run that the SDK says is over: also one that failed, was cancelled, or stopped at a tool."""
        await _any(super())._cleanup_on_run_end(owner)  # noqa: SLF001
        if (run := self.pegboard_host.owned.pop(owner, None)) is not None:
            await run.end()

    async def get_response(self, *args: Any, **given: Any) -> ModelResponse:
        own, run, request = _any(super()), _run_of(self.pegboard_host), _request(args, given)
        if run is None:
            return await own.get_response(**request)
        run.own_by(_owner_of_request())
        if calls := run.repeated(request):
            return ModelResponse(output=[*calls], usage=Usage(), response_id=None)
        request = await run.prepared(request)
        response: ModelResponse | None = None
        while response is None or run.asks_again():
            try:
                made: ModelResponse = await own.get_response(**request)
            except Exception as error:
                if not await run.rejects(request, error):
                    raise
                continue
            run.answered(request, made.output)
            response = made
        await run.close()
        return response

    async def stream_response(self, *args: Any, **given: Any) -> AsyncIterator[Any]:
        own, run, request = _any(super()), _run_of(self.pegboard_host), _request(args, given)
        if run is not None:
            run.own_by(_owner_of_request())
        calls = run.repeated(request) if run is not None else ()
        if run is not None and not calls:
            request = await run.prepared(request)
        again = not calls
        for event in _events_of(calls) if calls else ():
            yield event
        while again:
            again = False
            try:
                async for event in own.stream_response(**request):
                    if run is not None and isinstance(event, ResponseCompletedEvent):
                        again = await run.completed(request, event.response)
                    elif run is not None and isinstance(event, ResponseOutputItemDoneEvent):
                        event.item = run.item_done(request, event.item)
                    if not again:
                        yield event
            except Exception as error:
                again = run is not None and await run.rejects(request, error)
                if not again:
                    raise


_PARAMETERS: Final = ("system_instructions", "input", "model_settings", "tools", "output_schema", "handoffs", "tracing")
"""Those that the SDK gives a model by their place."""


def _request(args: Sequence[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    return {**dict(zip(_PARAMETERS, args, strict=False)), **given}


class _Named(Model):
    """A model that is known by its name until it is used."""

    def __init__(self, name: str | None, host: _Host, provider: ModelProvider | None) -> None:
        self._name = name
        self._host = host
        self._provider = provider
        self._known: Any = None

    def _model(self) -> Any:
        if self._known is None:
            self._known = _stepping((self._provider or MultiProvider()).get_model(self._name), self._host, None)
        return self._known

    def _supports_default_prompt_cache_key(self) -> bool:
        """Return whether the SDK gives requests a key of their own for the provider's cache, as it asks a model."""
        asked = getattr(self._model(), "_supports_default_prompt_cache_key", None)
        return bool(asked()) if asked is not None else False

    async def _cleanup_on_run_end(self, owner: object) -> None:
        if self._known is not None:
            await self._known._cleanup_on_run_end(owner)  # noqa: SLF001

    async def get_response(self, *args: Any, **given: Any) -> ModelResponse:
        return await self._model().get_response(*args, **given)

    def stream_response(self, *args: Any, **given: Any) -> AsyncIterator[Any]:
        return self._model().stream_response(*args, **given)

    def get_retry_advice(self, request: Any) -> Any:
        return self._model().get_retry_advice(request)

    async def close(self) -> None:
        if self._known is not None:
            await self._known.close()


def _stepping(model: Any, host: _Host, provider: ModelProvider | None) -> Model:
    if not isinstance(model, Model):
        return _Named(model, host, provider)
    made = copy(model) if isinstance(model, _SessionModel) else runs.twin(model, _SessionModel)
    made.pegboard_host = host
    return made


def _owner_of_request() -> object | None:
    """Return what the SDK gives to a model with the end of the run whose request this is; None where it does not."""
    try:
        from agents.models._run_context import get_model_run_owner
    except ImportError:
        runs.warn_once(
            "This version of OpenAI Agents does not say when a run is over: the turn of one that failed, or that "
            "stopped at a tool, ends with the beginning of the next run."
        )
        return None
    return get_model_run_owner()


def _run_of(host: _Host) -> _EquippedRun | None:
    """Return the run whose request this is, if it is one of this agent."""
    run = _RUNNING.get()
    return run if run is not None and run.host is host and run.step is not None else None


def _any(own: Any) -> Any:
    """Return what stands behind the twin, which no type names."""
    return own


def _is_kept(request: Mapping[str, Any]) -> bool:
    """Return whether the server keeps the conversation, and with it all that it was ever sent."""
    return bool(request.get("previous_response_id") or request.get("conversation_id"))


def _is_ours(tool: Any) -> bool:
    return isinstance(tool, FunctionTool) and isinstance(tool.on_invoke_tool, _ToolInvoker)


def _handoff_name(handoff: Any) -> str:
    return handoff.tool_name if isinstance(handoff, Handoff) else Handoff.default_tool_name(handoff)


def _arguments(text: str) -> dict[str, Any] | None:
    return {} if _is_empty(text) else runs.arguments_of(text)


def _is_empty(text: str) -> bool:
    """Return whether a model wrote no arguments."""
    return text.strip() in ("", "null")


def _host_for(model: object) -> Host | None:
    """Return the host for the model of a run; None for one without a provider, and so without a cache (D4).

    The SDK's history has no place for definitions that join, so that the list stays, whatever the model takes.
    """
    known = model is None or isinstance(model, str) or isinstance(getattr(model, "model", None), str)
    return Host(delivery=("result",)) if known else None


def _provider_of(model: object) -> SchemaProvider:
    """Return whose rules schemas keep: a name alone is asked in the form of Responses, as the SDK does."""
    name = model if isinstance(model, str) else getattr(model, "model", "") or ""
    form = "responses" if model is None or isinstance(model, str) else _FORMS.get(type(model).__name__, "")
    return provider_of(form, str(name))


_FORMS: Final = {"OpenAIResponsesModel": "responses", "OpenAIChatCompletionsModel": "chat"}


def _real_call(name: object, arguments: dict[str, Any]) -> tuple[object, Any]:
    """Return what a call is a call of, also one through ``call_tool``."""
    through = name in THROUGH
    return (arguments.get("name"), arguments.get("arguments", {})) if through else (name, arguments)


async def _waiting(session: Session) -> list[Any]:
    """Return the approvals that calls of a session wait for, or waited for until they expired."""
    key = session.key
    known = await session.approvals.list(agent=key.agent, ended=True)
    own = (one for one in known if (one.binding.principal, one.binding.session) == (key.principal, key.session))
    return [one for one in own if one.lasts == "once" and one.status in ("waiting", "allowed", "refused", "expired")]


def _text_of(items: Sequence[Any]) -> str | None:
    """Return the text of the newest message of a user."""
    content: Any = next((item.get("content") for item in reversed(items) if item.get("role") == "user"), None)
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    texts = [str(part["text"]) for part in cast("list[dict[str, Any]]", content) if "text" in part]
    return "\n".join(texts) or None


def _noted(note: str) -> dict[str, Any]:
    return {"role": "user", "content": f"<system>{note}</system>"}


def _with_notes(items: Sequence[Any], notes: Sequence[str]) -> list[Any]:
    """Return a history with what stands behind its items."""
    return [one for item, note in zip(items, notes, strict=True) for one in ((item, _noted(note)) if note else (item,))]


def _returned(answer: CallAnswer) -> Any:
    """Return the result for the model; what it cannot read is named in the text."""
    text, media = runs.text_and_media(answer.result, _FILES)
    if not media:
        return text or answer.message
    parts: list[Any] = [ToolOutputText(text=text)] if text else []
    parts += [ToolOutputImage(image_url=runs.data_url(blob)) for blob in media.get("images", ())]
    parts += [
        ToolOutputFileContent(file_data=runs.data_url(blob), filename="file.pdf") for blob in media.get("files", ())
    ]
    if sounds := media.get("audios"):
        parts.append(ToolOutputText(text=json.dumps([{"mimeType": blob["mime_type"]} for blob in sounds])))
    return parts


def _events_of(calls: Sequence[ResponseFunctionToolCall]) -> list[Any]:
    """Return the events of an answer that only makes calls."""
    done = [
        ResponseOutputItemDoneEvent(
            type="response.output_item.done", item=call, output_index=index, sequence_number=index
        )
        for index, call in enumerate(calls)
    ]
    response = Response(
        id="pegboard",
        created_at=0,
        model="pegboard",
        object="response",
        output=[*calls],
        tool_choice="auto",
        tools=[],
        parallel_tool_calls=True,
        status="completed",
    )
    return [
        *done,
        ResponseCompletedEvent(type="response.completed", response=response, sequence_number=len(calls)),
    ]


def _warn_of_model() -> None:
    runs.warn_once(
        "RunConfig.model takes the place of the agent's model: what is loaded now does not stand behind the history, "
        "and a call of a tool that is not loaded ends the run. Give the model to the agent instead."
    )
