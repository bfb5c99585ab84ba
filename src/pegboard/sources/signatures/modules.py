"""Modules that stand beside a configuration: imported without taking a name from the host.

Two folders may have modules of one name, and the host may have one of its own: each sees its own.
``sys.path`` is as before after every import, and never changed in place: the person who looks through it in another
thread would miss a folder. In ``sys.modules`` a module stays, so that functions
can import what is imported already, only where the host could import nothing else by its name; and
only until the last user of its folder is closed.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from pegboard.sources.code import forget_imports

HANGS_AFTER = 5.0
"""Seconds after which an import or a constructor that keeps the turn keeps no import waiting any longer."""
_LOOK = 1.0
"""Seconds after which a constructor no longer waits for one that keeps the turn."""
_constructing: set[int] = set()  # threads that construct, in their turn


class _ImportTurn:
    """The turn to import; what hangs in it keeps it, and the others take another one."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.taken_at = time.monotonic()


_turn = _ImportTurn()


@dataclass(slots=True, kw_only=True)
class _ImportedFolder:
    """The modules that were imported from one folder, and how many use them.

    ``theirs`` is whether the host could import something else by a name, as of an import path and its finders.
    """

    modules: dict[str, ModuleType] = field(default_factory=dict[str, ModuleType])
    users: int = 0
    theirs: dict[str, bool] = field(default_factory=dict[str, bool])
    theirs_as_of: object = None


_folders: dict[str, _ImportedFolder] = {}


class ModulesBeside:
    """The folders of which one user, a source or the hooks of a configuration, has imported modules."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._constructed: set[tuple[str | None, str]] = set()

    @contextmanager
    def visible(self, folder: str | None, module_name: str) -> Generator[None]:
        """Make the modules of a folder importable, if the wanted one is there.

        One import after the other; for one that hangs no one waits, and its folder stays importable.
        """
        with _turn_to_import():
            if folder is None or not _in_folder(folder, module_name):
                yield
                return
            with _importing_from(folder, module_name, self._folder_of(folder)):
                yield

    @contextmanager
    def at_hand(self, folder: str | None, module_name: str) -> Generator[None]:
        """Make the modules of a folder importable while something of a module is constructed, the first time.

        Later everything is imported. No one is kept waiting by a constructor that hangs: its folder stays importable,
        and the others construct meanwhile.
        """
        place = folder, module_name
        known = _folders[folder].modules if folder is not None and folder in self._used else {}
        apart = any(sys.modules.get(name) is not module for name, module in known.items())
        turn = None if place in self._constructed and not apart else _turn_to_construct()
        if turn is None:
            yield
            return
        _constructing.add(threading.get_ident())
        try:
            with self.visible(folder, module_name):
                yield
            self._constructed.add(place)
        finally:
            _constructing.discard(threading.get_ident())
            turn.release()

    def _folder_of(self, folder: str) -> _ImportedFolder:
        known = _folders.setdefault(folder, _ImportedFolder())
        if folder not in self._used:
            self._used.add(folder)
            known.users += 1
        return known

    def close(self) -> None:
        """Remove the modules that no one else uses from ``sys.modules``."""
        for folder in self._used:
            known = _folders[folder]
            known.users -= 1
            if not known.users:
                del _folders[folder]
                _forget(folder, known.modules)
        self._used.clear()


def _turn_to_construct() -> threading.RLock | None:
    """Wait for the imports before; return None, without a turn, where a constructor keeps it."""
    while (lock := _taken_turn()) is None:
        if _constructing:
            return None
    return lock


@contextmanager
def _turn_to_import() -> Generator[None]:
    """Wait for the imports and constructors before, but for those that hang."""
    while (lock := _taken_turn()) is None:
        pass
    try:
        yield
    finally:
        lock.release()


def _taken_turn() -> threading.RLock | None:
    """Return the turn once it is this thread's, None where it is not yet; let another one count for one that hangs."""
    global _turn  # noqa: PLW0603 - the hanging one keeps its own
    turn = _turn
    if turn.lock.acquire(timeout=_LOOK):
        turn.taken_at = time.monotonic()
        return turn.lock
    if turn is _turn and time.monotonic() - turn.taken_at >= HANGS_AFTER:
        _turn = _ImportTurn()
        _constructing.clear()
    return None


@contextmanager
def _importing_from(folder: str, module_name: str, known: _ImportedFolder) -> Generator[None]:
    """Import from a folder first; afterwards whichever module had a name before has it again."""
    mine = known.modules
    hidden = _modules_in_the_way(folder, module_name, mine)
    for name in hidden:
        sys.modules.pop(name, None)
    sys.modules.update(mine)
    before = sys.modules.copy().keys()
    host = sys.path
    sys.path = [folder, *host]
    _look_anew(folder)
    try:
        yield
    finally:
        sys.path = host if sys.path == [folder, *host] else _path_without_folder(folder, sys.path)
        fresh = [(name, m) for name, m in sys.modules.copy().items() if name not in before]
        mine.update((name, module) for name, module in fresh if _is_from(folder, name, module))
        for name in _names_taken(known):
            if not _is_under_way(name):  # in the thread of an import that no one waits for any longer
                sys.modules.pop(name, None)
        sys.modules.update(hidden)


def _is_under_way(name: str) -> bool:
    return getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False) is True


def _path_without_folder(folder: str, path: Sequence[str]) -> list[str]:
    """Return an import path, which what was imported has changed, without the first entry of a folder."""
    left = list(path)
    if folder in left:
        left.remove(folder)
    return left


def _modules_in_the_way(folder: str, wanted: str, mine: Mapping[str, ModuleType]) -> dict[str, ModuleType]:
    """Return the modules that stand where one of this folder belongs.

    Each import of a plugin waits for it, and a process has thousands of modules: most are not looked at.
    """
    top = wanted.split(".", 1)[0]
    below = f"{top}."
    loaded = sys.modules.copy()  # other threads import meanwhile
    others = [item for other, one in _folders.copy().items() if other != folder for item in one.modules.copy().items()]
    named = [name for name in loaded if name == top or name.startswith(below)]
    named += [name for name, module in others if loaded.get(name) is module]
    hidden = {name: loaded[name] for name in named if name not in mine}
    hidden = {name: module for name, module in hidden.items() if not _is_from(folder, name, module)}
    return hidden | {name: loaded[name] for name, m in mine.items() if loaded.get(name, m) is not m}


def _look_anew(folder: str) -> None:
    """Let the next import see the files that a folder has now; those of the host are not listed again for it."""
    for path, finder in sys.path_importer_cache.copy().items():
        if path == folder or path.startswith(folder + os.sep):
            forget = getattr(finder, "invalidate_caches", None)
            if forget is None:
                sys.path_importer_cache.pop(path, None)
            else:
                forget()


def _names_taken(known: _ImportedFolder) -> list[str]:
    """Return the names under which the host could import something else."""
    as_of = tuple(sys.path), tuple(map(id, sys.meta_path))
    if known.theirs_as_of != as_of:
        known.theirs_as_of, known.theirs = as_of, {}
    mine, theirs = known.modules, known.theirs
    for top in {name.partition(".")[0] for name in mine} - theirs.keys():
        theirs[top] = _is_elsewhere(top, mine.get(top))
    return [name for name, m in mine.items() if theirs[name.partition(".")[0]] and sys.modules.get(name) is m]


def _is_elsewhere(top: str, module: ModuleType | None) -> bool:
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
    below = os.path.join(folder, "")  # noqa: PTH118 - of hundreds of folders, each time a plugin is closed
    for path in sys.path_importer_cache.copy():
        if path == folder or path.startswith(below):
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
