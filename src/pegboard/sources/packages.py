"""What packages bring: the entry-point groups of installed ones, and our own packaged plugins."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, cast

from pegboard.core.model.loadouts import category_of
from pegboard.core.model.specs import NAME_ONLY, PluginSpec, RegisteredSpec
from pegboard.core.model.toolkits import SHARED_ONLY
from pegboard.core.model.tools import CallResult, Frozen, JsonObject, Manifest, Tool, variant_key
from pegboard.errors import ToolUnavailableError
from pegboard.ports import CallContext, HookAnswer
from pegboard.sources.code import note_import
from pegboard.sources.signatures import (
    Adopt,
    ConstructedPlugins,
    LocalPlugin,
    adopted,
    distribution_of,
    nothing_adopted,
)

log = logging.getLogger("pegboard")

GROUP: Final = "pegboard.plugins"
TOOLKITS: Final = "pegboard.toolkits"
LOADOUTS: Final = "pegboard.loadouts"
_ENTRY_POINT: Final = "entry_point:"
_PACKAGED: Final = "packaged:"


def installed() -> Mapping[str, RegisteredSpec]:
    """Return the plugins of installed packages by name; nothing is imported.

    Where two packages take one name, the first by the package's name has it.
    """
    return Frozen(
        {
            name: RegisteredSpec(
                name=name,
                loader=_ENTRY_POINT + name,
                category=category_of(name),
                shared_only=name in SHARED_ONLY,
                module=entry.module,
                package=f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "",
            )
            for name, entry in _entries().items()
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Packaged:
    """What one installed package registers in the groups of toolkits and loadouts, as it gives it (T11)."""

    package: str
    toolkits: tuple[object, ...] = ()
    loadouts: tuple[object, ...] = ()


def packaged() -> tuple[Packaged, ...]:
    """Return the toolkits and loadouts of installed packages, which are imported for it; one that fails is logged."""
    entries = entry_points()
    packages = {_package(entry): None for group in (TOOLKITS, LOADOUTS) for entry in entries.select(group=group)}
    return tuple(
        Packaged(
            package=package,
            toolkits=tuple(_values(entries.select(group=TOOLKITS), package)),
            loadouts=tuple(_values(entries.select(group=LOADOUTS), package)),
        )
        for package in sorted(packages)
    )


def _values(entries: Iterable[EntryPoint], package: str) -> Iterator[object]:
    """Yield what a package registers: a value, a list of them, or a function that returns either."""
    for entry in sorted(entries, key=lambda e: e.name):
        if _package(entry) != package:
            continue
        try:
            found = entry.load()
            found = found() if callable(found) else found
        except Exception as error:  # whatever a broken package raises when it is imported
            log.warning("%s of package '%s' cannot be loaded: %s: %s", entry.name, package, type(error).__name__, error)
            continue
        for value in cast("list[object]", found) if isinstance(found, list | tuple) else [found]:
            yield {"name": entry.name, **cast("dict[str, Any]", value)} if isinstance(value, dict) else value


class PackageSource:
    """The source of plugins of packages; for known names without one, of what would bring them."""

    def __init__(self, *, adopt: Adopt = nothing_adopted) -> None:
        self._plugins = ConstructedPlugins()
        self._adopt = adopt

    def handles(self, spec: PluginSpec) -> bool:
        """Return whether a package has, or should have, the plugin."""
        return isinstance(spec, RegisteredSpec) and spec.loader.startswith((_ENTRY_POINT, _PACKAGED, NAME_ONLY))

    def fingerprint(self, spec: PluginSpec) -> str:  # noqa: ARG002
        """Return nothing: asking the code itself is cheaper and always right."""
        return ""

    async def describe(self, spec: PluginSpec, overrides: JsonObject) -> Manifest:
        """Import the package, construct what it registers, and return its tools."""
        assert isinstance(spec, RegisteredSpec)
        return (await self._built(spec, overrides)).manifest(spec.name)

    async def call(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> CallResult:
        """Run the function; what it raises is an error result."""
        assert isinstance(spec, RegisteredSpec)
        return await (await self._built(spec, overrides)).call(spec.name, tool.name, arguments, context)

    async def ask_hooks(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> HookAnswer:
        """Return what guard and approval hook of the function say to a call."""
        assert isinstance(spec, RegisteredSpec)
        return await (await self._built(spec, overrides)).ask_hooks(spec.name, tool.name, arguments, context)

    async def holds(self, spec: PluginSpec, overrides: JsonObject, condition: str, *given: object) -> object:
        """Return what a predicate of the plugin's code answers (T12)."""
        assert isinstance(spec, RegisteredSpec)
        return await self._plugins.ask(await self._built(spec, overrides), condition, *given)

    def on_changed(self, callback: Callable[[str], None]) -> None:
        """Take no callback: installed packages do not change by themselves."""

    async def aclose(self) -> None:
        """Close what was constructed."""
        await self._plugins.aclose()

    async def _built(self, spec: RegisteredSpec, overrides: JsonObject) -> LocalPlugin:
        if spec.loader.startswith(NAME_ONLY):
            raise _not_provided(spec)
        key = (spec.name, spec.loader, variant_key(overrides))
        load = _packaged if spec.loader.startswith(_PACKAGED) else _load
        return await self._plugins.get(key, lambda: load(spec, overrides, self._adopt))


def _entries() -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda e: (_package(e), e.name)):
        found.setdefault(entry.name, entry)
    return found


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else ""


def _packaged(spec: RegisteredSpec, overrides: JsonObject, adopt: Adopt) -> LocalPlugin:
    note_import(spec)
    module, _, name = spec.loader.removeprefix(_PACKAGED).partition(":")
    found = import_module(module)
    return adopted(getattr(found, name) if name else found, overrides, plugin=spec.name, adopt=adopt)


def _load(spec: RegisteredSpec, overrides: JsonObject, adopt: Adopt) -> LocalPlugin:
    entry = _entries().get(spec.loader.removeprefix(_ENTRY_POINT))
    if entry is None:
        raise _not_provided(spec)
    package = _package(entry) or entry.value
    note_import(spec)
    try:
        return adopted(entry.load(), overrides, plugin=spec.name, adopt=adopt)
    except ToolUnavailableError:
        raise
    except BaseException as error:  # whatever a broken package raises when it is imported
        absent = (error.name if isinstance(error, ModuleNotFoundError) else None) or ""
        raise ToolUnavailableError(
            f"plugin '{spec.name}' of package '{package}' cannot be loaded: {type(error).__name__}: {error}",
            hint=f"pip install {distribution_of(absent)}" if absent else f"Reinstall or update '{package}'.",
        ) from error


def _not_provided(spec: RegisteredSpec) -> ToolUnavailableError:
    return ToolUnavailableError(
        f"plugin '{spec.name}' is known by name only: no installed package provides it.",
        hint=spec.install
        or f"Install a package that registers '{spec.name}' in the entry-point group '{GROUP}', "
        "or define it under 'plugins:' or 'servers:'.",
    )
