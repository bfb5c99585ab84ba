"""Functions of Agno, run as its own agents run them: hooks, caches and injected values, without an agent."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any, cast

from pegboard.core.model.tools import CallResult, JsonObject, text_result
from pegboard.sources.agno.media import result_of
from pegboard.sources.signatures import failure, given_up, in_thread
from pegboard.sources.stdout import plugin_output


async def run(function: Any, arguments: JsonObject) -> CallResult:
    """Return what a function returned; a failure is an error result."""
    with plugin_output():
        try:
            outcome = await _executed(function, arguments)
            if outcome.status != "success":
                return text_result(str(outcome.error or "the tool failed"), is_error=True)
            return result_of(await _settled(outcome.result))
        except BaseException as error:  # whatever a toolkit raises is the tool's own failure
            if given_up(error):
                raise
            return failure(error)


async def _executed(function: Any, arguments: JsonObject) -> Any:
    call: Any = importlib.import_module("agno.tools.function").FunctionCall
    request = call(function=function, arguments=dict(arguments))
    if inspect.iscoroutinefunction(function.entrypoint) or inspect.isasyncgenfunction(function.entrypoint):
        return await request.aexecute()
    return await in_thread(request.execute)


async def _settled(value: Any) -> Any:
    """Return what a generator yields, joined where it is text."""
    parts: list[Any]
    if inspect.isasyncgen(value):
        parts = [part async for part in value]
    elif inspect.isgenerator(value):
        parts = await in_thread(lambda: list(cast("Iterator[Any]", value)))
    else:
        return value
    return "".join(parts) if all(isinstance(part, str) for part in parts) else parts
