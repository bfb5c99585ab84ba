"""Sources that are imported when the first plugin of their kind is described."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from pegboard.core.model.specs import NAME_ONLY, PluginSpec, PythonSpec, RegisteredSpec
from pegboard.core.model.tools import CallResult, JsonObject, Manifest, Tool
from pegboard.ports import (
    CallContext,
    ConditionalSource,
    Fingerprint,
    HasHooks,
    HookAnswer,
    HookRunner,
    ImportingSource,
    ScopedSource,
    SessionDataStore,
    Source,
)
from pegboard.sources.code import fingerprint

if TYPE_CHECKING:
    from pegboard.ports.schedules import DueSchedule

_THEIRS: Final = {
    "agno.tools.toolkit": "",
    "langchain_core.tools": "pegboard.sources.langchain.tools",
    "pydantic_ai.toolsets": "pegboard.sources.pydantic_ai_toolsets",
}
"""By the module without which nothing can be of a framework: what knows its tools; nothing for Agno's toolkits."""


class LazySource:
    """A source in front of another one, which ``make`` imports and returns.

    It brings in plugins of the ``kind``; of registered ones those whose loader begins like one of ``loaders``.
    """

    def __init__(self, kind: type[PluginSpec], make: Callable[[], Source], *, loaders: tuple[str, ...] = ("",)) -> None:
        self._kind = kind
        self._loaders = loaders
        self._make = make
        self._callbacks: list[Callable[[str], None]] = []
        self._made: Source | None = None
        self.call = self._first_call

    @property
    def source_if_made(self) -> Source | None:
        """Return the other source where it is there."""
        return self._made

    def _source(self) -> Source:
        if self._made is None:
            self._made = self._make()
            self.call = self._made.call
            for callback in self._callbacks:
                self._made.on_changed(callback)
        return self._made

    def handles(self, spec: PluginSpec) -> bool:
        """Return whether the other source brings a plugin in."""
        if not isinstance(spec, self._kind):
            return False
        return not isinstance(spec, RegisteredSpec) or spec.loader.startswith(self._loaders)

    def fingerprint(self, spec: PluginSpec) -> str:
        """Return the text under which a manifest is stored."""
        return self._source().fingerprint(spec)

    def code_fingerprint(self, spec: PluginSpec, overrides: JsonObject) -> Fingerprint | None:
        """Return under which fingerprint the manifest of a plugin is stored; neither source nor plugin is imported."""
        return fingerprint(spec, overrides)

    def under_way(self, spec: PluginSpec, overrides: JsonObject) -> str:
        """Return which line of its code runs while a plugin is brought in; empty where that is unknown."""
        return self._made.under_way(spec, overrides) if isinstance(self._made, ImportingSource) else ""

    async def describe(self, spec: PluginSpec, overrides: JsonObject) -> Manifest:
        """Return what a plugin offers."""
        return await self._source().describe(spec, overrides)

    async def _first_call(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> CallResult:
        """Run one tool; from then on a call goes to the other source straight."""
        return await self._source().call(spec, overrides, tool, arguments, context)

    async def ask_hooks(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> HookAnswer:
        """Return what the hooks of a tool say to a call, where the source has any."""
        source = self._source()
        if not isinstance(source, HasHooks):
            return HookAnswer()
        return await source.ask_hooks(spec, overrides, tool, arguments, context)

    async def holds(
        self, spec: PluginSpec, overrides: JsonObject, condition: str, *given: object, scope: str = ""
    ) -> object:
        """Return what a predicate of the plugin's code answers (T12)."""
        source = self._source()
        assert isinstance(source, ConditionalSource)
        return await source.holds(spec, overrides, condition, *given, scope=scope)

    async def claim_due(self, spec: PluginSpec) -> DueSchedule | None:
        """Take a schedule of the plugin that is due, where the source keeps any."""
        from pegboard.ports.schedules import ScheduleSource  # no start needs it

        source = self._source()
        return await source.claim_due(spec) if isinstance(source, ScheduleSource) else None

    async def note_run(self, due: DueSchedule, error: str) -> None:
        """Keep that a schedule was run."""
        from pegboard.ports.schedules import ScheduleSource

        source = self._source()
        assert isinstance(source, ScheduleSource)
        await source.note_run(due, error)

    async def end_scope(self, scope: str) -> None:
        """Close what a scope has, where the source keeps anything for scopes."""
        if isinstance(self._made, ScopedSource):
            await self._made.end_scope(scope)

    def on_changed(self, callback: Callable[[str], None]) -> None:
        """Call back when the tools of a plugin have changed by themselves."""
        self._callbacks.append(callback)
        if self._made is not None:
            self._made.on_changed(callback)

    async def aclose(self) -> None:
        """Stop whatever was started."""
        if self._made is not None:
            await self._made.aclose()


class PluginProcessHooks(Protocol):
    """What asks those hooks of a configuration that are asked in the process of a plugin (A7)."""

    def owner(self, hook: str) -> PluginSpec | None:
        """Return the plugin in whose process a hook is asked; None for one of this process."""
        ...

    async def ask_hook(self, spec: PluginSpec, hook: str, *given: object) -> object:
        """Return what a hook answers; raises what it raises."""
        ...

    async def prepare_hook(self, spec: PluginSpec, hook: str) -> None:
        """Import a hook; raises what its import raises."""
        ...


class LazyHooks:
    """The hooks of a configuration, imported when the first is asked; those of ``elsewhere`` are not imported here."""

    def __init__(self, folder: Path, elsewhere: PluginProcessHooks | None = None) -> None:
        self._folder = str(folder)
        self._elsewhere = elsewhere
        self._made: Any = None

    def look_in(self, folder: Path) -> None:
        """Look for functions in another folder from now on; what was imported from the one before is removed."""
        if str(folder) != self._folder:
            self.close()
            self._folder, self._made = str(folder), None

    def _hooks(self) -> HookRunner:
        if self._made is None:
            self._made = import_module("pegboard.sources.python").Hooks(self._folder)
        return self._made

    async def prepare(self, hook: str) -> None:
        """Import a function, once."""
        if self._elsewhere is not None and (owner := self._elsewhere.owner(hook)) is not None:
            await self._elsewhere.prepare_hook(owner, hook)
        else:
            await self._hooks().prepare(hook)

    async def ask(self, hook: str, *given: object) -> object:
        """Return what a function answers."""
        if self._elsewhere is not None and (owner := self._elsewhere.owner(hook)) is not None:
            return await self._elsewhere.ask_hook(owner, hook, *given)
        return await self._hooks().ask(hook, *given)

    def close(self) -> None:
        """Remove the modules that were imported for the hooks."""
        if self._made is not None:
            self._made.close()


def local_sources(
    database: Path | None,
    *,
    store: SessionDataStore | None = None,
    idle: float | None = None,
    apart: bool = False,
) -> tuple[Source, ...]:
    """Return the sources of the plugins of this process: those written in Python, of packages, and Agno's toolkits.

    ``database`` is where toolkits keep what they need one for, ``store`` has the states of sessions; None is in memory.
    What plugins construct is closed after ``idle`` seconds without use; None keeps it (G9). ``apart``: this is the
    process of one plugin, which has no database.
    """
    theirs = cache(lambda: import_module("pegboard.sources.agno").AgnoToolkits(database, store, apart=apart))

    def adopt(target: object, overrides: JsonObject, *, plugin: str, parameters: Any = None) -> Any:
        for module, source in _THEIRS.items():
            if module in sys.modules:
                own: Any = import_module(source) if source else theirs()
                if (found := own.adopt(target, overrides, plugin=plugin, parameters=parameters)) is not None:
                    return found
        return None

    return (
        LazySource(PythonSpec, lambda: import_module("pegboard.sources.python").PythonSource(adopt=adopt, idle=idle)),
        LazySource(
            RegisteredSpec,
            lambda: import_module("pegboard.sources.packages").PackageSource(adopt=adopt, idle=idle),
            loaders=("entry_point:", "packaged:", NAME_ONLY),
        ),
        LazySource(
            RegisteredSpec,
            lambda: import_module("pegboard.sources.agno").AgnoSource(theirs(), idle=idle),
            loaders=("agno:",),
        ),
    )
