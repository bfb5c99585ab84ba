"""What a session gives to the model calls of one run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar, cast
from uuid import uuid4
from weakref import ref

from pydantic_ai.exceptions import (
    ApprovalRequired,
    CallDeferred,
    ToolFailed,
)
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturn,
    ToolReturnPart,
)
from pydantic_ai.models import Model, ModelRequestContext, ModelRequestParameters
from pydantic_ai.settings import ModelSettings, ToolOrOutput
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from pegboard.board.blocking import SyncSession
from pegboard.board.session import Session
from pegboard.core.model.tools import EMPTY, JsonObject, Tool
from pegboard.core.state.call_plans import CallAnswer
from pegboard.core.surface.continuations import Continuation
from pegboard.core.surface.definitions import all_defined_in
from pegboard.core.surface.surfaces import Surface
from pegboard.dialects.names import META_PLUGIN
from pegboard.errors import UsageError
from pegboard.frameworks.pydantic_ai.approvals import call_approved, may_wait, take_decided, waited_for
from pegboard.frameworks.pydantic_ai.messages import (
    AnyContext,
    call_for_session,
    is_written,
    open_calls,
    result_of,
    text_of,
    texts_with_definitions,
)
from pegboard.frameworks.pydantic_ai.models import (
    host_for_run,
    providers_of,
)
from pegboard.frameworks.pydantic_ai.steps import (
    StepAdditions,
    StepInputs,
    definition_of,
    definitions,
    names_chosen,
    tools_to_choose,
    why_misnamed,
)
from pegboard.frameworks.runs import (
    AnySession,
    ReportedUsage,
    about_login,
    end_turns,
    own_arguments,
    prefix_of,
    reject_tools,
    waits_since_before,
)
from pegboard.ports.framework_runs import FRAMEWORK_RUN, FrameworkRun
from pegboard.wire.acceptable_schemas import SchemaProvider, tool_for_provider

T = TypeVar("T")


CALLING: ContextVar[AnyContext | None] = ContextVar("pegboard_calling", default=None)
"""The run whose model has made the call that is carried out."""


_ANY_OBJECT: Final = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))
"""Whether arguments fit their schema is asked by the session (X2)."""


class SessionToolset(AbstractToolset[Any]):
    """What a session gives to the model calls of one run."""

    def __init__(
        self,
        session: AnySession,
        name: str | None,
        plain: Mapping[int, Model],
        awaiting: set[str],
        limit: int,
    ) -> None:
        self.reported = ReportedUsage()
        self._run_name = uuid4().hex
        self._session = session
        self._plain = plain
        self._awaiting = awaiting
        self.rejected: set[str] = set()
        """The names of what the provider did not take in this run."""
        self.unlisted: dict[str, ToolsetTool[Any]] | None = None
        """Tools beside the list, while hooks of the agent are asked about them."""
        self.outputs: frozenset[str] = frozenset()
        """The names of the agent's output tools, which win."""
        self.others = 0
        """How many tools of its own the agent has at this step."""
        self.own: frozenset[str] = frozenset()
        """The names of the agent's own tools at this step."""
        self.cut = ""
        """Why the model's newest answer is not whole, or nothing."""
        self._name = name
        self._surface: Surface | None = None
        self._joining: StepAdditions | None = None
        self._undecided = True
        self._going = Continuation(limit=limit)
        self._listed: dict[str, tuple[Tool, ToolsetTool[Any]]] = {}
        self._providers: tuple[SchemaProvider, ...] = ()
        self._adapted: list[tuple[Tool, tuple[str, ...]]] = []

    @property
    def id(self) -> str | None:
        """Return the capability's name, which makes its instructions addressable."""
        return self._name

    async def with_session(self, use: Callable[[Session], Awaitable[T]], ctx: AnyContext | None = None) -> T:
        """Call a function with the session, in the session's event loop, and return its result.

        Args:
            use: what uses the session.
            ctx: the run's, at whose moment toolsets that are plugins decide what they have.
        """
        return await self._use_in_run(use, None if ctx is None else FrameworkRun(context=ctx))

    async def _use_in_run(self, use: Callable[[Session], Awaitable[T]], run: FrameworkRun | None) -> T:
        under_way = FRAMEWORK_RUN.set(run)
        try:
            return await self._wait_for_use(use)
        finally:
            FRAMEWORK_RUN.reset(under_way)

    async def _wait_for_use(self, use: Callable[[Session], Awaitable[T]]) -> T:
        if isinstance(self._session, SyncSession):
            return await asyncio.to_thread(self._session.wait, use)
        return await use(self._session)

    async def begin_run(self, session: Session) -> None:
        """Note that the run is under way; what no one goes on with ends before it (S6)."""
        own, is_over = self._run_name, ref(self)
        turns = session.info.conversation.runs.step(own, conversation=own, is_over=lambda: is_over() is None)
        await end_turns(session, turns)

    async def end_run(self, waits: bool, session: Session) -> None:
        """End the run, and the turn where no other run of the session goes on; one that waits goes on later (S6)."""
        runs = session.info.conversation.runs
        if waits:
            runs.pause(self._run_name)
        else:
            await end_turns(session, runs.end(self._run_name), self.reported)

    async def get_tools(self, ctx: AnyContext) -> dict[str, ToolsetTool[Any]]:
        """Return the tools of this step; the first step of a run brings the user's message (S5)."""
        if self.unlisted is not None:
            return self.unlisted
        first = self._surface is None
        if first:
            self._providers = providers_of(ctx.model)
        step = StepInputs(
            message=text_of(ctx.prompt) if first else None,
            host=host_for_run(ctx.model, self._plain) if first else None,
            revealed=frozenset(ctx.discovered_tool_names),
            defined=all_defined_in(texts_with_definitions(ctx.messages)),
            providers=self._providers if first else (),
            others=self.others,
        )
        self._surface, tools, reveals, beside = await self.with_session(step.inputs_for_model, ctx)
        self._going = self._going.next(tuple([tool.wire for tool in tools]), tuple([tool.wire for tool in beside]))
        retries = ctx.max_retries
        listed = {tool.wire: self._toolset_tool(tool, retries) for tool in tools}
        if self._adapted:
            await self.with_session(self._report_adapted, ctx)
        self._joining = StepAdditions(
            surface=self._surface, listed=listed if reveals else (), beside=beside, reveals=first
        )
        waiting = open_calls(ctx) - listed.keys()
        if not waiting:
            return listed
        hidden = await self.with_session(partial(waited_for, waiting, self._awaiting, self._name), ctx)
        return listed | {one.name: self._make_toolset_tool(one, retries) for one in hidden}

    async def handle_rejection(self, error: Exception, sent: Sequence[str]) -> bool:
        """Return whether a provider's error is about tools of the session, which are no longer sent."""
        own = {name: tool for name, (tool, _) in self._listed.items()}

        names = await self.with_session(partial(reject_tools, error, sent, own))
        self.rejected.update(names)
        return bool(names)

    async def with_chosen(self, ctx: AnyContext, request: ModelRequestContext) -> ModelRequestParameters:
        """Return what a request has of tools, with those of the session that its choice names and no list has (D4).

        Raises:
            StoreError: the stored state cannot be read or written.
        """
        known = request.model_request_parameters
        names = () if self.focus() else names_chosen(request.model_settings)
        missing = [name for name in names if name not in known.tool_defs]
        if not missing:
            return known
        tools = await self.with_session(partial(tools_to_choose, missing), ctx)
        chosen = [definition_of(self._tool_for_models(tool), self._name) for tool in tools]
        return replace(known, function_tools=[*known.function_tools, *chosen])

    def join_history(self, ctx: AnyContext, sent: Sequence[ModelMessage]) -> None:
        """Put what is loaded and no list and no history has at the end of the history, where no cache breaks (S5, D4).

        Args:
            ctx: the run's, with the history that is kept.
            sent: the history as this request has it, once what shortens it has done so.
        """
        joining, self._joining = self._joining, None
        new = joining.parts(ctx, sent) if joining is not None else ()
        kept = ctx.messages[-1]
        for request in (kept,) if kept is sent[-1] else (kept, sent[-1]):
            if new and isinstance(request, ModelRequest):
                request.parts = [*request.parts, *new]

    def _toolset_tool(self, tool: Tool, retries: int) -> ToolsetTool[Any]:
        """Return a tool as the framework has it: the same object as long as its definition is the same."""
        known = self._listed.get(tool.wire)
        if known is None or known[0] is not tool or known[1].max_retries != retries:
            known = self._listed[tool.wire] = (
                tool,
                self._make_toolset_tool(definition_of(self._tool_for_models(tool), self._name), retries),
            )
        return known[1]

    def _tool_for_models(self, tool: Tool) -> Tool:
        """Return a tool as every model of the run takes it; what is changed is to be reported."""
        taken, changes = tool, tuple[str, ...]()
        for provider in self._providers:
            taken, more = tool_for_provider(taken, provider)
            changes = (*changes, *more)
        if changes:
            self._adapted.append((tool, changes))
        return taken

    async def _report_adapted(self, session: Session) -> None:
        adapted, self._adapted = self._adapted, []
        for tool, changes in adapted:
            session.report_adapted(tool, changes)

    def _make_toolset_tool(self, definition: ToolDefinition, retries: int) -> ToolsetTool[Any]:
        return SessionToolsetTool(
            toolset=self,
            tool_def=definition,
            max_retries=retries,
            args_validator=_ANY_OBJECT,
            name=definition.name,
            session=self,
        )

    async def get_instructions(self, ctx: AnyContext) -> list[InstructionPart]:
        """Return policy and hints for the prefix, and what is loaded behind the history as it changes (F2, T6)."""
        surface = self._surface or await self.with_session(lambda session: session.surface(), ctx)
        return [
            InstructionPart(prefix_of(surface), name="policy"),
            InstructionPart(self._text_after_load(surface), name="loaded", on_change="append"),
        ]

    def focus(self) -> ModelSettings:
        """Return the choice of tools that the focus of this step asks for, or nothing."""
        focus = self._surface.focus if self._surface is not None else None
        if self._going.over:
            return ModelSettings(tool_choice=ToolOrOutput([]))
        if focus is None:
            return ModelSettings()
        names = list(focus["allowed_tools"])
        return ModelSettings(tool_choice=names if focus["tool_choice"] == "required" else ToolOrOutput(names))

    def _text_after_load(self, surface: Surface) -> str:
        note = self._going.note if self._going.over else ""
        return "\n\n".join(text for text in (surface.suffix, note) if text)

    def settle_response(self, response: ModelResponse, request: ModelRequestContext) -> ModelResponse:
        """Return an answer of the model; one that has to be the last calls nothing but the agent's own output (X3)."""
        if not self._going.over:
            return response
        outputs = {one.name for one in request.model_request_parameters.output_tools}
        kept = [one for one in response.parts if not isinstance(one, ToolCallPart) or one.tool_name in outputs]
        if not any(isinstance(one, ToolCallPart) for one in kept):
            kept.append(TextPart(f"\n\n{self._going.closing()}" if response.text else self._going.closing()))
        return replace(response, parts=kept)

    def note_own(self, ctx: AnyContext) -> None:
        """Note which tools of a step are the agent's own, which no call reaches through the session."""
        known = (ctx.tool_manager.tools if ctx.tool_manager is not None else None) or {}
        self.own = frozenset(name for name, tool in known.items() if tool.tool_def.toolset_id != self._name)

    async def bind_calls(self, ctx: AnyContext, response: ModelResponse) -> Mapping[str, str]:
        """Let the session answer calls of tools that the model was not shown: it loads or refuses them (X1, P9).

        Whatever prepares, filters or renames the agent's tools decides about these too, as if they had been shown.

        Returns:
            The names that these calls have for the agent, where it has others.
        """
        known = ctx.tool_manager.tools if ctx.tool_manager is not None and self._name else None
        ours = next((tool for tool in (known or {}).values() if tool.tool_def.toolset_id == self._name), None)
        if self.cut and known is not None:  # then the agent's own tools do not run either
            called = {call.tool_name for call in response.tool_calls} & (self.own - self.outputs)
            known.update(
                {name: self._make_toolset_tool(ToolDefinition(name=name), known[name].max_retries) for name in called}
            )
        names = {call.tool_name for call in response.tool_calls} - (known or {}).keys()
        if ctx.tool_manager is None or known is None or ours is None or not names:
            return {}
        defined = await self.with_session(partial(definitions, names, self._name), ctx)
        self.unlisted = {one.name: self._make_toolset_tool(one, ours.max_retries) for one in defined}
        try:
            tools = await ctx.tool_manager.toolset.get_tools(ctx)
        finally:
            self.unlisted = None
        bound = {
            name: tool for name, tool in tools.items() if isinstance(tool, SessionToolsetTool) and tool.name in names
        }
        known.update(bound)
        return {tool.name: name for name, tool in bound.items() if tool.name != name}

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: AnyContext, tool: ToolsetTool[Any]) -> Any:  # noqa: ARG002
        """Return what the tool returns; every call passes through the session (P3).

        Raises:
            ApprovalRequired: a person approves it first, or logs in to its server; the run waits (A3, G11).
            CallDeferred: it is run elsewhere, and its result handed in (T13).
            ModelRetry: the arguments do not fit.
            ToolFailed: it did not run, or failed.
        """
        if self.cut:
            raise ToolFailed(self.cut)
        calling, run = CALLING.set(ctx), FrameworkRun(context=ctx)
        try:
            answer = await self._answer_call(name, tool_args, ctx, run)
        finally:
            CALLING.reset(calling)
        beside = None if answer.tool is None else run.returned.get(answer.tool.id)
        if beside is not None and beside.raised is not None:
            raise beside.raised
        returned = result_of(answer)
        for own in (beside.update if beside is not None else None) or ():
            returned = ToolReturn(returned, content=own.content, metadata=own.metadata)
        return returned

    async def _answer_call(
        self, name: str, tool_args: dict[str, Any], ctx: AnyContext, run: FrameworkRun
    ) -> CallAnswer:
        called, given = call_for_session(ctx, name, tool_args)
        if why := await self.with_session(lambda session: why_misnamed(called, given, session), ctx):
            raise ToolFailed(why)
        since, answer = (
            time.time(),
            await self._use_in_run(
                lambda session: session.call(called, own_arguments(called, given, session), call_id=ctx.tool_call_id),
                run,
            ),
        )
        if answer.status == "needs_approval" and (approval := answer.approval) is not None:
            self._undecided = True
            about: dict[str, Any] = {
                "approval": approval.id,
                "reason": approval.reason,
                "fields": dict(approval.fields),
            }
            if approval.kind == "external":
                raise CallDeferred(metadata=about)
            as_asked = waits_since_before(answer, since) is not None or not is_written(ctx, tool_args)
            if not (ctx.tool_call_approved and as_asked):
                raise ApprovalRequired(metadata=about)
            try:
                decided = (
                    cast("JsonObject", ctx.tool_call_metadata) if isinstance(ctx.tool_call_metadata, dict) else EMPTY
                )
                answer = await self._use_in_run(partial(call_approved, approval, decided), run)
            except UsageError as error:
                raise ToolFailed(error.message) from error
        login = about_login(answer)
        if login is not None and not ctx.tool_call_approved and may_wait(ctx):
            self._awaiting.add(name)
            raise ApprovalRequired(metadata={"login": login, "reason": answer.message})
        meta = answer.tool is not None and answer.tool.plugin == META_PLUGIN
        if meta or answer.status in ("ok", "error"):
            self._going = self._going.after_call(name, meta=meta)
        return answer

    async def take_decisions(self, ctx: AnyContext) -> None:
        """Take into the session what came of its waiting calls in the framework: a refusal, or a result (A3, T13)."""
        undecided, self._undecided = self._undecided, False
        messages = ctx.messages
        returned = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)] if undecided else []
        if returned:
            responses = (message for message in messages if isinstance(message, ModelResponse))
            calls = {call.tool_call_id: call for response in responses for call in response.tool_calls}
            made = [(calls[part.tool_call_id], part) for part in returned if part.tool_call_id in calls]
            await self.with_session(partial(take_decided, made), ctx)


@dataclass(kw_only=True)
class SessionToolsetTool(ToolsetTool[Any]):
    """A tool of a session, which is known as one and by its name there, whatever the agent wraps it in."""

    name: str
    session: SessionToolset
