"""The source of Agno's toolkits."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Final

from pegboard.core.model.specs import PluginSpec, RegisteredSpec
from pegboard.core.model.tools import CallResult, JsonObject, Manifest, Tool, variant_key
from pegboard.errors import ToolUnavailableError
from pegboard.ports import CallContext
from pegboard.sources.agno.construction import AgnoToolkits
from pegboard.sources.agno.loggers import QuietLoggers
from pegboard.sources.code import note_import
from pegboard.sources.signatures import ConstructedPlugins, LocalPlugin, built

_LOADER: Final = "agno:"


class AgnoSource:
    """The source of Agno's toolkits under their registered names."""

    def __init__(self, toolkits: AgnoToolkits | None = None) -> None:
        self._plugins = ConstructedPlugins()
        self._toolkits = toolkits or AgnoToolkits()
        self._loggers = QuietLoggers()

    def handles(self, spec: PluginSpec) -> bool:
        """Return whether the plugin is a toolkit of Agno."""
        return isinstance(spec, RegisteredSpec) and spec.loader.startswith(_LOADER)

    def fingerprint(self, spec: PluginSpec) -> str:  # noqa: ARG002
        """Return nothing: asking the code itself is always right."""
        return ""

    async def describe(self, spec: PluginSpec, overrides: JsonObject) -> Manifest:
        """Construct the toolkit and return its functions."""
        assert isinstance(spec, RegisteredSpec)
        return (await self._constructed(spec, overrides)).manifest(spec.name)

    async def call(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> CallResult:
        """Run a function as Agno would, without an agent; a failure is an error result."""
        assert isinstance(spec, RegisteredSpec)
        return await (await self._constructed(spec, overrides)).call(spec.name, tool.name, arguments, context)

    def on_changed(self, callback: Callable[[str], None]) -> None:
        """Take no callback: toolkits do not change by themselves."""

    async def aclose(self) -> None:
        """Close the toolkits that have a connection and their database, and give Agno's loggers back."""
        await self._plugins.aclose()
        self._toolkits.close()
        self._loggers.close()

    async def _constructed(self, spec: RegisteredSpec, overrides: JsonObject) -> LocalPlugin:
        key = (spec.name, spec.loader, variant_key(overrides))
        return await self._plugins.get(key, lambda: self._construct(spec, overrides))

    def _construct(self, spec: RegisteredSpec, overrides: JsonObject) -> LocalPlugin:
        note_import(spec)
        if importlib.util.find_spec("agno") is None:
            return _without_agno(spec, overrides)
        self._loggers.begin()
        loader = spec.loader.removeprefix(_LOADER)
        return self._toolkits.constructed(loader, overrides, plugin=spec.name, install=spec.install)


def _without_agno(spec: RegisteredSpec, overrides: JsonObject) -> LocalPlugin:
    """Return what stands in for a toolkit where Agno is not installed; it takes no overrides."""
    if spec.counterpart and not overrides:
        return built(importlib.import_module(spec.counterpart), overrides, plugin=spec.name)
    raise ToolUnavailableError(f"plugin '{spec.name}' is a toolkit of Agno, which is not installed.", hint=spec.install)
