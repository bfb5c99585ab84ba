"""One run of an equipped agent: its tools, its requests, its calls, its end."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4
from weakref import ref

from agents import (
    FunctionTool,
    FunctionToolResult,
    Tool,
)
from agents.exceptions import ModelBehaviorError
from agents.tool_context import ToolContext
from openai.types.responses import (
    Response,
    ResponseFunctionToolCall,
    ResponseOutputItem,
)

from pegboard.board.session import Session
from pegboard.core.surface.definitions import DEFINING
from pegboard.dialects.names import META_PLUGIN
from pegboard.frameworks import runs
from pegboard.frameworks.openai_agents.approvals import allowed_for_all, waiting_approvals
from pegboard.frameworks.openai_agents.items import (
    GOES_ON,
    is_kept,
    note_item,
    real_call,
    result_for_model,
    text_of,
    with_notes,
)
from pegboard.frameworks.openai_agents.models import host_for_model, provider_of_model, warn_of_model
from pegboard.frameworks.openai_agents.state import AgentState, AnyContext, CallThroughMetaTool
from pegboard.frameworks.runs import AnySession, StepRequest
from pegboard.wire.kept_notes import HistoryMessage, HistoryReader
from pegboard.wire.passed_on import passed_on, tool_called
from pegboard.wire.provider_forms import cut_by

RUNNING: ContextVar[EquippedRun | None] = ContextVar("pegboard_running", default=None)
"""The run whose step this is."""

CALLING: ContextVar[ToolContext[Any] | None] = ContextVar("pegboard_calling", default=None)
"""The call that is carried out."""


class EquippedRun:
    """One run of an equipped agent over its session."""

    def __init__(
        self,
        state: AgentState,
        session: AnySession | Callable[[], AnySession | Awaitable[Session]],
        limit: int,
        name: str,
    ) -> None:
        self.state = state
        self.step: StepRequest | None = None
        self.ended_by: str | None = None
        """Why the newest completion has ended, nothing where its stream did not say; None where no model tells."""
        self._run = runs.SessionRun(
            (lambda: session) if isinstance(session, AnySession) else session,
            lambda: (name, name),
            is_over=self._is_over,
            limit=limit,
            provider=provider_of_model(state.model),
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
        self._again: list[tuple[str, str, CallThroughMetaTool | None]] = []
        self._sent = self._key = ""
        self._names: dict[Any, str] = {}
        """The tools of the calls of the history, by call id."""
        self._history = HistoryReader(self._as_said)
        self._done: list[ResponseOutputItem] = []

    def own_by(self, owner: object | None) -> None:
        """Note what the SDK gives to the model with the end of this run."""
        if owner is not None:
            self._owner = ref(owner)
            self.state.owned[owner] = self.end

    def _is_over(self) -> bool:
        """Return whether the run was given up; one of which the SDK tells no end is where another one begins."""
        if self._owner is not None:
            return self._owner() is None
        return bool(self._called) or self._task is None or self._task.done()

    async def end(self) -> None:
        """End the run, whatever became of it; one that waits for a person goes on later (S6)."""
        await self._run.with_session(self._run.pause if self._waits else self._run.end)

    def has_decision_in(self, context: AnyContext) -> bool:
        """Return whether a person has decided in a context about a call that this run waits for."""
        return any(context.is_tool_approved(name, call_id) is not None for call_id, (name, _) in self._asked.items())

    # -- before a request

    async def tools_for_step(self, context: AnyContext, taken: set[str]) -> list[Tool]:
        """Return the session's tools for a step, or for what is decided before one."""
        if not context.turn_input:  # a state is read, and no run goes on
            return await self._run.with_session(self._known_tools)
        message = text_of(context.turn_input) if self._run.is_before_first_step else None
        self._task, self._waits = asyncio.current_task(), False
        return await self._run.with_session(partial(self._step, message, taken))

    async def _step(self, message: str | None, taken: set[str], session: Session) -> list[Tool]:
        begins = self._run.is_before_first_step
        if begins and (host := host_for_model(self.state.model)) is not None:
            session.adopt_host(host)
        self._key = repr(session.key)
        self.step = await self._run.step(message, taken, session)
        tools = {one["function"]["name"]: self._tool(one["function"]) for one in self.step.functions}
        waiting = await waiting_approvals(session) if begins or self._asked else ()
        held = {one.tool: self.stand_in_tool(one.tool) for one in waiting if one.tool not in taken}
        return [*(held | tools).values()]

    async def _known_tools(self, session: Session) -> list[Tool]:
        shown = [one.tool.wire for one in (await session.surface()).tools]
        return [
            self.stand_in_tool(name)
            for name in dict.fromkeys([*shown, *(one.tool for one in await waiting_approvals(session))])
        ]

    def _tool(self, function: dict[str, Any]) -> FunctionTool:
        name = function["name"]
        known = self._tools.get(name)
        if known is None or known[0] is not function:
            known = (function, self._make_function_tool(name, function["description"] or "", function["parameters"]))
            self._tools[name] = known
        return known[1]

    def stand_in_tool(self, name: str, *, asks: bool = True) -> FunctionTool:
        """Return a tool for calls of a name that no request shows: the session answers them (X1, P9)."""
        return self._make_function_tool(name, "", {"type": "object"}, asks=asks)

    def _make_function_tool(self, name: str, description: str, schema: Any, *, asks: bool = True) -> FunctionTool:
        return FunctionTool(
            name=name,
            description=description,
            params_json_schema=schema,
            on_invoke_tool=_ToolInvoker(self, name),
            strict_json_schema=False,
            needs_approval=partial(self._needs_approval, name) if asks else False,
        )

    async def prepare_request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return a request with what the model is to know now; its list of tools loses what only stood in."""
        step, tools, items = self.step, request["tools"], request["input"]
        assert step is not None
        shown = {one["function"]["name"] for one in step.functions}
        tools[:] = [tool for tool in tools if not (is_ours(tool) and tool.name not in shown)]
        items = [{"role": "user", "content": items}] if isinstance(items, str) else [*map(self.state.as_written, items)]
        await self._run.with_session(partial(self._record, items))
        if step.fixed and not is_kept(request):
            behind = self.state.kept.behind(
                self._key, self._history.read(items), step.surface, step.change, step.beside
            )
            items = with_notes(items, behind)
        elif step.note and not (is_kept(request) and step.note == self._sent):
            items.append(note_item(step.note))
        self._sent, self._done, self.ended_by = step.note, [], None
        settings = request["model_settings"]
        if step.choice is not None and tools:
            settings = replace(settings, tool_choice=step.choice)
        elif (chosen := runs.chosen_tool(settings.tool_choice)) is not None:
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
        function = runs.function_of(runs.tool_for(provider_of_model(self.state.model), tool, session))["function"]
        tools.append(self._tool(function))
        runs.warn_once(
            f"tool_choice is '{name}', which the list of the agent's tools does not have: it is loaded, and listed in "
            "the requests that have this choice. The provider reads these without its cache."
        )

    def _as_said(self, item: Any) -> HistoryMessage:
        """Return an item of a history as what is said in it."""
        call_id = item.get("call_id")
        called: tuple[str, ...] = ()
        if item.get("type") == "function_call":
            self._names[call_id] = item["name"]
            called = (tool_called(item["name"], runs.arguments_of(item.get("arguments"))),)
        return HistoryMessage(
            called=called,
            text=json.dumps(item, sort_keys=True, default=str),
            defining=str(item.get("output", "")) if self._names.get(call_id) in DEFINING else "",
        )

    async def handle_rejection(self, request: Mapping[str, Any], error: Exception) -> bool:
        """Return whether a request is to be made again: its tools lose those that the provider does not take."""
        tools: list[Tool] = request["tools"]
        rejected = await self._run.with_session(partial(self._run.rejected_tools, error, [tool.name for tool in tools]))
        tools[:] = [tool for tool in tools if not (is_ours(tool) and tool.name in rejected)]
        return bool(rejected)

    async def _record(self, items: Sequence[Any], session: Session) -> None:
        """Take into the session what a person refused, or ran elsewhere, since the last request (A3, T13)."""
        newest: list[Any] = []
        for item in reversed(items):
            if item.get("type") != "function_call_output":
                break
            newest.append(item)
        newest = [item for item in newest if item["call_id"] not in self._called]
        waiting = await waiting_approvals(session) if newest else ()
        if not waiting:
            return
        calls = {item["call_id"]: item for item in items if item.get("type") == "function_call"}
        for item in newest:
            call_id, words = item["call_id"], str(item["output"])
            asked, made = self._asked.pop(call_id, ("", ""))[1], calls.get(call_id, {})
            about = real_call(made.get("name"), runs.arguments_of(made.get("arguments")) or {})
            about = about[0], runs.own_arguments(str(about[0]), about[1], session)
            own = (
                one for one in waiting if one.id == asked or (not asked and (one.tool, dict(one.arguments)) == about)
            )
            if (approval := next(own, None)) is not None:
                elsewhere = approval.kind == "external"
                refused, result = (None, words) if elsewhere else (words, None)
                await runs.record_decision(session, approval.id, refused=refused, result=result)

    # -- after an answer

    def take_answer(self, request: Mapping[str, Any], output: list[Any]) -> None:
        """Take an answer of the model, or what a limit leaves of it: its calls find their tools."""
        self._arrived = time.monotonic()
        over = {handoff.tool_name for handoff in request["handoffs"]}
        calls = [item for item in output if item.type in GOES_ON and getattr(item, "name", "") not in over]
        content = any(item.type != "reasoning" and item not in calls for item in output)
        if self._run.take_answer(content=content, calls=calls, cut=cut_by(self.ended_by)):
            output[:] = [self._item_as_shown(request, item) if item in calls else item for item in output]
        else:
            output[:] = [item for item in output if item not in calls]
        self._bind(request["tools"], [item for item in output if getattr(item, "name", "") not in over])

    def item_done(self, request: Mapping[str, Any], item: Any) -> Any:
        """Return a part of an answer that is streamed; a call through ``call_tool`` is one of the tool it names."""
        item = self._item_as_shown(request, item)
        self._done.append(item)
        over = {handoff.tool_name for handoff in request["handoffs"]}
        self._bind(request["tools"], [item] if getattr(item, "name", "") not in over else [])
        return item

    def _item_as_shown(self, request: Mapping[str, Any], item: Any) -> Any:
        """Return an item of an answer; a call through ``call_tool`` is one of the tool that it names."""
        if item.type != "function_call" or getattr(item, "namespace", None):
            return item
        own = names_of_own(request)
        passed = passed_on(item.name, runs.arguments_of(item.arguments), own)
        if passed is None:
            return item if item.name in own else self.state.with_arguments(item)
        made = item.model_copy(update={"name": passed.name, "arguments": json.dumps(passed.arguments)})
        self.state.note_passed(
            item.call_id, CallThroughMetaTool(call=passed, shown=made.arguments, written=item.arguments)
        )
        return made

    async def complete_answer(self, request: Mapping[str, Any], response: Response) -> bool:
        """Take the end of an answer that was streamed; return whether the model is to be asked once more.

        Raises:
            ModelBehaviorError: it is only half of one, which the SDK takes as whole.
        """
        response.output = response.output or self._done
        if self.ended_by == "" and not all(map(_is_readable, response.output)):
            raise ModelBehaviorError("The provider's stream ended in the middle of the answer. None of its calls ran.")
        self._done = []
        self.take_answer(request, response.output)
        again = self.asks_model_again()
        if not again:
            await self.close()
        return again

    async def close(self) -> None:
        """End the turn where the newest answer calls nothing (S6)."""
        await self._run.with_session(self._run.close)

    def _bind(self, tools: list[Tool], items: Sequence[Any]) -> None:
        """Let the session answer the calls of tools that the model was not shown, and all of an answer that was cut."""
        names = {tool.name: index for index, tool in enumerate(tools)}
        for call in items:
            if call.type != "function_call" or getattr(call, "namespace", None):
                continue
            self._answered.add(call.call_id)
            index, readable = names.get(call.name), runs.arguments_of(call.arguments) is not None
            if index is None:
                names[call.name] = len(tools)
                tools.append(self.stand_in_tool(call.name, asks=readable))
            elif self._run.cut or (not readable and is_ours(tools[index])):
                tools[index] = self.stand_in_tool(call.name, asks=False)

    def is_meta(self, tool: FunctionTool) -> bool:
        """Return whether a tool only manages the others."""
        return is_ours(tool) and tool.name in self._meta

    def asks_model_again(self) -> bool:
        """Return whether the model is to be asked once more, since it answered nothing right after a change."""
        return self._run.asks_model_again()

    def calls_to_repeat(self, request: Mapping[str, Any]) -> list[ResponseFunctionToolCall]:
        """Return the calls that are made again without the model, since a person is to be asked again (A6)."""
        again, self._again = self._again, []
        if is_kept(request):
            return []  # a server that keeps the conversation knows only calls of its own
        made = partial(ResponseFunctionToolCall, type="function_call", status="completed")
        calls = [made(name=name, arguments=text, call_id=f"call_{uuid4().hex}") for name, text, _ in again]
        for call, (*_, passed) in zip(calls, again, strict=True):
            if passed is not None:
                self.state.note_passed(call.call_id, passed)
        self._bind(request["tools"], calls)
        return calls

    # -- a call

    async def _needs_approval(self, name: str, context: AnyContext, arguments: dict[str, Any], call_id: str) -> bool:  # noqa: ARG002
        """Return whether a person approves a call first, who is asked by this (A1)."""
        if self._run.cut or await self._run.with_session(lambda session: session.runs_unasked(name)):
            return False
        called, given = self.state.call_for_session(call_id, name, arguments)
        decision = await self._run.with_session(
            lambda session: session.decide(called, runs.own_arguments(called, given, session), ask=True)
        )
        if decision.status != "needs_approval" or decision.approval is None:
            return False
        self._asked[call_id] = (name, decision.approval.id)
        self._waits = True
        self.state.note_waiting(self)
        return True

    def has_run(self, result: FunctionToolResult) -> bool:
        """Return whether a result is that of its tool, and not an answer in place of one."""
        raw: Any = None if result.run_item is None else result.run_item.raw_item
        call_id = raw.get("call_id") if isinstance(raw, Mapping) else getattr(raw, "call_id", None)
        return call_id not in self._not_run

    async def text_for_model(self, name: str, context: ToolContext[Any], text: str) -> Any:
        """Return what the model reads of a call."""
        call_id = context.tool_call_id
        self._called.add(call_id)
        arguments = runs.arguments_of(text)
        if self._run.cut or arguments is None:
            self._not_run.add(call_id)
            return self._run.cut or f"The arguments of '{name}' are not a JSON object. It was not called."
        approved = context.is_tool_approved(name, call_id) is True
        for_all = approved and call_id in self._answered and call_id not in self._asked
        asked = self._asked.pop(call_id, None)
        arrived = time.monotonic() if approved else self._arrived
        called, given = self.state.call_for_session(call_id, name, arguments)
        made = partial(self._run.call, called, arrived, {} if approved else None, given, call_id=call_id)
        answer = await self._run.with_session(partial(allowed_for_all, made) if for_all else made)
        if answer.tool is not None and answer.tool.plugin == META_PLUGIN:
            self._meta.add(name)
        if answer.status not in ("ok", "error"):
            self._not_run.add(call_id)
        if answer.status == "needs_approval" and (approved or asked is None):
            self._again.append((name, text, self.state.passed.get(call_id)))
        return result_for_model(answer)


class _ToolInvoker:
    """What the SDK invokes for a tool of a session."""

    def __init__(self, run: EquippedRun, name: str) -> None:
        self._run = run
        self._name = name

    async def __call__(self, context: ToolContext[Any], arguments: str) -> Any:
        if context.run_config is not None and context.run_config.model is not None:
            warn_of_model()
        calling = CALLING.set(context)
        try:
            return await self._run.text_for_model(self._name, context, arguments)
        finally:
            CALLING.reset(calling)


def is_ours(tool: Any) -> bool:
    """Return whether a tool is one of a session."""
    return isinstance(tool, FunctionTool) and isinstance(tool.on_invoke_tool, _ToolInvoker)


def _is_readable(item: Any) -> bool:
    """Return whether an item of an answer is no call, or one with whole arguments."""
    return item.type != "function_call" or runs.arguments_of(item.arguments) is not None


def names_of_own(request: Mapping[str, Any]) -> set[str]:
    """Return the names of a request's tools and handoffs that are the agent's own."""
    own = {tool.name for tool in request["tools"] if not is_ours(tool)}
    return own | {handoff.tool_name for handoff in request["handoffs"]}
