"""A capability that gives an agent the tools of a session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import anyio
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, ProcessHistory, WrapRunHandler
from pydantic_ai.exceptions import (
    RetryModelRequest,
)
from pydantic_ai.messages import (
    ModelResponse,
)
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.run import AgentRunResult
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import DeferredToolRequests, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset

from pegboard.board.session import Session
from pegboard.core.surface.continuations import LIMIT
from pegboard.frameworks.pydantic_ai.messages import (
    AnyContext,
    with_tool_names,
    with_wrapper_names,
)
from pegboard.frameworks.pydantic_ai.models import (
    SessionModelWrapper,
    cut_of,
    rejects_additions,
    without_additions,
    without_wrappers,
)
from pegboard.frameworks.pydantic_ai.toolset import SessionToolset
from pegboard.frameworks.pydantic_ai.wrapping import with_session_behind
from pegboard.frameworks.runs import (
    AnySession,
)

OpenSession = Callable[[AnyContext], Awaitable[AnySession]]


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

    def get_ordering(self) -> CapabilityOrdering:
        """Return where this one stands: it reads a history that others have shortened for the request."""
        return CapabilityOrdering(wrapped_by=[ProcessHistory])

    def get_toolset(self) -> SessionToolset | None:
        """Return the tools where the framework is to hide them until the capability is loaded, else None."""
        return self._toolset if self.defer_loading else None

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any] | None:
        """Return the agent's tools with those of the session behind them; None until a run has its session.

        The framework copies the tools of a capability with every step, and lists toolsets in tasks of their own; what
        is here it takes as it is. Hooks of the agent that prepare its tools prepare these too.
        """
        return None if self._toolset is None or self.defer_loading else with_session_behind(toolset, self._toolset)

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
            self._toolset.note_own(ctx)
            self._toolset.join_history(ctx, request_context.messages)
            request_context.model_request_parameters = await self._toolset.with_chosen(ctx, request_context)
        request_context.model = self._plain.get(id(without_wrappers(request_context.model)), request_context.model)
        return request_context

    def get_wrapper_model(self, model: Model) -> Model | None:
        """Return a model for requests that are sent otherwise than the framework has them.

        They lack the tools that the provider does not take, and have calls through ``call_tool`` as they were made;
        in its answers these are calls of the tools that they name.

        A hook that prepares requests would make the framework copy every definition with every step.
        """
        return None if self._toolset is None else SessionModelWrapper(model, self._toolset)

    async def on_model_request_error(
        self, ctx: AnyContext, *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Ask once more without what the provider rejects, from then on: a tool, or additions to the history (D4)."""
        model = without_wrappers(request_context.model)
        if self._toolset is not None:
            known = request_context.model_request_parameters
            sent = [tool.name for tool in (*known.function_tools, *known.output_tools)]
            sent = [name for name in sent if name not in self._toolset.rejected]
            if await self._toolset.handle_rejection(error, sent):
                raise RetryModelRequest from error
        if self._toolset is None or not rejects_additions(model, error):
            raise error
        plain = self._plain[id(without_wrappers(ctx.model))] = without_additions(model)
        reason = str(error)
        await self._toolset.with_session(lambda session: _report_rejected(session, reason))
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
            if not isinstance(without_wrappers(request_context.model), FunctionModel | TestModel):
                self._toolset.reported.add(response.usage.input_tokens, response.usage.cache_read_tokens)
            self._toolset.cut = cut_of(request_context.model, response)
            response = self._toolset.settle_response(with_tool_names(response, self._toolset.own), request_context)
            response = with_wrapper_names(response, await self._toolset.bind_calls(ctx, response))
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


async def _report_rejected(session: Session, reason: str) -> None:
    session.report_rejected("form:additions", reason)
