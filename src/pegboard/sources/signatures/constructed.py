"""Plugins of this process: constructed once, called, closed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable

from pegboard.core.model.tools import CallResult, JsonObject
from pegboard.errors import ToolUnavailableError
from pegboard.ports import CallContext
from pegboard.sources.signatures.instances import Instances
from pegboard.sources.signatures.plugins import Built
from pegboard.sources.signatures.results import run
from pegboard.sources.signatures.threads import end_free_threads, in_thread
from pegboard.sources.stdout import plugin_output


class ConstructedPlugins:
    """The plugins that a source has constructed, and the calls of their functions."""

    def __init__(self) -> None:
        self._instances: Instances[Built] = Instances()

    async def get(self, key: Hashable, load: Callable[[], Built]) -> Built:
        """Return the plugin of a key, loaded in a thread where there is none yet; raises ``ToolUnavailableError``."""

        async def make() -> Built:
            with plugin_output():
                return await in_thread(load)

        return await self._instances.get(key, make)

    async def call(
        self, plugin: Built, owner: str, name: str, arguments: JsonObject, context: CallContext
    ) -> CallResult:
        """Run a function of the plugin ``owner``; what it raises is an error result."""
        function = plugin.tools.get(name)
        if function is None:
            raise ToolUnavailableError(f"plugin '{owner}' has no tool '{name}' any more.")
        return await run(function, arguments, principal=context.principal)

    async def ask(self, plugin: Built, condition: str, *given: object) -> object:
        """Return what a predicate of a plugin answers, plain or async; raises what it raises."""
        function = plugin.predicate(condition)
        if function is None:
            raise ToolUnavailableError("its condition is not there any more.")
        with plugin_output():
            answer = await in_thread(function, *given)
            return await answer if inspect.isawaitable(answer) else answer

    async def aclose(self) -> None:
        """Close what was constructed, and end the threads that nobody uses."""
        for plugin in self._instances.drain():
            with plugin_output():
                await plugin.aclose()
        end_free_threads()
