"""What packages bring: the entry-point groups of installed ones, and our own packaged plugins."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, cast

from pegboard.core.model.loadouts import category_of
from pegboard.core.model.specs import NAME_ONLY, PluginSpec, RegisteredSpec
from pegboard.core.model.toolkits import SHARED_ONLY
from pegboard.core.model.tools import Frozen, JsonObject, variant_key
from pegboard.errors import ToolUnavailableError
from pegboard.sources.code import note_import
from pegboard.sources.signatures import (
    HookedSource,
    LocalPlugin,
    PluginMaking,
    adopt_plugin,
    constructs,
    distribution_of,
)
from pegboard.support.installed import install_hint

log = logging.getLogger("pegboard")

GROUP: Final = "pegboard.plugins"
TOOLKITS: Final = "pegboard.toolkits"
LOADOUTS: Final = "pegboard.loadouts"
_ENTRY_POINT: Final = "entry_point:"
_PACKAGED: Final = "packaged:"


def installed_plugins() -> Mapping[str, RegisteredSpec]:
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
class PackagedParts:
    """What one installed package registers in the groups of toolkits and loadouts, as it gives it (T11)."""

    package: str
    toolkits: tuple[object, ...] = ()
    loadouts: tuple[object, ...] = ()


def packaged_toolkits() -> tuple[PackagedParts, ...]:
    """Return the toolkits and loadouts of installed packages, which are imported for it; one that fails is logged."""
    toolkits, loadouts = _entry_points(TOOLKITS), _entry_points(LOADOUTS)
    return tuple(
        PackagedParts(
            package=package,
            toolkits=tuple(_values(toolkits, package)),
            loadouts=tuple(_values(loadouts, package)),
        )
        for package in sorted({_package(entry) for entry in (*toolkits, *loadouts)})
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


class PackageSource(HookedSource):
    """The source of plugins of packages; for known names without one, of what would bring them."""

    def handles(self, spec: PluginSpec) -> bool:
        """Return whether a package has, or should have, the plugin."""
        return isinstance(spec, RegisteredSpec) and spec.loader.startswith((_ENTRY_POINT, _PACKAGED, NAME_ONLY))

    def _making_of(self, spec: PluginSpec, overrides: JsonObject) -> PluginMaking:
        assert isinstance(spec, RegisteredSpec)
        if spec.loader.startswith(NAME_ONLY):
            raise _not_provided_error(spec)
        packaged = spec.loader.startswith(_PACKAGED)
        explained = nullcontext if packaged else _explain_errors

        def find_target() -> tuple[object, bool]:
            with explained(spec):
                target = _import_packaged(spec) if packaged else _load_entry_point(spec)
                return target, constructs(target, overrides)

        def make_plugin(target: object) -> LocalPlugin:
            with explained(spec):
                return adopt_plugin(target, overrides, plugin=spec.name, adopt=self._adopt)

        key = (spec.name, spec.loader, variant_key(overrides))
        return PluginMaking(
            key=key, plugin=spec.name, find=find_target, make=make_plugin, timeout=spec.timeout, idle=spec.idle
        )


def _entries() -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for entry in sorted(_entry_points(GROUP), key=lambda e: (_package(e), e.name)):
        found.setdefault(entry.name, entry)
    return found


def _entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group; all are read again once a folder of the import path has changed."""
    return _entry_points_of(tuple((folder, _modification_time(folder)) for folder in sys.path)).get(group, ())


@lru_cache(maxsize=1)
def _entry_points_of(_folders: tuple[tuple[str, int], ...]) -> Mapping[str, tuple[EntryPoint, ...]]:
    entries = entry_points()
    return {group: tuple(entries.select(group=group)) for group in (GROUP, TOOLKITS, LOADOUTS)}


def _modification_time(folder: str) -> int:
    """Return when an entry was added to or removed from a folder, in nanoseconds; 0 where there is none."""
    try:
        return os.stat(folder or ".").st_mtime_ns  # noqa: PTH116
    except OSError:
        return 0


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else ""


def _import_packaged(spec: RegisteredSpec) -> object:
    note_import(spec)
    module, _, name = spec.loader.removeprefix(_PACKAGED).partition(":")
    found = import_module(module)
    return getattr(found, name) if name else found


def _load_entry_point(spec: RegisteredSpec) -> object:
    entry = _entries().get(spec.loader.removeprefix(_ENTRY_POINT))
    if entry is None:
        raise _not_provided_error(spec)
    note_import(spec)
    return entry.load()


@contextmanager
def _explain_errors(spec: RegisteredSpec) -> Generator[None]:
    """Raise ``ToolUnavailableError`` for whatever a package raises when it is imported, or its class is constructed."""
    try:
        yield
    except ToolUnavailableError:
        raise
    except BaseException as error:
        entry = _entries().get(spec.loader.removeprefix(_ENTRY_POINT))
        package = (_package(entry) or entry.value) if entry is not None else ""
        absent = (error.name if isinstance(error, ModuleNotFoundError) else None) or ""
        raise ToolUnavailableError(
            f"plugin '{spec.name}' of package '{package}' cannot be loaded: {type(error).__name__}: {error}",
            hint=install_hint(distribution_of(absent)) if absent else f"Reinstall or update '{package}'.",
        ) from error


def _not_provided_error(spec: RegisteredSpec) -> ToolUnavailableError:
    return ToolUnavailableError(
        f"plugin '{spec.name}' is known by name only: no installed package provides it.",
        hint=f"Install a package that registers '{spec.name}' in the entry-point group '{GROUP}', "
        "or define it under 'plugins:' or 'servers:'.",
    )
