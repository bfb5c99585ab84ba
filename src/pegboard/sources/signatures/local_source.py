"""What sources of plugins of this process have in common: all but how a plugin is made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import CallResult, JsonObject, Manifest, Tool
from pegboard.ports import CallContext, HookAnswer
from pegboard.sources.signatures.constructed import LocalPlugin
from pegboard.sources.signatures.instances import Instances, Making
from pegboard.sources.signatures.plugins import Adopt, nothing_adopted


class LocalSource(ABC):
    """A source whose plugins are objects that it constructs.

    What they construct is closed after ``idle`` seconds without use; None keeps it.
    """

    def __init__(self, *, idle: float | None = None) -> None:
        self._instances = Instances(idle=idle)

    @abstractmethod
    def _making(self, spec: PluginSpec, overrides: JsonObject) -> Making:
        """Return how a plugin is brought in under its overrides."""

    def fingerprint(self, spec: PluginSpec) -> str:  # noqa: ARG002
        """Return nothing: asking the code itself is cheaper and always right."""
        return ""

    async def describe(self, spec: PluginSpec, overrides: JsonObject) -> Manifest:
        """Import what the plugin names, construct it, and return its tools."""
        return await self._instances.describe(self._making(spec, overrides))

    async def call(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> CallResult:
        """Run the function; what it raises is an error result."""
        return await self._instances.call(self._making(spec, overrides), tool, arguments, context)

    def ready(self, spec: PluginSpec, overrides: JsonObject, scope: str) -> LocalPlugin | None:
        """Return the object of a scope where it is constructed: whoever asks is the only one who uses it."""
        return self._instances.ready(self._making(spec, overrides), scope)

    async def end_scope(self, scope: str) -> None:
        """Close what a scope has."""
        self._instances.end_scope(scope)

    def on_changed(self, callback: Callable[[str], None]) -> None:  # noqa: B027 - nothing is told
        """Take no callback: what was imported does not change by itself."""

    async def aclose(self) -> None:
        """Close what was constructed."""
        await self._instances.aclose()


class HookedSource(LocalSource):
    """A source whose functions may have guards, approval hooks and predicates, and whose objects may be adopted."""

    def __init__(self, *, adopt: Adopt = nothing_adopted, idle: float | None = None) -> None:
        super().__init__(idle=idle)
        self._adopt = adopt

    async def ask_hooks(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> HookAnswer:
        """Return what guard and approval hook of the function say to a call."""
        return await self._instances.ask_hooks(self._making(spec, overrides), tool, arguments, context)

    async def holds(
        self, spec: PluginSpec, overrides: JsonObject, condition: str, *given: object, scope: str = ""
    ) -> object:
        """Return what a predicate of the plugin's code answers (T12)."""
        return await self._instances.holds(self._making(spec, overrides), scope, condition, *given)
