"""Plugins written in Python: a module's functions, a class, a factory, a function, an object."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from pegboard.core.model.naming import did_you_mean
from pegboard.core.model.specs import PluginSpec, PythonSpec
from pegboard.core.model.tools import CallResult, JsonObject, Manifest, Tool, variant_key
from pegboard.errors import ToolUnavailableError
from pegboard.ports import CallContext
from pegboard.sources.signatures import Built, ConstructedPlugins, built, in_thread, stdout_to_stderr

_DISTRIBUTIONS: Final[Mapping[str, str]] = {
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "git": "GitPython",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
}

HOOK_SECONDS: Final = 2.0
"""How long a hook may take."""

_importing = threading.RLock()
IMPORT_WAIT = 30.0
"""Seconds that the import of a plugin waits for those before it."""
_loaded_beside: dict[str, dict[str, ModuleType]] = {}


class PythonSource:
    """Bring in plugins that the configuration names with ``python:``."""

    def __init__(self) -> None:
        self._held = ConstructedPlugins()

    def handles(self, spec: PluginSpec) -> bool:
        """Return whether the plugin is written in Python."""
        return isinstance(spec, PythonSpec)

    def fingerprint(self, spec: PluginSpec) -> str:  # noqa: ARG002
        """Return nothing: asking the code itself is cheaper and always right."""
        return ""

    async def describe(self, spec: PluginSpec, overrides: JsonObject) -> Manifest:
        """Import the module, construct what it names, and return its tools."""
        assert isinstance(spec, PythonSpec)
        plugin = await self._built(spec, overrides)
        manifest = plugin.manifest(spec.name)
        names = [tool.name for tool in manifest.tools]
        tables = {"requires": spec.requires, "policy": spec.policy, "needs": spec.needs, "guards": spec.guards}
        for key, table in tables.items():
            _check_names(spec, key, table, names)
        return replace(
            manifest,
            tools=tuple(_configured(tool, spec, names) for tool in manifest.tools),
            description=spec.description or manifest.description,
        )

    async def call(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> CallResult:
        """Run the function; what it raises is an error result."""
        assert isinstance(spec, PythonSpec)
        plugin = await self._built(spec, overrides)
        return await self._held.call(plugin, spec.name, tool.name, arguments, context)

    def on_changed(self, callback: Callable[[str], None]) -> None:
        """Take no callback: what was imported does not change by itself."""

    async def aclose(self) -> None:
        """Close what was constructed."""
        await self._held.aclose()

    async def _built(self, spec: PythonSpec, overrides: JsonObject) -> Built:
        key = (spec.name, spec.target, spec.folder, variant_key(overrides))
        return await self._held.get(key, lambda: _load(spec, overrides))


class Hooks:
    """Ask functions that the configuration names as ``module:function`` (F3)."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._known: dict[str, Callable[..., Any]] = {}

    async def ask(self, hook: str, *given: Any) -> object:
        """Return what a function answers, plain or async; raises what it raises, and ``TimeoutError``."""
        async with asyncio.timeout(HOOK_SECONDS):
            function = self._known.get(hook)
            if function is None:
                function = self._known[hook] = await in_thread(self._found, hook)
            said: Any = await in_thread(function, *given)
            return await said if inspect.isawaitable(said) else said

    def _found(self, hook: str) -> Callable[..., Any]:
        module_name, _, path = hook.partition(":")
        with _beside(self._folder, module_name), stdout_to_stderr():
            found: Any = importlib.import_module(module_name)
            for name in path.split("."):
                found = getattr(found, name)
            return found


