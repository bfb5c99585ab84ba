"""The texts that a loop adds to a history, each in a tag by which a later process knows it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from pegboard.core.model.tools import Tool
from pegboard.core.surface.definitions import definitions
from pegboard.wire.provider_forms import HistoryMark

_BEGINS, _ENDS = "<tools>\n", "\n</tools>"
_TOOL = '{"name":'
_THROUGH = "Can be called through call_tool:"


def tag_note(text: str) -> str:
    """Return a note as it is in a history."""
    return f"{_BEGINS}{text}{_ENDS}"


def defined_in_text(tools: Iterable[Tool]) -> str:
    """Return tools for a model that calls them through ``call_tool``, one line each."""
    lines = [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in definitions(tools)]
    return "\n".join((_THROUGH, *lines)) if lines else ""


def note_marks(text: str) -> Iterator[HistoryMark]:
    """Yield what a text stands for: a note, and the tools that it defines; nothing of a user's own text."""
    if not (text.startswith(_BEGINS) and text.endswith(_ENDS)):
        return
    yield HistoryMark(kind="note", value=text[len(_BEGINS) : -len(_ENDS)])
    for line in text.splitlines():
        if line.startswith(_TOOL):
            found = json.loads(line)
            yield HistoryMark(kind="defined", value=str(found["name"]), definition=found)


def is_note(text: str) -> bool:
    """Return whether a text is a note."""
    return next(note_marks(text), None) is not None
