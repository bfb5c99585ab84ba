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
from pegboard.ports.schedules import DueSchedule
from pegboard.sources.agno.construction import AgnoToolkits
from pegboard.sources.agno.loggers import QuietLoggers
from pegboard.sources.agno.schedules import MODULE
from pegboard.sources.code import note_import
from pegboard.sources.signatures import Instances, LocalPlugin, Making, built, in_thread

_LOADER: Final = "agno:"


class AgnoSource:
    """The source of Agno's toolkits under their registered names."""

    def __init__(self, toolkits: AgnoToolkits | None = None, *, idle: float | None = None) -> None:
        """Prepare; what is constructed is closed after ``idle`` seconds without use, None keeps it."""
        self._instances = Instances(idle=idle)
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
        return await self._instances.describe(self._making(spec, overrides))

    async def call(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> CallResult:
        """Run a function as Agno would, without an agent; a failure is an error result."""
        return await self._instances.call(self._making(spec, overrides), tool, arguments, context)

    async def claim_due(self, spec: PluginSpec) -> DueSchedule | None:
        """Take a schedule that is due, where the plugin is the toolkit that stores them."""
        assert isinstance(spec, RegisteredSpec)
        stores = spec.loader.startswith(f"{_LOADER}{MODULE}:") and importlib.util.find_spec("agno") is not None
        return await in_thread(self._toolkits.schedules.claim) if stores else None

    async def note_run(self, due: DueSchedule, error: str) -> None:
        """Keep in the history of a schedule that it was run."""
        await in_thread(self._toolkits.schedules.note_run, due, error)

    async def end_scope(self, scope: str) -> None:
        """Close what a scope has."""
        self._instances.end_scope(scope)

    def on_changed(self, callback: Callable[[str], None]) -> None:
        """Take no callback: toolkits do not change by themselves."""

    async def aclose(self) -> None:
        """Close the toolkits that have a connection and their database, and give Agno's loggers back."""
        await self._instances.aclose()
        self._toolkits.close()
        self._loggers.close()

    def _making(self, spec: PluginSpec, overrides: JsonObject) -> Making:
        assert isinstance(spec, RegisteredSpec)

        def found() -> tuple[object, bool]:
            note_import(spec)
            installed = importlib.util.find_spec("agno") is not None
            return installed, installed

        def made(installed: object) -> LocalPlugin:
            if not installed:
                return _without_agno(spec, overrides)
            self._loggers.begin()
            loader = spec.loader.removeprefix(_LOADER)
            return self._toolkits.constructed(loader, overrides, plugin=spec.name, install=spec.install)

        key = (spec.name, spec.loader, variant_key(overrides))
        return Making(key=key, plugin=spec.name, find=found, make=made, idle=spec.idle)


def _without_agno(spec: RegisteredSpec, overrides: JsonObject) -> LocalPlugin:
    """Return what stands in for a toolkit where Agno is not installed; it takes no overrides."""
    if spec.counterpart and not overrides:
        return built(importlib.import_module(spec.counterpart), overrides, plugin=spec.name)
    raise ToolUnavailableError(f"plugin '{spec.name}' is a toolkit of Agno, which is not installed.", hint=spec.install)
