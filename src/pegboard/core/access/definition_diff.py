"""How one definition of a tool differs from another, as text that a person decides by (A4)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from typing import Final

from pegboard.core.model.tools import JsonObject
from pegboard.support.visible_text import UNSEEN, visible, without_long_runs

LIMIT: Final = 8_000
"""How many characters a diff has at most."""
_CONTEXT: Final = 3
_MOST_COMPARED: Final = 1_000
"""How many lines are compared one by one: the time grows with their square."""
_BLANKS: Final = re.compile(rf"(?!^)(?:\\[bfnrt]|\\u00[01].|\s|[{UNSEEN}]){{20,}}")
"""Many blanks and what no one sees, or control characters as JSON writes them: text may stand behind them. Indentation
is none of them."""
_PIECE: Final = re.compile(rf"{_BLANKS.pattern}|.{{0,79}}?(?:[.!?] |\\n)|.{{80,159}}? |.{{1,160}}")
"""A part of a long line: a sentence, or some words."""


def definition_diff(before: JsonObject, after: JsonObject) -> str:
    r"""Return a unified diff of two definitions as indented JSON with sorted keys; nothing where they are the same.

    Every hidden character is visible, no text of a definition begins a line, and what is cut is counted.

    >>> print(definition_diff({"title": "Add all."}, {"title": "Add\u200b all."}))
    @@
     {
    -  "title": "Add all."
    +  "title": "Add<U+200B> all."
     }
    """
    try:
        old, new = _lines(before), _lines(after)
    except RecursionError:
        return "The definitions are too deep to be shown."
    start = _count_shared(old, new)
    end = _count_shared(old[start:][::-1], new[start:][::-1])
    if max(len(old), len(new)) - start - end > _MOST_COMPARED:
        removed, added = old[start : len(old) - end], new[start : len(new) - end]
        return _cut_lines([*(f"-{line}" for line in removed), *(f"+{line}" for line in added)])
    low, high = max(start - _CONTEXT, 0), max(end - _CONTEXT, 0)
    found = unified_diff(old[low : len(old) - high], new[low : len(new) - high], n=_CONTEXT, lineterm="")
    return _cut_lines(["@@" if line.startswith("@@") else line for line in found][2:])


def _lines(definition: JsonObject) -> list[str]:
    whole = json.dumps(definition, indent=2, sort_keys=True, ensure_ascii=False)
    return [part for line in whole.split("\n") for part in _PIECE.findall(line)]


def _count_shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many lines two lists begin with together."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _cut_lines(lines: Sequence[str]) -> str:
    """Return lines as they can be seen; of too many the first and the last: text may stand at the end of many."""
    found = list(_lines_within(lines, LIMIT))
    if len(found) == len(lines):
        return "\n".join(found)
    first = list(_lines_within(lines, LIMIT // 2 - 40))
    last = [*_lines_within(lines[: len(first) - 1 : -1], LIMIT // 2)][::-1]
    return "\n".join([*first, f"… {len(lines) - len(first) - len(last):,} more lines …", *last])


def _lines_within(lines: Iterable[str], room: int) -> Iterator[str]:
    for line in (f"{line[:1]}{_visible_line(line[1:])}" for line in lines):
        room -= len(line) + 1
        if room < 0:
            return
        yield line


def _visible_line(line: str) -> str:
    text = line.lstrip(" ") or line
    blanks = _BLANKS.sub(lambda run: f"<{len(run[0])} characters of blanks>", text)
    return f"{line[: len(line) - len(text)]}{visible(without_long_runs(blanks))}"
