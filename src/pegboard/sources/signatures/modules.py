"""Modules that stand beside a configuration: imported without taking a name from the host.

Two folders may have modules of one name, and the host may have one of its own: each sees its own.
``sys.path`` is as before after every import. In ``sys.modules`` a module stays, so that functions
can import what is imported already, only where the host could import nothing else by its name; and
only until the last user of its folder is closed.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from pegboard.errors import ToolUnavailableError
from pegboard.sources.code import forget_imports

IMPORT_WAIT = 30.0
"""Seconds that the import of a plugin waits for those before it."""
_importing = threading.RLock()


@dataclass(slots=True, kw_only=True)
class _Folder:
    """The modules that were imported from one folder, and how many use them."""

    modules: dict[str, ModuleType] = field(default_factory=dict[str, ModuleType])
    users: int = 0


_folders: dict[str, _Folder] = {}


class ModulesBeside:
    """The folders of which one user, a source or the hooks of a configuration, has imported modules."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    @contextmanager
    def visible(self, folder: str | None, module_name: str) -> Generator[None]:
        """Make the modules of a folder importable, if the wanted one is there.

        One import after the other; raises ``ToolUnavailableError`` where one before it hangs.
        """
        with _turn():
            if folder is None or not _in_folder(folder, module_name):
                yield
                return
            with _imported_from(folder, module_name, self._modules(folder)):
                yield

    def _modules(self, folder: str) -> dict[str, ModuleType]:
        known = _folders.setdefault(folder, _Folder())
        if folder not in self._used:
            self._used.add(folder)
            known.users += 1
        return known.modules

    def close(self) -> None:
        """Remove the modules that nobody else uses from ``sys.modules``."""
        for folder in self._used:
            known = _folders[folder]
            known.users -= 1
            if not known.users:
                del _folders[folder]
                _forget(folder, known.modules)
        self._used.clear()


@contextmanager
def _turn() -> Generator[None]:
    """Import one plugin after the other; one that hangs does not keep the others waiting for ever."""
    if not _importing.acquire(timeout=IMPORT_WAIT):
        raise ToolUnavailableError(
            "another plugin still hangs while it is imported.", hint="Remove that one from the configuration."
        )
    try:
        yield
    finally:
        _importing.release()


@contextmanager
def _imported_from(folder: str, module_name: str, mine: dict[str, ModuleType]) -> Generator[None]:
    """Import from a folder first; afterwards whichever module had a name before has it again."""
    hidden = {name: m for name, m in list(sys.modules.items()) if _hides(name, m, folder, module_name, mine)}
    for name in hidden:
        del sys.modules[name]
    sys.modules.update(mine)
    before = set(sys.modules)
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(folder)
        fresh = [(name, m) for name, m in list(sys.modules.items()) if name not in before]
        mine.update((name, module) for name, module in fresh if _is_from(folder, name, module))
        for name in _taken(mine):
            del sys.modules[name]
        sys.modules.update(hidden)


def _hides(name: str, module: ModuleType, folder: str, wanted: str, mine: Mapping[str, ModuleType]) -> bool:
    """Return whether a module stands where one of this folder belongs."""
    if name in mine:
        return mine[name] is not module
    if _is_from(folder, name, module):
        return False
    top = wanted.split(".", 1)[0]
    if name == top or name.startswith(f"{top}."):
        return True
    return any(known.modules.get(name) is module for other, known in _folders.items() if other != folder)


def _taken(mine: Mapping[str, ModuleType]) -> list[str]:
    """Return the names under which the host could import something else."""
    tops = {name.partition(".")[0] for name in mine}
    theirs = {top for top in tops if _elsewhere(top, mine.get(top))}
    return [name for name in mine if name.partition(".")[0] in theirs and sys.modules.get(name) is mine[name]]


def _elsewhere(top: str, module: ModuleType | None) -> bool:
    """Return whether the host finds another module of this name."""
    specs = (finder.find_spec(top, None) for finder in sys.meta_path)
    spec = next((found for found in specs if found is not None), None)
    if spec is None:
        return False
    ours = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    return ours != (spec.origin or next(iter(spec.submodule_search_locations or ()), None))


def _forget(folder: str, modules: Mapping[str, ModuleType]) -> None:
    forget_imports(folder)
    for name, module in modules.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]
    for path in list(sys.path_importer_cache):
        if Path(path).is_relative_to(folder):
            sys.path_importer_cache.pop(path, None)


def _in_folder(folder: str, module_name: str) -> bool:
    place = Path(folder).joinpath(*module_name.split("."))
    return place.with_suffix(".py").is_file() or place.is_dir()


def _is_from(folder: str, name: str, module: ModuleType) -> bool:
    place = Path(folder).joinpath(*name.split("."))
    file = getattr(module, "__file__", None)
    if file:
        return Path(file) in (place.with_suffix(".py"), place / "__init__.py")
    portions: list[str] = list(getattr(module, "__path__", ()))
    return str(place) in portions