def _load(spec: PythonSpec, overrides: JsonObject) -> Built:
    """Return the plugin; annotations are read while the modules beside the configuration are in sight."""
    module_name, _, path = spec.target.partition(":")
    with _beside(spec.folder, module_name):
        try:
            target = _attribute(importlib.import_module(module_name), path, spec)
            return built(target, overrides, plugin=spec.name)
        except ToolUnavailableError:
            raise
        except ModuleNotFoundError as error:
            raise _missing(spec, module_name, error) from error
        except SyntaxError as error:
            where = f"{Path(error.filename).name}:{error.lineno}" if error.filename else module_name
            raise ToolUnavailableError(f"plugin '{spec.name}': {where}: {error.msg}.") from error
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # whatever a module raises when it is imported
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
    absent = (error.name or module_name).split(".")[0]
    if error.name is None or module_name == error.name or module_name.startswith(f"{error.name}."):
        return ToolUnavailableError(
            f"plugin '{spec.name}': there is no module '{error.name or module_name}', neither beside the "
            "configuration nor installed.",
            location=spec.place,
        )
    return ToolUnavailableError(
        f"plugin '{spec.name}': module '{module_name}' needs '{error.name}', which is not installed.",
        hint=f"pip install {_DISTRIBUTIONS.get(absent, absent)}",
    )


def _check_names(spec: PythonSpec, key: str, table: Mapping[str, object], names: list[str]) -> None:
    for name in table:
        if name not in names:
            hint = did_you_mean(name, names) or f"Its tools are {', '.join(names)}."
            raise ToolUnavailableError(
                f"plugin '{spec.name}': '{key}' names '{name}', which is not one of its tools.",
                hint=hint,
                location=spec.place,
            )


def _configured(tool: Tool, spec: PythonSpec, names: list[str]) -> Tool:
    """Return the tool with what the configuration adds to what the code says."""
    requires = (f"{spec.name}/{name}" if name in names else name for name in spec.requires.get(tool.name, ()))
    return replace(
        tool,
        requires=tuple(dict.fromkeys((*tool.requires, *requires))),
        needs=tuple(dict.fromkeys((*tool.needs, *spec.needs.get(tool.name, ())))),
        policy=spec.policy.get(tool.name, tool.policy),
        default_on=tool.default_on and spec.default_on,
    )


@contextmanager
def _turn() -> Generator[None]:
    """Import one plugin after the other; one that hangs does not keep the others waiting for ever."""
    if not _importing.acquire(timeout=IMPORT_WAIT):
        raise ToolUnavailableError("another plugin still hangs while it is imported.", hint="Take that one out.")
    try:
        yield
    finally:
        _importing.release()


@contextmanager
def _beside(folder: str | None, module_name: str) -> Generator[None]:
    """Put the modules of a folder in sight, if the wanted one is there, and take them out of the way again.

    Two folders may have modules of one name: each sees its own. Outside, ``sys.path`` is as before,
    and whichever module had a name first keeps it in ``sys.modules``.
    """
    with _turn():
        if folder is None or not _in_folder(folder, module_name):
            yield
            return
        mine = _loaded_beside.setdefault(folder, {})
        hidden = {name: m for name, m in list(sys.modules.items()) if _hides(name, m, folder, module_name, mine)}
        for name in hidden:
            del sys.modules[name]
        sys.modules.update(mine)
        sys.path.insert(0, folder)
        importlib.invalidate_caches()
        try:
            yield
        finally:
            sys.path.remove(folder)
            for name, module in list(sys.modules.items()):
                if name not in mine and _is_from(folder, name, module):
                    mine[name] = module
            sys.modules.update(hidden)


def _in_folder(folder: str, module_name: str) -> bool:
    place = Path(folder).joinpath(*module_name.split("."))
    return place.with_suffix(".py").is_file() or place.is_dir()


def _hides(name: str, module: ModuleType, folder: str, wanted: str, mine: Mapping[str, ModuleType]) -> bool:
    """Return whether a module stands where one of this folder belongs."""
    if name in mine or _is_from(folder, name, module):
        return False
    top = wanted.split(".", 1)[0]
    if name == top or name.startswith(f"{top}."):
        return True
    return any(known.get(name) is module for other, known in _loaded_beside.items() if other != folder)


def _is_from(folder: str, name: str, module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if not file:
        return False
    place = Path(folder).joinpath(*name.split("."))
    return Path(file) in (place.with_suffix(".py"), place / "__init__.py")
