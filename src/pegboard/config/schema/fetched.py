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
    return fetched_by(entry) != ""


def fetched_by(entry: Mapping[str, Any]) -> str:
    """Return the program that fetches a server when it is started, or nothing."""
    command, args = entry.get("command"), entry.get("args")
    if not isinstance(command, str):
        return ""
    program = PurePath(command).name.casefold().removesuffix(".exe").removesuffix(".cmd")
    words = (program, *(args if is_list(args) else ()))
    return program if any(words[: len(start)] == start for start in FETCHED) else ""
