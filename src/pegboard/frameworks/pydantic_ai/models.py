"""What is known of the model of a run, and requests that it is sent otherwise than the framework has them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace
from typing import Final, Protocol, TypeGuard

from pydantic_ai.exceptions import (
    ModelHTTPError,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from pegboard.core.model.delivery import Host
from pegboard.frameworks.pydantic_ai.messages import (
    AnyContext,
    arguments_in,
    as_written,
    with_tool_names,
)
from pegboard.frameworks.pydantic_ai.named_parts import name_calls
from pegboard.wire.acceptable_schemas import SchemaProvider, provider_of
from pegboard.wire.provider_forms import UNFINISHED, cut_by
from pegboard.wire.rejections import rejection_of

_FORMS: Final = {"AnthropicModel": "anthropic", "OpenAIResponsesModel": "responses", "OpenAIChatModel": "chat"}
"""The form in which models of a class are asked."""


def without_wrappers(model: object) -> object:
    """Return the model that wrappers stand around."""
    while isinstance(model, WrapperModel):
        model = model.wrapped
    return model


def _models_of(model: object) -> Iterator[Model]:
    """Yield the models of which any may answer: those that a model falls back to, else it itself."""
    bare = without_wrappers(model)
    if isinstance(bare, FallbackModel):
        for one in bare.models:
            yield from _models_of(one)
    elif isinstance(bare, Model):
        yield bare


def providers_of(model: object) -> tuple[SchemaProvider, ...]:
    """Return whose rules the schemas of a run keep: those of all models of which any may answer."""
    found = (provider_of(_form_of(one), one.model_name) for one in _models_of(model))
    return tuple(dict.fromkeys(found))


def _form_of(model: Model) -> str:
    kinds = (kind.__name__ for kind in type(model).__mro__)
    return next((_FORMS[kind] for kind in kinds if kind in _FORMS), "")


def _takes_tools_in_history(model: Model) -> bool:
    """Return whether a model takes tools that join within the history; one that cannot tell does not."""
    try:
        return model.tool_addition_mode is not None
    except NotImplementedError:  # it has no profile of its own
        return False


def host_for_run(model: object, plain: Mapping[int, Model]) -> Host | None:
    """Return the host for the model of a run; None for one without a provider, and so without a cache (D4).

    Of several models of which any may answer, all have to take what joins within the history.
    """
    known = [one for one in _models_of(model) if not isinstance(one, FunctionModel | TestModel)]
    if not known:
        return None
    reveals = all(_takes_tools_in_history(one) and id(one) not in plain for one in known)
    return Host(delivery=("native", "result") if reveals else ("result",))


def cut_of(model: object, response: ModelResponse) -> str:
    """Return why an answer is not whole, so that none of its calls runs; else nothing.

    A stream that breaks without an error has no reason for its end. Some servers of Chat Completions never give one, so
    that there a call says it whose arguments are no JSON.

    Args:
        model: the model that has answered.
        response: what it has answered.
    """
    if cut := cut_by(response.finish_reason):
        return cut
    bare = without_wrappers(model)
    if not response.tool_calls or not isinstance(bare, Model) or isinstance(bare, FunctionModel | TestModel):
        return ""
    if _form_of(bare) in ("anthropic", "responses"):
        whole = response.finish_reason is not None
    else:
        readable = all(arguments_in(call) is not None for call in response.tool_calls)
        whole = readable or "finish_reason" in (response.provider_details or {})
    return "" if whole else cut_by(UNFINISHED)


def rejects_additions(model: object, error: Exception) -> TypeGuard[Model]:
    """Return whether a provider does not take tools that join within the history."""
    if not isinstance(model, Model) or not isinstance(error, ModelHTTPError) or not _takes_tools_in_history(model):
        return False
    return rejection_of(error, ()).kind == "form"


def without_additions(model: Model) -> Model:
    """Return the model with a profile that adds nothing to a history."""
    plain = copy(model)
    plain.profile = {**model.profile, "tool_addition_mode": None, "tool_deferral_mode": None}
    return plain


class _StepTools(Protocol):
    """What is known of the tools of a step: what the provider did not take, and which are the agent's own."""

    @property
    def rejected(self) -> AbstractSet[str]: ...
    @property
    def own(self) -> Collection[str]: ...


class SessionModelWrapper(WrapperModel):
    """A model whose requests lack the tools that its provider did not take, and have calls as the model made them.

    In its answers a call through ``call_tool`` is one of the tool that it names, whole or streamed.
    """

    def __init__(self, wrapped: Model, tools: _StepTools) -> None:
        super().__init__(wrapped)
        self._tools = tools

    def _without_rejected(self, known: ModelRequestParameters) -> ModelRequestParameters:
        if not (rejected := self._tools.rejected):
            return known
        return replace(known, function_tools=[tool for tool in known.function_tools if tool.name not in rejected])

    def prepare_messages(
        self, messages: list[ModelMessage], model_request_parameters: ModelRequestParameters | None = None
    ) -> list[ModelMessage]:
        """Return the messages as the provider gets them, with the tools that are sent."""
        known = model_request_parameters and self._without_rejected(model_request_parameters)
        return super().prepare_messages(messages, known)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Return the answer to a request as it is sent."""
        sent = [*map(as_written, messages)]
        response = await super().request(sent, model_settings, self._without_rejected(model_request_parameters))
        return with_tool_names(response, self._tools.own)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: AnyContext | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Yield the stream of the answer to a request as it is sent."""
        known = self._without_rejected(model_request_parameters)
        sent = [*map(as_written, messages)]
        async with super().request_stream(sent, model_settings, known, run_context) as stream:
            yield name_calls(stream, self._tools.own)
