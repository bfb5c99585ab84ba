"""Plugins of this process: constructed once, closed together."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from pegboard.sources.signatures.instances import Instances
from pegboard.sources.signatures.plugins import LocalPlugin
from pegboard.sources.signatures.threads import end_free_threads, in_thread
from pegboard.sources.stdout import plugin_output


class ConstructedPlugins:
    """The plugins that a source has constructed."""

    def __init__(self) -> None:
        self._instances: Instances[LocalPlugin] = Instances()

    async def get(self, key: Hashable, load: Callable[[], LocalPlugin]) -> LocalPlugin:
        """Return the plugin of a key, loaded in a thread where there is none yet; raises ``ToolUnavailableError``."""

        async def make() -> LocalPlugin:
            with plugin_output():
                return await in_thread(load)

        return await self._instances.get(key, make)

    async def aclose(self) -> None:
        """Close what was constructed, and end the threads that nobody uses."""
        for plugin in self._instances.drain():
            with plugin_output():
                await plugin.aclose()
        end_free_threads()
