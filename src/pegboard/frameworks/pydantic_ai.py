"""pydantic-ai: a capability that gives an agent the tools of a session, anew before every model call.

``Agent(model, capabilities=[SessionTools(session)])`` is all that an agent needs. What a load adds reaches the
provider by the framework's own record of tools that joined; approvals are its deferred tool requests.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeGuard, TypeVar, cast, get_args
from uuid import uuid4
from weakref import ref

import anyio
from pydantic_core import SchemaValidator, core_schema

from pegboard.board.blocking import SyncSession
from pegboard.board.session import Session
from pegboard.core.access.approvals.approval import Approval
from pegboard.core.model.delivery import Host
from pegboard.core.model.leases import LEASED
from pegboard.core.model.tools import EMPTY, JsonObject, Tool
from pegboard.core.state.call_plans import CallAnswer
from pegboard.core.surface.continuations import LIMIT, Continuation
from pegboard.core.surface.definitions import AHEAD, DEFINING, all_defined_in, defines, definitions_ahead, not_defined
from pegboard.core.surface.surfaces import Surface
from pegboard.dialects.names import META_PLUGIN
from pegboard.errors import UsageError
from pegboard.frameworks.runs import (
    AnySession,
    Reported,
    about_login,
    arguments_of,
    end_turns,
    loaded_beside,
    misnamed,
    own_arguments,
    prefix_of,
    reject_tools,
    rejected_of,
    text_and_media,
    waits_since_before,
    worker_of,
)
from pegboard.frameworks.versions import warn_if_untested
from pegboard.ports.framework_runs import FRAMEWORK_RUN, FrameworkRun
from pegboard.wire.acceptable_schemas import SchemaProvider, as_taken, provider_of
from pegboard.wire.passed_on import PassedOn, passed_on, tool_called
from pegboard.wire.provider_forms import cut_by
from pegboard.wire.rejections import rejection_of
from pegboard.wire.result_blocks import RESULT_LIMIT

warn_if_untested("pydantic-ai-slim")
try:
    from pydantic_ai import RunContext
    from pydantic_ai.agent import AbstractAgent, EventStreamHandler
    from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
    from pydantic_ai.exceptions import (
        ApprovalRequired,
        CallDeferred,
        ModelHTTPError,
        ModelRetry,
        RetryModelRequest,
        ToolFailed,
    )
    from pydantic_ai.messages import (
        BinaryContent,
        DocumentMediaType,
        InstructionPart,
        ModelMessage,
        ModelRequest,
        ModelRequestPart,
        ModelResponse,
        ModelResponsePart,
        TextContent,
        TextPart,
        ToolAvailabilityDeltaPart,
        ToolCallPart,
        ToolReturn,
        ToolReturnPart,
        UserContent,
        UserPromptPart,
        VideoMediaType,
    )
    from pydantic_ai.models import Model, ModelRequestContext, ModelRequestParameters, StreamedResponse
    from pydantic_ai.models.fallback import FallbackModel
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.models.wrapper import WrapperModel
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.settings import ModelSettings, ToolOrOutput
    from pydantic_ai.tools import DeferredToolRequests, ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
except ImportError as error:
    from pegboard.support.installed import install_line

    raise ImportError(f"pydantic-ai is missing. Install it: {install_line(extra='pydantic-ai')}") from error

T = TypeVar("T")
AnyContext = RunContext[Any]
OpenSession = Callable[[AnyContext], Awaitable[AnySession]]

_CALLING: ContextVar[AnyContext | None] = ContextVar("pegboard_calling", default=None)
"""The run whose model has made the call that is carried out."""
_PASSED: Final = "pegboard_calls"
"""Where an answer of the model has its calls through ``call_tool`` as it wrote them: its metadata, never sent."""
_FILES: Final = frozenset((*get_args(DocumentMediaType), *get_args(VideoMediaType)))
_FORMS: Final = {"AnthropicModel": "anthropic", "OpenAIResponsesModel": "responses", "OpenAIChatModel": "chat"}
"""The form in which models of a class are asked."""
_ANY_OBJECT: Final = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))
"""Whether arguments fit their schema is asked by the session (X2)."""


@dataclass
class SessionTools(AbstractCapability[Any]):
    """The tools of a session and all that belongs to them, for an agent or for one run of it.

    Attributes:
        session: the session, or what opens one for a run, from its dependencies or its conversation id.
        id: the name under which a run's capability takes the place of its agent's.
        limit: how often in a row the tools of a run change without one being used; then the model has to answer.
    """

    session: AnySession | OpenSession
    id: str | None = field(default="pegboard", kw_only=True)
    limit: int = field(default=LIMIT, kw_only=True)
    _plain: dict[int, Model] = field(default_factory=dict[int, Model], kw_only=True, repr=False, compare=False)
    _awaiting: set[str] = field(default_factory=set[str], kw_only=True, repr=False, compare=False)
    _toolset: SessionToolset | None = field(init=False, default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.session, AnySession):
            self._toolset = SessionToolset(self.session, self.id, self._plain, self._awaiting, self.limit)

    async def for_run(self, ctx: AnyContext) -> SessionTools:
        """Return the capability with the session of this run, and with nothing of another run."""
        session = self.session if isinstance(self.session, AnySession) else await self.session(ctx)
        return replace(self, session=session)

    def get_toolset(self) -> SessionToolset | None:
        """Return the tools where the framework is to hide them until the capability is loaded, else None."""
        return self._toolset if self.defer_loading else None

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any] | None:
        """Return the agent's tools with those of the session behind them; None until a run has its session.

        The framework copies the tools of a capability with every step, and lists toolsets in tasks of their own; what
        stands here it takes as it is. Hooks of the agent that prepare its tools prepare these too.
        """
        return None if self._toolset is None or self.defer_loading else _with_session(toolset, self._toolset)

    async def prepare_output_tools(self, ctx: AnyContext, tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:  # noqa: ARG002
        """Return the agent's output tools as they are; the names of these the session's tools do not take."""
        if self._toolset is not None:
            self._toolset.outputs = frozenset(one.name for one in tool_defs)
        return tool_defs

    def get_model_settings(self) -> Callable[[AnyContext], ModelSettings]:
        """Return what narrows a step to its focus (F3)."""
        return lambda _: ModelSettings() if self._toolset is None else self._toolset.focus()

    async def before_model_request(self, ctx: AnyContext, request_context: ModelRequestContext) -> ModelRequestContext:
        """Return the request as it is; what a person decided meanwhile is known to the session too (A3)."""
        if self._toolset is not None:
            await self._toolset.take_decisions(ctx)
            self._toolset.join_history(ctx.messages[-1], request_context.messages[-1])
        request_context.model = self._plain.get(id(_bare(request_context.model)), request_context.model)
        return request_context

    def get_wrapper_model(self, model: Model) -> Model | None:
        """Return a model for requests that are sent otherwise than the framework has them; None where none is.

        They lack the tools that the provider does not take, and have calls through ``call_tool`` as they were made.

        A hook that prepares requests would make the framework copy every definition with every step.
        """
        toolset = self._toolset
        if toolset is None or not (toolset.rejected or toolset.passes_on):
            return None
        return _AsSent(model, toolset.rejected)

    async def on_model_request_error(
        self, ctx: AnyContext, *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Ask once more without what the provider rejects, from then on: a tool, or additions to the history (D4)."""
        model = _bare(request_context.model)
        if self._toolset is not None:
            known = request_context.model_request_parameters
            sent = [tool.name for tool in (*known.function_tools, *known.output_tools)]
            sent = [name for name in sent if name not in self._toolset.rejected]
            if await self._toolset.rejects(error, sent):
                raise RetryModelRequest from error
        if self._toolset is None or not _rejects_additions(model, error):
            raise error
        plain = self._plain[id(_bare(ctx.model))] = _without_additions(model)
        reason = str(error)
        await self._toolset.with_session(lambda session: _reported(session, reason))
        raise RetryModelRequest(model=plain) from error

    async def after_model_request(
        self,
        ctx: AnyContext,
        *,
        request_context: ModelRequestContext,
        response: ModelResponse,
    ) -> ModelResponse:
        """Return the response as it is, its calls of tools that were not shown bound to the session too."""
        if self._toolset is not None:
            if not isinstance(_bare(request_context.model), FunctionModel | TestModel):
                self._toolset.reported.add(response.usage.input_tokens, response.usage.cache_read_tokens)
            self._toolset.cut = cut_by(response.finish_reason)
            response = self._toolset.named(ctx, self._toolset.settled(response, request_context))
            response = _renamed(response, await self._toolset.bind_calls(ctx, response))
            self._toolset.passes_on = self._toolset.passes_on or bool(_passed_in(response))
        return response

    async def wrap_run(self, ctx: AnyContext, *, handler: WrapRunHandler) -> AgentRunResult[Any]:  # noqa: ARG002
        """Return what the run returns; the turn ends with it, unless it waits for an approval (S6)."""
        if self._toolset is None:
            return await handler()
        waits, toolset = False, self._toolset
        await toolset.with_session(toolset.begin_run)
        try:
            result = await handler()
            waits = isinstance(result.output, DeferredToolRequests)
            return result
        finally:
            with anyio.CancelScope(shield=True):
                await toolset.with_session(partial(toolset.end_run, waits))


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
        self.reported = Reported()
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
        self.passes_on = False
        """Whether the history has calls through ``call_tool``."""
        self.cut = ""
        """Why the model's newest answer is not whole, or nothing."""
        self._name = name
        self._surface: Surface | None = None
        self._joining: list[ModelRequestPart] = []
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
        return await self._used(use, None if ctx is None else FrameworkRun(context=ctx))

    async def _used(self, use: Callable[[Session], Awaitable[T]], run: FrameworkRun | None) -> T:
        under_way = FRAMEWORK_RUN.set(run)
        try:
            return await self._waited(use)
        finally:
            FRAMEWORK_RUN.reset(under_way)

    async def _waited(self, use: Callable[[Session], Awaitable[T]]) -> T:
        if isinstance(self._session, SyncSession):
            return await asyncio.to_thread(self._session.wait, use)
        return await use(self._session)

    async def begin_run(self, session: Session) -> None:
        """Note that the run is under way; what nobody goes on with ends before it (S6)."""
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
        step = _StepInputs(
            message=_text_of(ctx.prompt) if first else None,
            host=_host_for(ctx.model, self._plain) if first else None,
            revealed=frozenset(ctx.discovered_tool_names),
            defined=all_defined_in(_defining(ctx.messages)),
        )
        self._surface, tools, reveals, beside = await self.with_session(step.taken, ctx)
        self._going = self._going.next(tuple([tool.wire for tool in tools]), tuple([tool.wire for tool in beside]))
        retries = ctx.max_retries
        if first:
            self._providers = _providers_of(ctx.model)
        listed = {tool.wire: self._given(tool, retries) for tool in tools}
        if self._adapted:
            await self.with_session(self._report_adapted, ctx)
        if first:
            self.passes_on = any(_passed_in(message) for message in ctx.messages)
            self._joining = _joining(self._surface, ctx, listed if reveals else (), beside)
        waiting = _open_calls(ctx) - listed.keys()
        if not waiting:
            return listed
        hidden = await self.with_session(partial(_waited_for, waiting, self._awaiting, self._name), ctx)
        return listed | {one.name: self._made(one, retries) for one in hidden}

    async def rejects(self, error: Exception, sent: Sequence[str]) -> bool:
        """Return whether a provider's error is about tools of the session, which are not sent any more."""
        own = {name: tool for name, (tool, _) in self._listed.items()}

        async def reported(session: Session) -> Collection[str]:
            return reject_tools(error, sent, own, session)

        names = await self.with_session(reported)
        self.rejected.update(names)
        return bool(names)

    def join_history(self, kept: ModelMessage, sent: ModelMessage) -> None:
        """Put what is loaded ahead at the end of the history, where it changes nothing that is cached (S5, D4)."""
        joining, self._joining = self._joining, []
        for request in (kept,) if kept is sent else (kept, sent):
            if joining and isinstance(request, ModelRequest):
                request.parts = [*request.parts, *joining]

    def _given(self, tool: Tool, retries: int) -> ToolsetTool[Any]:
        """Return a tool as the framework has it: the same object as long as its definition is the same."""
        known = self._listed.get(tool.wire)
        if known is None or known[0] is not tool or known[1].max_retries != retries:
            known = self._listed[tool.wire] = (tool, self._made(_defined(self._taken(tool), self._name), retries))
        return known[1]

    def _taken(self, tool: Tool) -> Tool:
        """Return a tool as every model of the run takes it; what is changed is to be reported."""
        taken, changes = tool, tuple[str, ...]()
        for provider in self._providers:
            taken, more = as_taken(taken, provider)
            changes = (*changes, *more)
        if changes:
            self._adapted.append((tool, changes))
        return taken

    async def _report_adapted(self, session: Session) -> None:
        adapted, self._adapted = self._adapted, []
        for tool, changes in adapted:
            session.report_adapted(tool, changes)

    def _made(self, definition: ToolDefinition, retries: int) -> ToolsetTool[Any]:
        return _SessionTool(
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
            InstructionPart(self._loaded(surface), name="loaded", on_change="append"),
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

    def _loaded(self, surface: Surface) -> str:
        note = self._going.note if self._going.over else ""
        return "\n\n".join(text for text in (surface.suffix, note) if text)

    def settled(self, response: ModelResponse, request: ModelRequestContext) -> ModelResponse:
        """Return an answer of the model; one that has to be the last calls nothing but the agent's own output (X3)."""
        if not self._going.over:
            return response
        outputs = {one.name for one in request.model_request_parameters.output_tools}
        kept = [one for one in response.parts if not isinstance(one, ToolCallPart) or one.tool_name in outputs]
        if not any(isinstance(one, ToolCallPart) for one in kept):
            kept.append(TextPart(f"\n\n{self._going.closing()}" if response.text else self._going.closing()))
        return replace(response, parts=kept)

    def named(self, ctx: AnyContext, response: ModelResponse) -> ModelResponse:
        """Return an answer whose calls through ``call_tool`` are those of the tools that they name.

        So hooks, limits and approvals that go by a tool's name see that tool.
        """
        known = (ctx.tool_manager.tools if ctx.tool_manager is not None else None) or {}
        own = {name for name, tool in known.items() if tool.tool_def.toolset_id != self._name}
        passed: dict[str, Any] = {}
        parts: list[ModelResponsePart] = []
        for part in response.parts:
            one = passed_on(part.tool_name, _arguments(part), own) if isinstance(part, ToolCallPart) else None
            if one is None or not isinstance(part, ToolCallPart):
                parts.append(part)
                continue
            passed[part.tool_call_id] = {**asdict(one), "args": part.args}
            parts.append(replace(cast("Any", part), tool_name=one.name, args=one.arguments))
        if not passed:
            return response
        return replace(response, parts=parts, metadata={**(response.metadata or {}), _PASSED: passed})

    async def bind_calls(self, ctx: AnyContext, response: ModelResponse) -> Mapping[str, str]:
        """Let the session answer calls of tools that the model was not shown: it loads or refuses them (X1, P9).

        Whatever prepares, filters or renames the agent's tools decides about these too, as if they had been shown.

        Returns:
            The names that these calls have for the agent, where it has others.
        """
        known = ctx.tool_manager.tools if ctx.tool_manager is not None and self._name else None
        ours = next((tool for tool in (known or {}).values() if tool.tool_def.toolset_id == self._name), None)
        names = {call.tool_name for call in response.tool_calls} - (known or {}).keys()
        if ctx.tool_manager is None or known is None or ours is None or not names:
            return {}
        defined = await self.with_session(partial(_definitions, names, self._name), ctx)
        self.unlisted = {one.name: self._made(one, ours.max_retries) for one in defined}
        try:
            tools = await ctx.tool_manager.toolset.get_tools(ctx)
        finally:
            self.unlisted = None
        bound = {name: tool for name, tool in tools.items() if isinstance(tool, _SessionTool) and tool.name in names}
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
        calling, run = _CALLING.set(ctx), FrameworkRun(context=ctx)
        try:
            answer = await self._answered(name, tool_args, ctx, run)
        finally:
            _CALLING.reset(calling)
        beside = None if answer.tool is None else run.returned.get(answer.tool.id)
        if beside is not None and beside.raised is not None:
            raise beside.raised
        returned = _returned(answer)
        for own in (beside.update if beside is not None else None) or ():
            returned = ToolReturn(returned, content=own.content, metadata=own.metadata)
        return returned

    async def _answered(self, name: str, tool_args: dict[str, Any], ctx: AnyContext, run: FrameworkRun) -> CallAnswer:
        called, given = _of_session(ctx, name, tool_args)
        if why := await self.with_session(lambda session: _misnamed(called, given, session), ctx):
            raise ToolFailed(why)
        since, answer = (
            time.time(),
            await self._used(
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
            as_asked = waits_since_before(answer, since) is not None or not _is_written(ctx, tool_args)
            if not (ctx.tool_call_approved and as_asked):
                raise ApprovalRequired(metadata=about)
            try:
                decided = (
                    cast("JsonObject", ctx.tool_call_metadata) if isinstance(ctx.tool_call_metadata, dict) else EMPTY
                )
                answer = await self._used(partial(_approved, approval, decided), run)
            except UsageError as error:
                raise ToolFailed(error.message) from error
        login = about_login(answer)
        if login is not None and not ctx.tool_call_approved and _may_wait(ctx):
            self._awaiting.add(name)
            raise ApprovalRequired(metadata={"login": login, "reason": answer.message})
        meta = answer.tool is not None and answer.tool.plugin == META_PLUGIN
        if meta or answer.status in ("ok", "error"):
            self._going = self._going.called(name, meta=meta)
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
            await self.with_session(partial(_decided, made), ctx)


@dataclass(kw_only=True)
class _SessionTool(ToolsetTool[Any]):
    """A tool of a session, which is known as one and by its name there, whatever the agent wraps it in."""

    name: str
    session: SessionToolset


@dataclass
class _WithSession(WrapperToolset[Any]):
    """The tools of an agent with those of a session behind them; neither is copied."""

    session: SessionToolset

    @property
    def id(self) -> str | None:
        """Return the name of the capability, under which its instructions stand."""
        return self.session.id

    async def get_tools(self, ctx: AnyContext) -> dict[str, ToolsetTool[Any]]:
        own, ours = await self.wrapped.get_tools(ctx), await self.session.get_tools(ctx)
        taken = own.keys() | self.session.outputs
        return {**own, **{name: tool for name, tool in ours.items() if name not in taken}}

    async def get_instructions(self, ctx: AnyContext) -> list[str | InstructionPart]:
        own: Any = await super().get_instructions(ctx)
        return [*(own or ()), *await self.session.get_instructions(ctx)]

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: AnyContext, tool: ToolsetTool[Any]) -> Any:
        ours = isinstance(tool, _SessionTool) and tool.session is self.session
        called = self.session if ours else self.wrapped
        return await called.call_tool(name, tool_args, ctx, tool)

    def apply(self, visitor: Callable[[AbstractToolset[Any]], None]) -> None:
        super().apply(visitor)
        self.session.apply(visitor)


def _with_session(toolset: AbstractToolset[Any], session: SessionToolset) -> AbstractToolset[Any]:
    """Return what an agent's tools are wrapped in, around them and those of a session."""
    if isinstance(toolset, WrapperToolset):
        return replace(toolset, wrapped=_with_session(toolset.wrapped, session))
    return _WithSession(toolset, session)


class _AsSent(WrapperModel):
    """A model whose requests lack the tools that its provider did not take, and have calls as the model made them."""

    def __init__(self, wrapped: Model, rejected: AbstractSet[str]) -> None:
        super().__init__(wrapped)
        self._rejected = rejected

    def _kept(self, known: ModelRequestParameters) -> ModelRequestParameters:
        return replace(known, function_tools=[tool for tool in known.function_tools if tool.name not in self._rejected])

    def prepare_messages(
        self, messages: list[ModelMessage], model_request_parameters: ModelRequestParameters | None = None
    ) -> list[ModelMessage]:
        known = model_request_parameters and self._kept(model_request_parameters)
        return super().prepare_messages(messages, known)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        return await super().request(
            [*map(_as_written, messages)], model_settings, self._kept(model_request_parameters)
        )

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: AnyContext | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        known = self._kept(model_request_parameters)
        sent = [*map(_as_written, messages)]
        async with super().request_stream(sent, model_settings, known, run_context) as stream:
            yield stream


@dataclass(frozen=True, slots=True, kw_only=True)
class _StepInputs:
    """What is known of a step before the session is asked: at the first one of a run the message and the host."""

    message: str | None
    host: Host | None
    revealed: frozenset[str]
    defined: Mapping[str, JsonObject]

    async def taken(self, session: Session) -> tuple[Surface, Sequence[Tool], bool, Sequence[Tool]]:
        """Return what goes to the model at this step, the tools of its list, and whether the history reveals them.

        Last stands what is loaded beside a list that stays as it is.
        """
        host = session.host if self.host is None else session.adopt_host(self.host)
        surface = await session.surface(message=self.message)
        if host.cache is None and not host.reveals:
            beside = await loaded_beside(session) if host.list_is_fixed else ()
            return surface, _taken(session, [entry.tool for entry in surface.tools]), False, beside
        tools = _taken(session, await session.wire(revealed=self.revealed))
        if surface.focus is not None:
            await session.surface(message=self.message)  # a wire list takes the focus away
        if not host.reveals or not self.defined:
            return surface, tools, host.reveals, ()
        leased = {one.tool.wire for one in surface.tools if one.because[0] in LEASED} - self.revealed
        beside = [tool for tool in tools if tool.wire in leased and defines(self.defined.get(tool.wire), tool)]
        names = {tool.wire for tool in beside}
        return surface, [tool for tool in tools if tool.wire not in names], True, beside


def _taken(session: Session, tools: Sequence[Tool]) -> Sequence[Tool]:
    """Return the tools without those that the provider of the model did not take."""
    rejected = rejected_of(session, tools)
    return [tool for tool in tools if tool.wire not in rejected] if rejected else tools


def _host_for(model: object, plain: Mapping[int, Model]) -> Host | None:
    """Return the host for the model of a run; None for one without a provider, and so without a cache (D4).

    Of several models of which any may answer, all have to take what joins within the history.
    """
    known = [one for one in _models_of(model) if not isinstance(one, FunctionModel | TestModel)]
    if not known:
        return None
    reveals = all(_adds(one) and id(one) not in plain for one in known)
    return Host(delivery=("native", "result") if reveals else ("result",))


def _models_of(model: object) -> Iterator[Model]:
    """Yield the models of which any may answer: those that a model falls back to, else it itself."""
    bare = _bare(model)
    if isinstance(bare, FallbackModel):
        for one in bare.models:
            yield from _models_of(one)
    elif isinstance(bare, Model):
        yield bare


def _providers_of(model: object) -> tuple[SchemaProvider, ...]:
    """Return whose rules the schemas of a run keep: those of all models of which any may answer."""
    found = (provider_of(_form_of(one), one.model_name) for one in _models_of(model))
    return tuple(dict.fromkeys(found))


def _form_of(model: Model) -> str:
    kinds = (kind.__name__ for kind in type(model).__mro__)
    return next((_FORMS[kind] for kind in kinds if kind in _FORMS), "")


def _adds(model: Model) -> bool:
    """Return whether a model takes tools that join within the history; one that cannot tell does not."""
    try:
        return model.tool_addition_mode is not None
    except NotImplementedError:  # it has no profile of its own
        return False


def _bare(model: object) -> object:
    while isinstance(model, WrapperModel):
        model = model.wrapped
    return model


def _rejects_additions(model: object, error: Exception) -> TypeGuard[Model]:
    """Return whether a provider does not take tools that join within the history."""
    if not isinstance(model, Model) or not isinstance(error, ModelHTTPError) or not _adds(model):
        return False
    return rejection_of(error, ()).kind == "form"


def _without_additions(model: Model) -> Model:
    """Return the model with a profile that adds nothing to a history."""
    plain = copy(model)
    plain.profile = {**model.profile, "tool_addition_mode": None, "tool_deferral_mode": None}
    return plain


async def _reported(session: Session, reason: str) -> None:
    session.report_rejected("form:additions", reason)


def _joining(
    surface: Surface, ctx: AnyContext, listed: Collection[str], beside: Sequence[Tool]
) -> list[ModelRequestPart]:
    """Return what the first request of a run adds to the history: the tools that no list and no history has yet.

    ``listed`` are those of which the history may reveal some, ``beside`` what is loaded and stands in no list.
    """
    anticipated = surface.anticipated if surface.ahead else ()
    if not listed and not anticipated and not beside:
        return []
    if not listed:
        known = all_defined_in((*_ahead_before(ctx.messages), *_defining(ctx.messages)))
        calls = [call for one in ctx.messages if isinstance(one, ModelResponse) for call in one.tool_calls]
        called = {tool_called(call.tool_name, _arguments(call)) for call in calls}
        new = {one.wire: one for one in not_defined(anticipated, known)}
        new |= {one.wire: one for one in not_defined(beside, known, called)}
        ahead = definitions_ahead(new.values())
        return [UserPromptPart(ahead)] if ahead else []
    leased = {entry.tool.id for entry in surface.tools if entry.because[0] in LEASED}
    joined = (one.tool for one in surface.tools if one.tool.id in leased or leased.intersection(one.needed_by))
    new = [tool.wire for tool in joined if tool.wire in listed and tool.wire not in ctx.discovered_tool_names]
    return [ToolAvailabilityDeltaPart(tools_added=new)] if new else []


def _ahead_before(messages: Sequence[ModelMessage]) -> Iterator[str]:
    """Yield what earlier runs added to the history of tools that were loaded ahead."""
    parts = (part for message in messages for part in message.parts if isinstance(part, UserPromptPart))
    return (part.content for part in parts if isinstance(part.content, str) and part.content.startswith(AHEAD))


def _defining(messages: Sequence[ModelMessage]) -> Iterator[str]:
    """Yield the answers to loads and searches."""
    for message in messages:
        if isinstance(message, ModelRequest):
            for part in message.parts:
                if isinstance(part, ToolReturnPart) and part.tool_name in DEFINING:
                    yield part.model_response_str()


def _arguments(call: ToolCallPart) -> dict[str, Any] | None:
    """Return the arguments of a call, or None where they are no object."""
    return call.args if isinstance(call.args, dict) else arguments_of(call.args)


def _passed_in(message: ModelMessage) -> Mapping[str, Any]:
    """Return how the model made the calls of an answer that went through ``call_tool``, by their ids."""
    return (message.metadata or {}).get(_PASSED, EMPTY) if isinstance(message, ModelResponse) else EMPTY


def _passed(about: Mapping[str, Any]) -> PassedOn | None:
    """Return how a call was made through ``call_tool``; None for one that only has another name for the agent."""
    known = {key: value for key, value in about.items() if key not in ("args", "shown")}
    return PassedOn(**known) if "via" in known else None


def _renamed(response: ModelResponse, names: Mapping[str, str]) -> ModelResponse:
    """Return an answer whose calls have the names of the agent's wrappers, of which hooks and limits know."""
    if not names:
        return response
    passed = {**_passed_in(response)}
    parts: list[ModelResponsePart] = []
    for part in response.parts:
        shown = names.get(part.tool_name) if isinstance(part, ToolCallPart) else None
        if shown is not None and isinstance(part, ToolCallPart):
            known = passed.get(part.tool_call_id, {"name": part.tool_name, "args": part.args})
            passed[part.tool_call_id] = {**known, "shown": shown}
            part = replace(cast("Any", part), tool_name=shown)  # noqa: PLW2901
        parts.append(part)
    return replace(response, parts=parts, metadata={**(response.metadata or {}), _PASSED: passed})


async def _misnamed(name: str, arguments: dict[str, Any], session: Session) -> str:
    return misnamed(name, arguments, session)


def _of_session(ctx: AnyContext, name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return name and arguments of the call that is carried out, for the session."""
    for message in reversed(ctx.messages):
        about = _passed_in(message).get(ctx.tool_call_id or "")
        if about is not None and (passed := _passed(about)) is not None:
            return passed.of_session(name, arguments)
    return name, arguments


def _as_written(message: ModelMessage) -> ModelMessage:
    """Return a message for the provider: calls through ``call_tool`` as the model made them."""
    known = _passed_in(message)
    if not known or not isinstance(message, ModelResponse):
        return message
    parts: list[ModelResponsePart] = []
    for part in message.parts:
        about = known.get(part.tool_call_id) if isinstance(part, ToolCallPart) else None
        if about is not None and isinstance(part, ToolCallPart):
            part = _call_as_written(part, about)  # noqa: PLW2901
        parts.append(part)
    return replace(message, parts=parts)


def _call_as_written(part: ToolCallPart, about: Mapping[str, Any]) -> ToolCallPart:
    """Return a call as the model made it; one that was changed since has the changes."""
    name = about["name"] if part.tool_name == about.get("shown") else part.tool_name
    if (passed := _passed(about)) is None:
        return replace(cast("Any", part), tool_name=name)
    name, arguments = passed.of_session(name, _arguments(part) or {})
    args = about["args"] if arguments is passed.written else arguments
    return replace(cast("Any", part), tool_name=name, args=args)


async def _definitions(names: AbstractSet[str], toolset: str | None, session: Session) -> list[ToolDefinition]:
    """Return the definitions of tools that no list shows; of one that the session does not know, its name."""
    known = ((name, session.known_tool(name)) for name in sorted(names))
    return [
        ToolDefinition(name=name, toolset_id=toolset) if tool is None else replace(_defined(tool, toolset), name=name)
        for name, tool in known
    ]


def _may_wait(ctx: AnyContext) -> bool:
    """Return whether the agent of a run is made to end with calls that wait."""
    kinds: Any = None if ctx.agent is None else ctx.agent.output_type
    return DeferredToolRequests in (kinds if isinstance(kinds, list | tuple) else get_args(kinds))


async def _approved(approval: Approval, given: JsonObject, session: Session) -> CallAnswer:
    """Return the answer of a call that the user of the framework has approved."""
    by = str(given.get("by") or session.key.principal)
    await session.approvals.allow(approval.id, by=by, fields=given.get("fields"))
    return await session.resume(approval.id)


async def _waited_for(
    names: AbstractSet[str], awaiting: AbstractSet[str], toolset: str | None, session: Session
) -> list[ToolDefinition]:
    """Return the definitions of those tools of a session by which calls of a run wait, for whatever host asks."""
    asked = await session.approvals.list(agent=session.key.agent, ended=True) if names else ()
    about = {one.tool for one in asked if one.binding.session == session.key.session} | awaiting
    own = {name for name in names if name in about or session.known_tool(name) is not None}
    return await _definitions(own, toolset, session)


def _open_calls(ctx: AnyContext) -> AbstractSet[str]:
    """Return the names of the calls that a run begins with: those that were waited for."""
    newest = ctx.messages[-1] if ctx.messages else None
    return {call.tool_name for call in newest.tool_calls} if isinstance(newest, ModelResponse) else frozenset()


def _is_written(ctx: AnyContext, arguments: Mapping[str, Any]) -> bool:
    """Return whether the model wrote these arguments of the call that is carried out, and not a person."""
    responses = (message for message in reversed(ctx.messages) if isinstance(message, ModelResponse))
    calls = (call for response in responses for call in response.tool_calls if call.tool_call_id == ctx.tool_call_id)
    call = next(calls, None)
    return call is None or call.args_as_dict() == arguments


async def _decided(made: Sequence[tuple[ToolCallPart, ToolReturnPart]], session: Session) -> None:
    """Refuse what was denied, and hand in what ran elsewhere, of the calls that wait."""
    key = session.key
    waiting = [
        one
        for one in await session.approvals.list(agent=key.agent)
        if one.lasts == "once" and (one.binding.principal, one.binding.session) == (key.principal, key.session)
    ]
    for call, part in made:
        arguments = own_arguments(call.tool_name, call.args_as_dict(), session)
        own = (one for one in waiting if (one.tool, one.arguments) == (call.tool_name, arguments))
        approval = next(own, None)
        if approval is not None and part.outcome == "denied":
            with suppress(UsageError):  # another one was first
                await session.approvals.refuse(approval.id, by=key.principal, reason=part.model_response_str())
        elif approval is not None and approval.kind == "external":
            await session.resume(approval.id, result=part.model_response_str())


def delegate_to(
    agents: AbstractAgent[Any, Any] | Mapping[str, AbstractAgent[Any, Any]],
    *,
    events: EventStreamHandler[Any] | None = None,
) -> Callable[[Session, str], Awaitable[str]]:
    """Return what runs delegated tasks, for ``board.on_delegate``: an agent that works with the child's tools.

    It has the dependencies of the run that delegates, and counts in its usage and under its limits.

    Args:
        agents: the agent for every child, or one for each by the name of the child's agent, or by its kind.
        events: takes the events of the child's run as they come, as ``Agent.run`` has it.
    """

    async def run(child: Session, task: str) -> str:
        agent: AbstractAgent[Any, Any] = worker_of(agents, child)
        calling = _CALLING.get()
        given: dict[str, Any] = {} if calling is None else {"deps": calling.deps, "usage": calling.usage}
        if calling is not None:
            given["usage_limits"] = calling.usage_limits
        done = await agent.run(task, capabilities=[SessionTools(child)], event_stream_handler=events, **given)
        output = done.output
        waits = isinstance(output, DeferredToolRequests)
        return "The task is not done: a call of it waits for a person." if waits else str(output)

    return run


def _text_of(prompt: str | Sequence[UserContent] | None) -> str | None:
    if prompt is None or isinstance(prompt, str):
        return prompt
    texts = [part if isinstance(part, str) else part.content for part in prompt if isinstance(part, str | TextContent)]
    return "\n".join(texts) or None


def _defined(tool: Tool, toolset: str | None) -> ToolDefinition:
    return ToolDefinition(
        name=tool.wire,
        description=tool.description,
        parameters_json_schema=dict(tool.input_schema),
        return_schema=dict(tool.output_schema) if tool.output_schema else None,
        metadata={"plugin": tool.plugin, "annotations": dict(tool.annotations), "meta": tool.extra.get("_meta")},
        toolset_id=toolset,
    )


def _returned(answer: CallAnswer) -> Any:
    """Return the result for the model; files that no model of the framework reads are named in its text."""
    text, media = text_and_media(answer.result, _FILES)
    if answer.is_error:
        raise (ModelRetry if answer.status == "invalid_arguments" else ToolFailed)(text or answer.message)
    if not media:
        return text if answer.result.structured is None or len(text) > RESULT_LIMIT else answer.result.structured
    blobs = (blob for kind in media.values() for blob in kind)
    parts = [BinaryContent(data=blob["content"], media_type=blob["mime_type"]) for blob in blobs]
    return [text, *parts] if text else parts
