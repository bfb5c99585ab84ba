"""A source that is imported when the first plugin of its kind is described."""

from __future__ import annotations

from collections.abc import Callable

from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import CallResult, JsonObject, Manifest, Tool
from pegboard.ports import CallContext, ConditionalSource, Source


class LateSource:
    """A source in front of another one, which ``make`` imports and returns.

    ``kind`` is what the plugins of the other have in common; which of them it brings in, it says itself.
    """

    def __init__(self, kind: type[PluginSpec], make: Callable[[], Source]) -> None:
        self._kind = kind
        self._make = make
        self._callbacks: list[Callable[[str], None]] = []
        self._made: Source | None = None

    def _source(self) -> Source:
        if self._made is None:
            self._made = self._make()
            for callback in self._callbacks:
                self._made.on_changed(callback)
        return self._made

    def handles(self, spec: PluginSpec) -> bool:
        """Return whether the other source brings a plugin in."""
        return isinstance(spec, self._kind) and self._source().handles(spec)

    def fingerprint(self, spec: PluginSpec) -> str:
        """Return the text under which a manifest is stored."""
        return self._source().fingerprint(spec)

    async def describe(self, spec: PluginSpec, overrides: JsonObject) -> Manifest:
        """Return what a plugin offers."""
        return await self._source().describe(spec, overrides)

    async def call(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> CallResult:
        """Run one tool."""
        return await self._source().call(spec, overrides, tool, arguments, context)

    async def holds(self, spec: PluginSpec, overrides: JsonObject, condition: str, *given: object) -> object:
        """Return what a predicate of the plugin's code answers (T12)."""
        source = self._source()
        assert isinstance(source, ConditionalSource)
        return await source.holds(spec, overrides, condition, *given)

    def on_changed(self, callback: Callable[[str], None]) -> None:
        """Call back when the tools of a plugin have changed by themselves."""
        self._callbacks.append(callback)
        if self._made is not None:
            self._made.on_changed(callback)

    async def aclose(self) -> None:
        """Stop whatever was started."""
        if self._made is not None:
            await self._made.aclose()
