"""The twin of a model of Agno: what it does around each request, and around the calls of each answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from copy import deepcopy
from functools import partial
from typing import Any

from agno.exceptions import ModelProviderError
from agno.models.message import Message
from agno.models.response import ModelResponse, ToolExecution
from agno.tools.function import Function, FunctionCall

from pegboard.board.session import Session
from pegboard.frameworks import runs
from pegboard.frameworks.agno.answer_ends import with_end
from pegboard.frameworks.agno.batches import CallBatch, batch_under_way, ends_of_batch, finish_event, returned_results
from pegboard.frameworks.agno.session_function import AgnoSessionFunction, function_among, function_of_request
from pegboard.frameworks.runs import SessionRun
from pegboard.wire.passed_on import passed_on


class AgnoSessionModel:
    """What the twin of a model does around each request and each batch of calls."""

    def invoke(self, *args: Any, **request: Any) -> ModelResponse:
        """Return what the model answers to a request with what the session has now."""
        own, function = _untyped(super()), function_of_request(request)
        if function is None:
            return own.invoke(*args, **request)
        run = function.run
        with run.under_way(None):
            given = run.with_session_sync(partial(function.prepare_request, run, request))
            answer: ModelResponse | None = None
            while answer is None or run.asks_model_again():
                try:
                    function.begin_answer()
                    answer = function.take_answer(own.invoke(*args, **given))
                except ModelProviderError as error:
                    if not run.with_session_sync(partial(_drop_rejected_tools, run, given["tools"], error)):
                        raise
            answer.content = f"{answer.content or ''}{run.with_session_sync(run.close)}" or None
        return answer

    async def ainvoke(self, *args: Any, **request: Any) -> ModelResponse:
        """Return what the model answers to a request with what the session has now."""
        own, function = _untyped(super()), function_of_request(request)
        if function is None:
            return await own.ainvoke(*args, **request)
        run = function.run
        with run.under_way(None):
            given = await run.with_session(partial(function.prepare_request, run, request))
            answer: ModelResponse | None = None
            while answer is None or run.asks_model_again():
                try:
                    function.begin_answer()
                    answer = function.take_answer(await own.ainvoke(*args, **given))
                except ModelProviderError as error:
                    if not await run.with_session(partial(_drop_rejected_tools, run, given["tools"], error)):
                        raise
            answer.content = f"{answer.content or ''}{await run.with_session(run.close)}" or None
        return answer

    def invoke_stream(self, *args: Any, **request: Any) -> Iterator[ModelResponse]:
        """Yield the parts of what the model answers to a request with what the session has now."""
        own, function = _untyped(super()), function_of_request(request)
        if function is None:
            yield from own.invoke_stream(*args, **request)
            return
        run, again = function.run, True
        with run.under_way(None):
            given = run.with_session_sync(partial(function.prepare_request, run, request))
            while again:
                try:
                    function.begin_answer()
                    yield from map(function.take_answer, own.invoke_stream(*args, **given))
                    function.check_end()
                    again = run.asks_model_again()
                except ModelProviderError as error:
                    if not run.with_session_sync(partial(_drop_rejected_tools, run, given["tools"], error)):
                        raise
            yield ModelResponse(content=run.with_session_sync(run.close) or None)

    async def ainvoke_stream(self, *args: Any, **request: Any) -> AsyncIterator[ModelResponse]:
        """Yield the parts of what the model answers to a request with what the session has now."""
        own, function = _untyped(super()), function_of_request(request)
        if function is None:
            async for part in own.ainvoke_stream(*args, **request):
                yield part
            return
        run, again = function.run, True
        with run.under_way(None):
            given = await run.with_session(partial(function.prepare_request, run, request))
            while again:
                try:
                    function.begin_answer()
                    async for part in own.ainvoke_stream(*args, **given):
                        yield function.take_answer(part)
                    function.check_end()
                    again = run.asks_model_again()
                except ModelProviderError as error:
                    if not await run.with_session(partial(_drop_rejected_tools, run, given["tools"], error)):
                        raise
            yield ModelResponse(content=await run.with_session(run.close) or None)

    def _parse_provider_response(self, response: Any, *args: Any, **options: Any) -> ModelResponse:
        """Return an answer of the provider as Agno has it, with why it ends."""
        own = _untyped(super())
        return with_end(own._parse_provider_response(response, *args, **options), response)  # noqa: SLF001 - Agno's seam

    def _parse_provider_response_delta(self, *args: Any, **options: Any) -> Any:
        """Return a part of an answer of the provider as Agno has it, with why it ends."""
        raw = next(iter((*args, *options.values())), None)
        own = _untyped(super())
        return with_end(own._parse_provider_response_delta(*args, **options), raw)  # noqa: SLF001 - Agno's seam

    def get_function_calls_to_run(
        self, assistant_message: Message, messages: list[Message], functions: dict[str, Function] | None = None
    ) -> list[FunctionCall]:
        """Return the calls of an answer; those of other names than the agent's own reach the session."""
        own, function, known = _untyped(super()), function_among(functions), dict(functions or {})
        fresh: dict[str, AgnoSessionFunction] = {}
        session_names: set[str] = set()
        written = {call.get("id"): call.get("function", {}) for call in assistant_message.tool_calls or ()}
        if function is not None:
            known.pop(function.name, None)
            function.note_cut([*written.values()], type(self).__name__)
            known = {} if function.run.cut else known  # then the agent's own tools do not run either
            names = {n for one in written.values() if (n := str(one.get("name"))) not in known}
            fresh = {name: function.call_of(name) for name in names}
            session_names = set(fresh)
            known |= fresh
        calls: list[FunctionCall] = own.get_function_calls_to_run(assistant_message, messages, known)
        for call in calls:
            if function is not None and isinstance(call.function, AgnoSessionFunction):
                name = call.function.name
                call.arguments = runs.arguments_of(written.get(call.call_id, {}).get("arguments")) or call.arguments
                passed = passed_on(name, call.arguments, known.keys() - session_names)
                call.function = fresh.pop(name, None) or function.call_of(name)
                if passed is not None:
                    call.function = function.call_of(passed.name, passed=passed)
                    call.arguments = deepcopy(passed.arguments)  # hooks change them in place
        return CallBatch(calls, None if function is None else function.run)

    def get_function_call_to_run_from_tool_execution(
        self, tool_execution: ToolExecution, functions: dict[str, Function] | None = None
    ) -> FunctionCall:
        """Return the call that a person has decided about."""
        own, function, name = _untyped(super()), function_among(functions), str(tool_execution.tool_name)
        if function is None or name in (functions or {}):
            return own.get_function_call_to_run_from_tool_execution(tool_execution, functions)
        fields = {field.name: field.value for field in tool_execution.user_input_schema or ()}
        arguments, call_id = tool_execution.tool_args, tool_execution.tool_call_id
        return FunctionCall(function=function.call_of(name, fields), arguments=arguments, call_id=call_id)

    def run_function_calls(
        self, function_calls: list[FunctionCall], function_call_results: list[Message], **options: Any
    ) -> Iterator[Any]:
        """Yield the events of a batch of calls."""
        with batch_under_way(function_calls):
            events = _untyped(super()).run_function_calls(function_calls, function_call_results, **options)
            yield from map(partial(finish_event, function_calls), events)
            function_call_results[:] = returned_results(function_calls, function_call_results)
            for run, use in ends_of_batch(function_calls, function_call_results):
                run.with_session_sync(use)

    async def arun_function_calls(
        self, function_calls: list[FunctionCall], function_call_results: list[Message], **options: Any
    ) -> AsyncIterator[Any]:
        """Yield the events of a batch of calls."""
        calls = () if options.get("skip_pause_check") else function_calls
        with batch_under_way(function_calls):
            async for event in _untyped(super()).arun_function_calls(function_calls, function_call_results, **options):
                yield finish_event(calls, event)
            function_call_results[:] = returned_results(calls, function_call_results)
            for run, use in ends_of_batch(function_calls, function_call_results):
                await run.with_session(use)


async def _drop_rejected_tools(
    run: SessionRun, tools: list[dict[str, Any]], error: ModelProviderError, session: Session
) -> bool:
    """Return whether a request is to be made again: its tools lose those that the provider does not take."""
    sent = [str(tool.get("function", {}).get("name")) for tool in tools]
    rejected = await run.rejected_tools(error, sent, session)
    tools[:] = [tool for name, tool in zip(sent, tools, strict=True) if name not in rejected]
    return bool(rejected)


def _untyped(own: Any) -> Any:
    """Return what is behind the twin, which no type names."""
    return own
