"""The source of Agno's toolkits."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, cast

from pegboard.core.model.specs import PluginSpec, RegisteredSpec
from pegboard.core.model.tools import CallResult, JsonObject, Manifest, Tool, text_result, variant_key
from pegboard.errors import ToolUnavailableError
from pegboard.ports import CallContext
from pegboard.sources.agno.construction import LOADER, Constructed, constructed, require_agno
from pegboard.sources.agno.loggers import QuietLoggers
from pegboard.sources.agno.media import result_of
from pegboard.sources.signatures import Instances, end_free_threads, failure, given_up, in_thread
from pegboard.sources.stdout import plugin_output


class AgnoSource:
    """The source of Agno's toolkits under their registered names."""

    def __init__(self) -> None:
        self._instances: Instances[Constructed] = Instances()
        self._loggers = QuietLoggers()

    def handles(self, spec: PluginSpec) -> bool:
        """Return whether the plugin is a toolkit of Agno."""
        return isinstance(spec, RegisteredSpec) and spec.loader.startswith(LOADER)

    def fingerprint(self, spec: PluginSpec) -> str:  # noqa: ARG002
        """Return nothing: asking the code itself is always right."""
        return ""

    async def describe(self, spec: PluginSpec, overrides: JsonObject) -> Manifest:
        """Construct the toolkit and return its functions."""
        assert isinstance(spec, RegisteredSpec)
        return (await self._constructed(spec, overrides)).manifest(spec.name)

    async def call(
        self,
        spec: PluginSpec,
        overrides: JsonObject,
        tool: Tool,
        arguments: JsonObject,
        context: CallContext,  # noqa: ARG002
    ) -> CallResult:
        """Run the function as Agno would, without an agent; a failure is an error result."""
        assert isinstance(spec, RegisteredSpec)
        made = await self._constructed(spec, overrides)
        function = made.functions.get(tool.name)
        if function is None:
            raise ToolUnavailableError(f"plugin '{spec.name}' has no tool '{tool.name}' any more.")
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

    def on_changed(self, callback: Callable[[str], None]) -> None:
        """Take no callback: toolkits do not change by themselves."""

    async def aclose(self) -> None:
        """Close the toolkits that have a connection, and give Agno's loggers back."""
        for made in self._instances.drain():
            with plugin_output(), suppress(Exception):  # a service that is gone is closed enough
                outcome = made.toolkit.close()
                if inspect.isawaitable(outcome):
                    await outcome
        self._loggers.close()
        end_free_threads()

    async def _constructed(self, spec: RegisteredSpec, overrides: JsonObject) -> Constructed:
        async def make() -> Constructed:
            with plugin_output():
                return await in_thread(self._construct, spec, overrides)

        return await self._instances.get((spec.name, spec.loader, variant_key(overrides)), make)

    def _construct(self, spec: RegisteredSpec, overrides: JsonObject) -> Constructed:
        require_agno(spec)
        self._loggers.begin()
        return constructed(spec, overrides)


async def _executed(function: Any, arguments: JsonObject) -> Any:
    """Run a function with what Agno itself puts in for agent, run context and media: nothing."""
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
