"""What only the thread that made it may use, as a connection of sqlite3: its functions run in that one thread.

Every other object has its blocking functions run in any thread, beside each other.
"""

from __future__ import annotations

import inspect
import sys
import threading
import types
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar, cast
from weakref import WeakKeyDictionary, finalize, ref

from pegboard.support.threads import KeptThread, keep_this_thread, run_in_thread

T = TypeVar("T")
_MOST: Final = 200
"""So many of the values that an object holds are looked at."""
_DEEPEST: Final = 4
_BOUND_PACKAGES: Final = ("playwright.sync_api",)
"""Packages of which every object is bound to its thread."""


class ObjectThreads:
    """The threads in which the blocking functions of one object run: any, or the one that it is bound to.

    ``held_by`` returns the object, a module, or the functions that a factory returned; None once it is gone. What its
    module is bound to, of which ``module`` has the threads, it is bound to as well.
    """

    __slots__ = ("_held_by", "_kept", "_module", "_seen")

    def __init__(self, held_by: Callable[[], object] = lambda: None, *, module: ObjectThreads | None = None) -> None:
        self._held_by = held_by
        self._module = module
        self._kept: KeptThread | None = None
        self._seen: tuple[int, ...] | None = None

    @property
    def kept(self) -> KeptThread | None:
        """Return the one thread in which its functions run, or None."""
        return self._kept if self._kept is not None or self._module is None else self._module.kept

    def look(self) -> None:
        """Keep the thread that this runs in, if the object holds by now what only this thread may use."""
        owner = self._held_by()
        if owner is None or self._kept is not None:
            return
        try:
            seen = _identities(owner)
            if seen != self._seen:
                self._seen = seen
                if _holds_bound(owner):
                    self._kept = keep_this_thread()
        except Exception:  # whatever attributes of user code raise when they are looked at: it is bound to nothing
            return

    async def run(self, function: Callable[..., T], /, *args: Any) -> T:
        """Run a blocking function in the thread that the object is bound to, else in any."""
        kept = self.kept
        return await (run_in_thread(self._run_watched, function, *args) if kept is None else kept.run(function, *args))

    def end(self) -> None:
        """End the thread of the object; that of its module stays."""
        if self._kept is not None:
            self._kept.end()

    def _run_watched(self, function: Callable[..., T], /, *args: Any) -> T:
        try:
            return function(*args)
        finally:
            self.look()
            if self._module is not None:
                self._module.look()


_of_modules: WeakKeyDictionary[types.ModuleType, ObjectThreads] = WeakKeyDictionary()


def module_threads(target: object) -> ObjectThreads:
    """Return the threads of a module, or of the module that a function, a class or an object is of."""
    name = getattr(target, "__module__", None)
    module = (
        target if isinstance(target, types.ModuleType) else sys.modules.get(name) if isinstance(name, str) else None
    )
    if module is None:
        return ObjectThreads()
    threads = _of_modules.get(module)
    if threads is None:
        threads = _of_modules[module] = ObjectThreads(ref(module))
        finalize(module, threads.end).atexit = False
    return threads


def _identities(owner: object) -> tuple[int, ...]:
    """Return what differs once something else is held: in a module, once a name is added, or is None no more."""
    if isinstance(owner, types.ModuleType):
        values = list(vars(owner).values())
        return len(values), values.count(None)
    inner = _parts_of(owner)
    if isinstance(owner, list | tuple | dict):
        inner = (one for function in inner for one in _parts_of(function))
    return tuple(map(id, islice(inner, _MOST)))


def _holds_bound(owner: object) -> bool:
    """Return whether something within an object works in this thread and in no other."""
    pending, seen = [(owner, 0)], {id(owner)}
    while pending and len(seen) < _MOST:
        value, depth = pending.pop()
        if _is_bound(value):
            return True
        if depth < _DEEPEST:
            for inner in islice(_parts_of(value), _MOST):
                if id(inner) not in seen:
                    seen.add(id(inner))
                    pending.append((inner, depth + 1 if value is not owner else 1))
    return False


def _parts_of(value: object) -> Iterable[object]:
    """Return what an object, a module, a collection or a function holds."""
    match value:
        case str() | bytes() | int() | float() | None | type():
            return ()
        case types.ModuleType():
            own = (one for one in list(vars(value).values()) if not isinstance(one, types.ModuleType | type))
            return (one for one in own if not inspect.isroutine(one))
        case dict():
            return list(cast("dict[object, object]", value).values())
        case list() | tuple() | set() | frozenset():
            return list(cast("Iterable[object]", value))
        case types.MethodType():
            return (value.__self__,)
        case types.FunctionType():
            return (one.cell_contents for one in value.__closure__ or () if _is_filled(one))
        case partial():
            return (value.func, *value.args, *value.keywords.values())
        case _:
            slots = (getattr(value, name, None) for name in getattr(type(value), "__slots__", ()))
            return (*list(getattr(value, "__dict__", {}).values()), *slots)


def _is_filled(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _is_bound(value: object) -> bool:
    if type(value).__module__.startswith(_BOUND_PACKAGES):
        return True
    sqlite: Any = sys.modules.get("sqlite3")
    if sqlite is None:
        return False
    connection = value.connection if isinstance(value, sqlite.Cursor) else value
    return isinstance(connection, sqlite.Connection) and _refuses_others(connection)


def _refuses_others(connection: Any) -> bool:
    """Return whether a connection of sqlite3 works in this thread, and another thread may not use it."""
    works: list[bool] = []

    def ask() -> None:
        try:
            connection.cursor()
        except Exception:  # closed, or of another thread
            works.append(False)
        else:
            works.append(True)

    ask()
    other = threading.Thread(target=ask, name="pegboard-look", daemon=True)
    other.start()
    other.join()
    return works == [True, False]
