"""Plugins written in Python: a module's functions, a class, a factory, a function, an object."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from pegboard.core.model.naming import did_you_mean
from pegboard.core.model.specs import PluginSpec, PythonSpec
from pegboard.core.model.tools import CallResult, JsonObject, Manifest, Tool, variant_key
from pegboard.errors import ToolUnavailableError
from pegboard.ports import CallContext, HookAnswer
from pegboard.sources.code import note_import
from pegboard.sources.signatures import (
    Adopt,
    ConstructedPlugins,
    LocalPlugin,
    ModulesBeside,
    adopted,
    distribution_of,
    in_thread,
    nothing_adopted,
)
from pegboard.sources.stdout import plugin_output


class PythonSource:
    """The source of plugins that the configuration names with ``python:``."""

    def __init__(self, *, adopt: Adopt = nothing_adopted) -> None:
        self._plugins = ConstructedPlugins()
        self._modules = ModulesBeside()
        self._adopt = adopt

    def handles(self, spec: PluginSpec) -> bool:
        """Return whether the plugin is written in Python."""
        return isinstance(spec, PythonSpec)

    def fingerprint(self, spec: PluginSpec) -> str:  # noqa: ARG002
        """Return nothing: asking the code itself is cheaper and always right."""
        return ""

    async def describe(self, spec: PluginSpec, overrides: JsonObject) -> Manifest:
        """Import the module, construct what it names, and return its tools."""
        assert isinstance(spec, PythonSpec)
        manifest = (await self._built(spec, overrides)).manifest(spec.name)
        return replace(manifest, description=spec.description or manifest.description)

    async def call(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> CallResult:
        """Run the function; what it raises is an error result."""
        assert isinstance(spec, PythonSpec)
        return await (await self._built(spec, overrides)).call(spec.name, tool.name, arguments, context)

    async def ask_hooks(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> HookAnswer:
        """Return what guard and approval hook of the function say to a call."""
        assert isinstance(spec, PythonSpec)
        return await (await self._built(spec, overrides)).ask_hooks(spec.name, tool.name, arguments, context)

    async def holds(self, spec: PluginSpec, overrides: JsonObject, condition: str, *given: object) -> object:
        """Return what a predicate of the plugin's code answers (T12)."""
        assert isinstance(spec, PythonSpec)
        return await self._plugins.ask(await self._built(spec, overrides), condition, *given)

    def on_changed(self, callback: Callable[[str], None]) -> None:
        """Take no callback: what was imported does not change by itself."""

    async def aclose(self) -> None:
        """Close what was constructed, and remove the modules that were imported for it."""
        await self._plugins.aclose()
        self._modules.close()

    async def _built(self, spec: PythonSpec, overrides: JsonObject) -> LocalPlugin:
        key = (spec.name, spec.target, spec.folder, variant_key(overrides))
        return await self._plugins.get(key, lambda: _load(spec, overrides, self._modules, self._adopt))


class Hooks:
    """The functions that the configuration names as ``module:function`` (F3, T6, T12)."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._known: dict[str, Callable[..., Any]] = {}
        self._modules = ModulesBeside()

    async def ask(self, hook: str, *given: Any) -> object:
        """Return what a function answers, plain or async; raises what it raises."""
        function = await self._function(hook)
        with plugin_output():
            answer: Any = await in_thread(function, *given)
            return await answer if inspect.isawaitable(answer) else answer

    async def prepare(self, hook: str) -> None:
        """Import a function, once; raises what its import raises."""
        await self._function(hook)

    async def _function(self, hook: str) -> Callable[..., Any]:
        function = self._known.get(hook)
        if function is None:
            function = self._known[hook] = await in_thread(self._found, hook)
        return function

    def close(self) -> None:
        """Remove the modules that were imported for the hooks."""
        self._modules.close()

    def _found(self, hook: str) -> Callable[..., Any]:
        module_name, _, path = hook.partition(":")
        with self._modules.visible(self._folder, module_name), plugin_output():
            try:
                found: Any = importlib.import_module(module_name)
            except SystemExit as error:  # would end the event loop that waits for it
                raise ImportError(f"importing '{module_name}' failed: SystemExit: {error}") from error
            for name in path.split("."):
                found = getattr(found, name)
            return found


def _load(spec: PythonSpec, overrides: JsonObject, modules: ModulesBeside, adopt: Adopt) -> LocalPlugin:
    """Return the plugin; annotations are read while the modules beside the configuration are in sight."""
    module_name, _, path = spec.target.partition(":")
    with modules.visible(spec.folder, module_name):
        note_import(spec)
        try:
            target = _attribute(importlib.import_module(module_name), path, spec)
            return adopted(target, overrides, plugin=spec.name, adopt=adopt)
        except ToolUnavailableError:
            raise
        except ModuleNotFoundError as error:
            raise _missing(spec, module_name, error) from error
        except SyntaxError as error:
            where = f"{Path(error.filename).name}:{error.lineno}" if error.filename else module_name
            raise ToolUnavailableError(f"plugin '{spec.name}': {where}: {error.msg}.") from error
        except BaseException as error:  # whatever a module raises when it is imported
            reason = f"{type(error).__name__}: {error}"
            raise ToolUnavailableError(f"plugin '{spec.name}': importing '{module_name}' failed: {reason}") from error


def _attribute(module: ModuleType, path: str, spec: PythonSpec) -> object:
    found: Any = module
    for name in path.split(".") if path else ():
        if not hasattr(found, name):
            guess = did_you_mean(name, [n for n in dir(found) if not n.startswith("_")])
            raise ToolUnavailableError(
                f"plugin '{spec.name}': module '{module.__name__}' has no '{path}'.", hint=guess, location=spec.place
            )
        found = getattr(found, name)
    return found


def _missing(spec: PythonSpec, module_name: str, error: ModuleNotFoundError) -> ToolUnavailableError:
    if error.name is None or module_name == error.name or module_name.startswith(f"{error.name}."):
        return ToolUnavailableError(
            f"plugin '{spec.name}': there is no module '{error.name or module_name}', neither beside the "
            "configuration nor installed.",
            location=spec.place,
        )
    return ToolUnavailableError(
        f"plugin '{spec.name}': module '{module_name}' needs '{error.name}', which is not installed.",
        hint=f"pip install {distribution_of(error.name)}",
    )
