"""The twin of a model: what stands around each request of an equipped agent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from copy import copy
from typing import Any

from agents import (
    Model,
    ModelProvider,
    ModelResponse,
    MultiProvider,
    OpenAIChatCompletionsModel,
    Usage,
)
from openai.types.responses import (
    ResponseCompletedEvent,
    ResponseOutputItemDoneEvent,
)

from pegboard.frameworks import runs
from pegboard.frameworks.openai_agents.equipped_run import RUNNING, EquippedRun, names_of_own
from pegboard.frameworks.openai_agents.held_events import HeldEvents
from pegboard.frameworks.openai_agents.items import (
    events_of,
    request_of,
)
from pegboard.frameworks.openai_agents.models import behind_twin
from pegboard.frameworks.openai_agents.state import AgentState


class SessionModel:
    """What the twin of a model does around each request."""

    pegboard_host: AgentState

    async def _cleanup_on_run_end(self, owner: object) -> None:
        """End the run that the SDK says is over: also one that failed, was cancelled, or stopped at a tool."""
        await behind_twin(super())._cleanup_on_run_end(owner)  # noqa: SLF001
        if (end := self.pegboard_host.owned.pop(owner, None)) is not None:
            await end()

    async def get_response(self, *args: Any, **given: Any) -> ModelResponse:
        """Return what the model answers to a request with what the session has now."""
        own, run, request = behind_twin(super()), _run_of(self.pegboard_host), request_of(args, given)
        if run is None:
            return await own.get_response(**request)
        run.own_by(_owner_of_request())
        if calls := run.calls_to_repeat(request):
            return ModelResponse(output=[*calls], usage=Usage(), response_id=None)
        request = await run.prepare_request(request)
        response: ModelResponse | None = None
        while response is None or run.asks_model_again():
            try:
                made: ModelResponse = await own.get_response(**request)
            except Exception as error:
                if not await run.handle_rejection(request, error):
                    raise
                continue
            run.take_answer(request, made.output)
            response = made
        await run.close()
        return response

    async def stream_response(self, *args: Any, **given: Any) -> AsyncIterator[Any]:
        """Yield what the model answers to a request with what the session has now."""
        own, run, request = behind_twin(super()), _run_of(self.pegboard_host), request_of(args, given)
        if run is not None:
            run.own_by(_owner_of_request())
        calls = run.calls_to_repeat(request) if run is not None else ()
        if run is not None and not calls:
            request = await run.prepare_request(request)
        again = not calls
        for event in events_of(calls) if calls else ():
            yield event
        while again:
            again = False
            held = HeldEvents(names_of_own(request))
            try:
                async for event in own.stream_response(**request):
                    if run is None:
                        yield event
                        continue
                    if isinstance(event, ResponseCompletedEvent):
                        again = await run.complete_answer(request, event.response)
                    elif isinstance(event, ResponseOutputItemDoneEvent):
                        event.item = run.item_done(request, event.item)
                    for one in () if again else held.events_to_send(event):
                        yield one
            except Exception as error:
                again = run is not None and await run.handle_rejection(request, error)
                if not again:
                    raise

    async def _fetch_response(self, *args: Any, **given: Any) -> Any:
        """Return what the provider's client has answered; of a completion it is noted why it has ended.

        The SDK's models call this one, and tell no one else whether a completion was cut.
        """
        run, made = _run_of(self.pegboard_host), await behind_twin(super())._fetch_response(*args, **given)  # noqa: SLF001
        if run is None:
            return made
        if isinstance(made, tuple):
            response, chunks = made
            run.ended_by = ""
            return response, _EndingChunks(chunks, run)
        if choices := getattr(made, "choices", None):
            run.ended_by = choices[0].finish_reason
        return made


class _EndingChunks:
    """The chunks of a completion; it is noted why the last of them has ended it."""

    def __init__(self, chunks: Any, run: EquippedRun) -> None:
        self._chunks = chunks
        self._run = run

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chunks, name)

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for chunk in self._chunks:
            for choice in chunk.choices or ():
                self._run.ended_by = choice.finish_reason or self._run.ended_by
            yield chunk


class _LazyModel(Model):
    """A model that is known by its name until it is used."""

    def __init__(self, name: str | None, host: AgentState, provider: ModelProvider | None) -> None:
        self._name = name
        self._host = host
        self._provider = provider
        self._known: Any = None

    def _model(self) -> Any:
        if self._known is None:
            self._known = stepping_twin((self._provider or MultiProvider()).get_model(self._name), self._host, None)
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


def stepping_twin(model: Any, host: AgentState, provider: ModelProvider | None) -> Model:
    """Return the twin of a model, or of one that is known by its name."""
    if not isinstance(model, Model):
        return _LazyModel(model, host, provider)
    if isinstance(model, OpenAIChatCompletionsModel) and not hasattr(model, "_fetch_response"):
        runs.warn_once(
            "This version of OpenAI Agents does not say why a completion has ended: calls of one that its limit of "
            "tokens cut are not held back."
        )
    made = copy(model) if isinstance(model, SessionModel) else runs.make_twin(model, SessionModel)
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


def _run_of(host: AgentState) -> EquippedRun | None:
    """Return the run whose request this is, if it is one of this agent."""
    run = RUNNING.get()
    return run if run is not None and run.state is host and run.step is not None else None
