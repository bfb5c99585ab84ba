"""Plugins of this process: constructed once, called, closed."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from pegboard.core.model.tools import CallResult, JsonObject
from pegboard.errors import ToolUnavailableError
from pegboard.ports import CallContext, HookAnswer
from pegboard.sources.signatures.functions import Described
from pegboard.sources.signatures.instances import Instances
from pegboard.sources.signatures.plugins import Built
from pegboard.sources.signatures.results import hook_answer, run
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
        return await run(_function(plugin, owner, name), arguments, principal=context.principal)

    async def ask_hooks(
        self, plugin: Built, owner: str, name: str, arguments: JsonObject, context: CallContext
    ) -> HookAnswer:
        """Return what guard and approval hook of a function say to a call, before it runs."""
        return await hook_answer(_function(plugin, owner, name), arguments, principal=context.principal)

    async def aclose(self) -> None:
        """Close what was constructed, and end the threads that nobody uses."""
        for plugin in self._instances.drain():
            with plugin_output():
                await plugin.aclose()
        end_free_threads()


def _function(plugin: Built, owner: str, name: str) -> Described:
    function = plugin.tools.get(name)
    if function is None:
        raise ToolUnavailableError(f"plugin '{owner}' has no tool '{name}' any more.")
    return function
