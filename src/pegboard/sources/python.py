"""Plugins written in Python: a module's functions, a class, a factory, a function, an object."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from pegboard.core.model.naming import did_you_mean
from pegboard.core.model.specs import PluginSpec, PythonSpec
from pegboard.core.model.tools import JsonObject, Manifest, variant_key
from pegboard.errors import ToolUnavailableError
from pegboard.sources.code import note_import
from pegboard.sources.signatures import (
    Adopt,
    HookedSource,
    LocalPlugin,
    ModulesBeside,
    PluginMaking,
    adopt_plugin,
    constructs,
    distribution_of,
    nothing_adopted,
    run_in_thread,
)
from pegboard.sources.stdout import plugin_output
from pegboard.support.installed import install_hint


class PythonSource(HookedSource):
    """The source of plugins that the configuration names with ``python:``."""

    def __init__(self, *, adopt: Adopt = nothing_adopted, idle: float | None = None) -> None:
        super().__init__(adopt=adopt, idle=idle)
        self._modules = ModulesBeside()

    def handles(self, spec: PluginSpec) -> bool:
        """Return whether the plugin is written in Python."""
        return isinstance(spec, PythonSpec)

    async def describe(self, spec: PluginSpec, overrides: JsonObject) -> Manifest:
        """Import the module, construct what it names, and return its tools."""
        manifest = await super().describe(spec, overrides)
        return replace(manifest, description=spec.description or manifest.description)

    async def aclose(self) -> None:
        """Close what was constructed, and remove the modules that were imported for it."""
        await super().aclose()
        self._modules.close()

    def _making_of(self, spec: PluginSpec, overrides: JsonObject) -> PluginMaking:
        assert isinstance(spec, PythonSpec)
        module_name = spec.target.partition(":")[0]

        def find_target() -> tuple[object, bool]:
            with self._modules.visible(spec.folder, module_name), _explain_errors(spec, module_name):
                target = _import_target(spec)
                return target, constructs(target, overrides)

        def make_plugin(target: object) -> LocalPlugin:
            with self._modules.at_hand(spec.folder, module_name), _explain_errors(spec, module_name):
                return adopt_plugin(target, overrides, plugin=spec.name, adopt=self._adopt)

        key = (spec.name, spec.target, spec.folder, variant_key(overrides))
        return PluginMaking(
            key=key,
            plugin=spec.name,
            find=find_target,
            make=make_plugin,
            timeout=spec.timeout,
            idle=spec.idle,
            folder=spec.folder,
        )


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
            answer: Any = await run_in_thread(function, *given)
            return await answer if inspect.isawaitable(answer) else answer

    async def prepare(self, hook: str) -> None:
        """Import a function, once; raises what its import raises."""
        await self._function(hook)

    async def _function(self, hook: str) -> Callable[..., Any]:
        function = self._known.get(hook)
        if function is None:
            function = self._known[hook] = await run_in_thread(self._find_hook, hook)
        return function

    def close(self) -> None:
        """Remove the modules that were imported for the hooks."""
        self._modules.close()

    def _find_hook(self, hook: str) -> Callable[..., Any]:
        module_name, _, path = hook.partition(":")
        with self._modules.visible(self._folder, module_name), plugin_output():
            try:
                found: Any = importlib.import_module(module_name)
            except SystemExit as error:  # would end the event loop that waits for it
                raise ImportError(f"importing '{module_name}' failed: SystemExit: {error}") from error
            for name in path.split("."):
                found = getattr(found, name)
            return found


def _import_target(spec: PythonSpec) -> object:
    """Return what a specification names, its module imported."""
    module_name, _, path = spec.target.partition(":")
    note_import(spec)
    return _attribute(importlib.import_module(module_name), path, spec)


@contextmanager
def _explain_errors(spec: PythonSpec, module_name: str) -> Generator[None]:
    """Raise ``ToolUnavailableError`` for whatever a module raises when it is imported, or its class is constructed."""
    try:
        yield
    except ToolUnavailableError:
        raise
    except ModuleNotFoundError as error:
        raise _missing_module_error(spec, module_name, error) from error
    except SyntaxError as error:
        where = f"{Path(error.filename).name}:{error.lineno}" if error.filename else module_name
        raise ToolUnavailableError(f"plugin '{spec.name}': {where}: {error.msg}.") from error
    except BaseException as error:
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


def _missing_module_error(spec: PythonSpec, module_name: str, error: ModuleNotFoundError) -> ToolUnavailableError:
    if error.name is None or module_name == error.name or module_name.startswith(f"{error.name}."):
        return ToolUnavailableError(
            f"plugin '{spec.name}': there is no module '{error.name or module_name}', neither beside the "
            "configuration nor installed.",
            location=spec.place,
        )
    return ToolUnavailableError(
        f"plugin '{spec.name}': module '{module_name}' needs '{error.name}', which is not installed.",
        hint=install_hint(distribution_of(error.name)),
    )
