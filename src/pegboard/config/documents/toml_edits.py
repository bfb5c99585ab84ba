"""Change the tables of one name in a TOML text, and leave every other character as it is."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pegboard.config.documents.document import is_list, is_mapping

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_LINE: Final = re.compile(r"[^\n]*\n?")
_PART: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}\n]', re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Hold where a table stands: from its header to the end of its last value."""

    path: tuple[str, ...]
    start: int
    end: int


def tables(text: str) -> Iterator[Table]:
    """Yield the tables of a text, which is valid TOML; what stands before the first has no path."""
    path: tuple[str, ...] = ()
    start = end = at = 0
    while at < len(text):
        found = _LINE.match(text, at)
        assert found is not None
        line = found[0].strip()
        if line.startswith("["):
            if end > start or path:
                yield Table(path=path, start=start, end=end)
            path, start, end = _path(line), at, found.end()
            at = end
        elif line and not line.startswith("#"):
            at = end = _end(text, at)
        else:
            at = found.end()
    if end > start or path:
        yield Table(path=path, start=start, end=end)


def _path(header: str) -> tuple[str, ...]:
    value: Any = tomllib.loads(header)
    keys: list[str] = []
    while value:
        if is_list(value):
            value = value[0]
        elif is_mapping(value):
            key, value = next(iter(value.items()))
            keys.append(key)
    return tuple(keys)


def _end(text: str, at: int) -> int:
    """Return the end of the lines of one key and value."""
    depth = 0
    for found in _PART.finditer(text, at):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if found[0] == "\n" and depth == 0:
            return found.end()
    return len(text)


def written(text: str, path: Sequence[str]) -> str:
    """Return the tables at a path and below it as they are written."""
    parts = [text[table.start : table.end] for table in tables(text) if _below(table, path)]
    return "\n".join(part.rstrip() + "\n" for part in parts)


def replaced(text: str, path: Sequence[str], instead: str) -> str:
    """Return the text with other tables instead of those at a path and below it; else added at the end."""
    gone = [table for table in tables(text) if _below(table, path)]
    if not gone:
        return (text.rstrip("\n") + "\n\n" if text.strip() else "") + instead
    parts: list[str] = []
    at = 0
    for number, table in enumerate(gone):
        parts.append(text[at : table.start])
        end = table.end
        if number == 0:
            parts.append(instead)
        else:
            end += len(text[end:]) - len(text[end:].lstrip("\n"))
        at = end
    rest = text[at:]
    return "".join(parts) + rest if rest.strip() else "".join(parts).rstrip("\n") + "\n"


def _below(table: Table, path: Sequence[str]) -> bool:
    return table.path[: len(path)] == tuple(path)


def rendered(path: Sequence[str], table: Mapping[str, Any]) -> str:
    """Return a table as TOML.

    >>> print(rendered(("a", "b c"), {"command": "x", "args": ["y"], "env": {"K": "v"}}), end="")
    [a."b c"]
    command = "x"
    args = ["y"]
    env = { K = "v" }
    """
    lines = [f"{_key(key)} = {_value(value)}" for key, value in table.items()]
    return "\n".join((f"[{'.'.join(map(_key, path))}]", *lines)) + "\n"


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _value(value: Any) -> str:
    if is_mapping(value):
        inner = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items())
        return f"{{ {inner} }}"
    if is_list(value):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False)
