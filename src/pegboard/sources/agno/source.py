"""The source of Agno's toolkits."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Final

from pegboard.core.model.specs import PluginSpec, RegisteredSpec
from pegboard.core.model.tools import JsonObject, variant_key
from pegboard.errors import ToolUnavailableError
from pegboard.ports.schedules import DueSchedule
from pegboard.sources.agno.construction import AgnoToolkits
from pegboard.sources.agno.loggers import QuietLoggers
from pegboard.sources.agno.schedules import MODULE
from pegboard.sources.code import note_import
from pegboard.sources.signatures import LocalPlugin, LocalSource, PluginMaking, build_plugin, run_in_thread
from pegboard.support.installed import install_hint

_LOADER: Final = "agno:"


class AgnoSource(LocalSource):
    """The source of Agno's toolkits under their registered names."""

    def __init__(self, toolkits: AgnoToolkits | None = None, *, idle: float | None = None) -> None:
        super().__init__(idle=idle)
        self._toolkits = toolkits or AgnoToolkits()
        self._loggers = QuietLoggers()

    def handles(self, spec: PluginSpec) -> bool:
        """Return whether the plugin is a toolkit of Agno."""
        return isinstance(spec, RegisteredSpec) and spec.loader.startswith(_LOADER)

    async def claim_due(self, spec: PluginSpec) -> DueSchedule | None:
        """Take a schedule that is due, where the plugin is the toolkit that stores them."""
        assert isinstance(spec, RegisteredSpec)
        stores = spec.loader.startswith(f"{_LOADER}{MODULE}:") and importlib.util.find_spec("agno") is not None
        return await run_in_thread(self._toolkits.schedules.claim) if stores else None

    async def note_run(self, due: DueSchedule, error: str) -> None:
        """Keep in the history of a schedule that it was run."""
        await run_in_thread(self._toolkits.schedules.note_run, due, error)

    async def aclose(self) -> None:
        """Close the toolkits that have a connection and their database, and give Agno's loggers back."""
        await super().aclose()
        self._toolkits.close()
        self._loggers.close()

    def _making_of(self, spec: PluginSpec, overrides: JsonObject) -> PluginMaking:
        assert isinstance(spec, RegisteredSpec)

        def find_agno() -> tuple[object, bool]:
            note_import(spec)
            installed = importlib.util.find_spec("agno") is not None
            return installed, installed

        def make_plugin(installed: object) -> LocalPlugin:
            if not installed:
                return _without_agno(spec, overrides)
            self._loggers.begin()
            loader = spec.loader.removeprefix(_LOADER)
            return self._toolkits.construct_toolkit(loader, overrides, plugin=spec.name, packages=spec.packages)

        key = (spec.name, spec.loader, variant_key(overrides))
        return PluginMaking(
            key=key, plugin=spec.name, find=find_agno, make=make_plugin, timeout=spec.timeout, idle=spec.idle
        )


def _without_agno(spec: RegisteredSpec, overrides: JsonObject) -> LocalPlugin:
    """Return what replaces a toolkit where Agno is not installed; it takes no overrides."""
    if spec.counterpart and not overrides:
        return build_plugin(importlib.import_module(spec.counterpart), overrides, plugin=spec.name)
    raise ToolUnavailableError(
        f"plugin '{spec.name}' is a toolkit of Agno, which is not installed.",
        hint=install_hint(*spec.packages, extra="agno"),
    )
