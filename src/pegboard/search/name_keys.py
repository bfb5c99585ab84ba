"""Names: what their spellings have in common, and the only one that begins like a text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from pegboard.core.model.tools import Tool
from pegboard.core.surface.searchable import Group
from pegboard.search.analysis.stemming import singular
from pegboard.search.analysis.words import words

LONGEST: Final = 150
"""A longer text is no name."""
SHORTEST_BEGINNING: Final = 4
_ONE_WORD: Final = re.compile(r"[\w./-]+")


class RowNames:
    """The names of all rows, for the only one that begins so; read ahead, or when somebody asks for the first time."""

    def __init__(self, documents: Sequence[Tool | Group]) -> None:
        self._documents = documents

    def read(self) -> None:
        """Read the names now."""
        _ = self._joined

    def beginning(self, text: str) -> list[int]:
        """Return the only row whose name begins with a text that is one word; nothing where there are more."""
        if len(text) < SHORTEST_BEGINNING or not _ONE_WORD.fullmatch(text):
            return []
        joined, starts = self._joined
        sought = f"\n{text.lower()}"
        rows: set[int] = set()
        place = joined.find(sought)
        while place >= 0 and len(rows) < 2:
            rows.add(bisect_right(starts, place) - 1)
            place = joined.find(sought, place + 1)
        return list(rows) if len(rows) == 1 else []

    @cached_property
    def _joined(self) -> tuple[str, list[int]]:
        """Return all names in lower case, each behind a line break, and where those of each row start."""
        starts: list[int] = []
        lines: list[str] = []
        length = 0
        for document in self._documents:
            names = (document.name, document.wire) if isinstance(document, Tool) else (document.name,)
            line = "".join(f"\n{name.lower()}" for name in dict.fromkeys(names) if name)
            starts.append(length)
            lines.append(line)
            length += len(line)
        return "".join(lines), starts


def spelled(document: Tool | Group, text: str) -> bool:
    """Return whether a text is the name of a tool or group as it is spelled."""
    names = (document.name, document.wire, document.id) if isinstance(document, Tool) else (document.name,)
    return text in names


def name_key(parts: Sequence[str]) -> int:
    """Return the key of a name, which its spellings share: case, separators, the plural; 0 of what has no word."""
    key = " ".join(singular(word) for part in parts for word in words(part))
    return hash(key) if key else 0


def name_keys(document: Tool | Group) -> tuple[int, int]:
    """Return the keys under which a document is found by name: its own name's, and that with its plugin's."""
    own = name_key((document.name,))
    return own, name_key((document.plugin, document.name)) if isinstance(document, Tool) else own
