"""Which tools count as read-only, as destructive, or as destroying nothing (G6, A4)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pegboard.core.model.tools import Plugin, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedClaims:
    """What counts of what a server says: own names of the tools that only read, and of those that destroy nothing."""

    read_only: frozenset[str] = frozenset()
    harmless: frozenset[str] = frozenset()


def reads_only(plugin: Plugin, tool: Tool, counted: frozenset[str]) -> bool:
    """Return whether a tool may run where only reading is allowed (G6).

    Own plugins are believed. A server is believed with ``trust: annotations``, and only for the
    tools of which it said so when it was first seen, or which an operator has accepted since.
    """
    if not tool.read_only:
        return False
    return plugin.kind != "server" or (plugin.trusted and tool.name in counted)


VERBS: Final = frozenset(
    {
        "cancel", "clear", "delete", "destroy", "discard", "drop", "erase", "kill", "purge", "remove", "reset",
        "revoke", "rm", "rmdir", "terminate", "truncate", "uninstall", "unlink", "wipe",
    }
)  # fmt: skip
"""With one of these begins the name of a tool that destroys, where it says nothing of it."""
_FIRST: Final = r"[^A-Za-z0-9]*([A-Z]+(?![a-z])|[A-Za-z][a-z]*)"


def is_destructive(tool: Tool) -> bool:
    """Return whether a tool counts as destructive.

    It says so (``destructiveHint: true``); or it says nothing, not that it only reads either, and its name begins with
    a verb that destroys.

    >>> [is_destructive(Tool(plugin="git", name=name)) for name in ("delete_branch", "deleteTag", "log", "resettle")]
    [True, True, False, False]
    """
    stated = tool.annotations.get("destructiveHint")
    if isinstance(stated, bool):
        return stated
    first = re.match(_FIRST, tool.name)  # compiled with the first use: no start needs it
    return not tool.read_only and first is not None and first[1].lower() in VERBS
