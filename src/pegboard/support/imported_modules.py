"""What modules of Python beside each other import, read from their text."""

from __future__ import annotations

import ast
import glob
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

_MOST_MODULES: Final = 500
_ONE_AT_A_TIME: Final = threading.Lock()
"""CPython 3.11 counts the depth of trees in one place for all threads, and fails where two of them build one."""
_COMPILED: Final = frozenset({".py", ".pyi", ".so", ".pyd"})


def with_imports(folder: str, names: Iterable[str]) -> list[str]:
    """Return modules by their first names, and what those in a folder import: another file could take its place."""
    found: dict[str, None] = {}
    waiting = list(dict.fromkeys(names))
    while waiting and len(found) < _MOST_MODULES:
        name = waiting.pop()
        if name in found:
            continue
        found[name] = None
        for file in _files_of(Path(folder, name)):
            waiting += [each for each in _imports(file) if each not in found]
    return list(found)


def own_files(folder: str, names: Iterable[str]) -> Iterator[str]:
    """Yield the files of modules in a folder and of what these import there; of a package its folder.

    A folder without any code in it is none of them, whatever it is named.
    """
    for name in with_imports(folder, names):
        place = Path(folder, name)
        if next(place.rglob("*.py"), None) is not None if place.is_dir() else False:
            yield str(place)
        yield from (str(each) for each in Path(folder).glob(f"{glob.escape(name)}.*") if each.suffix in _COMPILED)


def _files_of(place: Path) -> Iterator[Path]:
    yield place.with_suffix(".py")
    yield from sorted(place.rglob("*.py"))[:_MOST_MODULES] if place.is_dir() else ()


def _imports(file: Path) -> Iterator[str]:
    """Yield the first names of the modules that a file imports; none of one that cannot be read."""
    try:
        text = file.read_bytes()
        with _ONE_AT_A_TIME:
            tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
