"""Which tools may destroy something that nobody can bring back: as they say, else as their names do."""

from __future__ import annotations

import re
from typing import Final

from pegboard.core.model.tools import Tool

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
