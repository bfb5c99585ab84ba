"""Plugins that installed packages register in the entry-point group ``pegboard.plugins``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from pegboard.core.model.loadouts import category_of
from pegboard.core.model.specs import PluginSpec, RegisteredSpec
from pegboard.core.model.toolkits import SHARED_ONLY
from pegboard.core.model.tools import CallResult, Frozen, JsonObject, Manifest, Tool, variant_key
from pegboard.errors import ToolUnavailableError
from pegboard.ports import CallContext
from pegboard.sources.signatures import Built, ConstructedPlugins, built

GROUP: Final = "pegboard.plugins"
_ENTRY_POINT: Final = "entry_point:"
_MISSING: Final = "missing:"


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
            )
            for name in _entries()
        }
    )


class PackageSource:
    """The source of plugins of installed packages; for known names without one, of what would bring them."""

    def __init__(self) -> None:
        self._plugins = ConstructedPlugins()

    def handles(self, spec: PluginSpec) -> bool:
        """Return whether an installed package has, or should have, the plugin."""
        return isinstance(spec, RegisteredSpec) and spec.loader.startswith((_ENTRY_POINT, _MISSING))

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
        plugin = await self._built(spec, overrides)
        return await self._plugins.call(plugin, spec.name, tool.name, arguments, context)

    async def holds(self, spec: PluginSpec, overrides: JsonObject, condition: str, *given: object) -> object:
        """Return what a predicate of the plugin's code answers (T12)."""
        assert isinstance(spec, RegisteredSpec)
        return await self._plugins.ask(await self._built(spec, overrides), condition, *given)

    def on_changed(self, callback: Callable[[str], None]) -> None:
        """Take no callback: installed packages do not change by themselves."""

    async def aclose(self) -> None:
        """Close what was constructed."""
        await self._plugins.aclose()

    async def _built(self, spec: RegisteredSpec, overrides: JsonObject) -> Built:
        if spec.loader.startswith(_MISSING):
            raise _not_provided(spec)
        key = (spec.name, spec.loader, variant_key(overrides))
        return await self._plugins.get(key, lambda: _load(spec, overrides))


def _entries() -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda e: (_package(e), e.name)):
        found.setdefault(entry.name, entry)
    return found


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else ""


def _load(spec: RegisteredSpec, overrides: JsonObject) -> Built:
    entry = _entries().get(spec.loader.removeprefix(_ENTRY_POINT))
    if entry is None:
        raise _not_provided(spec)
    package = _package(entry) or entry.value
    try:
        return built(entry.load(), overrides, plugin=spec.name)
    except ToolUnavailableError:
        raise
    except BaseException as error:  # whatever a broken package raises when it is imported
        absent = error.name if isinstance(error, ModuleNotFoundError) else None
        raise ToolUnavailableError(
            f"plugin '{spec.name}' of package '{package}' cannot be loaded: {type(error).__name__}: {error}",
            hint=f"pip install {absent.split('.')[0]}" if absent else f"Reinstall or update '{package}'.",
        ) from error


def _not_provided(spec: RegisteredSpec) -> ToolUnavailableError:
    return ToolUnavailableError(
        f"plugin '{spec.name}' is known by name only: no installed package provides it.",
        hint=spec.install
        or f"Install a package that registers '{spec.name}' in the entry-point group '{GROUP}', "
        "or define it under 'plugins:' or 'servers:'.",
    )
