"""Which servers are packages that are fetched when they start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final

from pegboard.config.documents.document import is_list

FETCHED: Final = (
    *(("npx",), ("npm", "exec"), ("npm", "x"), ("pnpx",), ("pnpm", "dlx"), ("yarn", "dlx"), ("bunx",), ("bun", "x")),
    *(("uvx",), ("uv", "tool", "run"), ("pipx", "run")),
)
"""What runs whatever a registry of packages has at the time."""


def is_fetched(entry: Mapping[str, Any]) -> bool:
    """Return whether a server is a package that is fetched when it is started."""
    command, args = entry.get("command"), entry.get("args")
    if not isinstance(command, str):
        return False
    program = PurePath(command).name.casefold()
    words = (program.removesuffix(".exe").removesuffix(".cmd"), *(args if is_list(args) else ()))
    return any(words[: len(start)] == start for start in FETCHED)
