"""Which servers are packages that are fetched when they start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from pegboard.config.documents.document import is_list

FETCHED: Final = (
    *(("npx",), ("npm", "exec"), ("npm", "x"), ("pnpx",), ("pnpm", "dlx"), ("yarn", "dlx"), ("bunx",), ("bun", "x")),
    *(("uvx",), ("uv", "tool", "run"), ("pipx", "run")),
)
"""What runs whatever a registry of packages has at the time."""


CONTAINERS: Final = (("docker", "run"), ("podman", "run"), ("nerdctl", "run"))
"""What fetches an image first where it has none."""


def may_be_installed_first(command: str | None, args: Sequence[str]) -> bool:
    """Return whether the start of a server may have to fetch it first: a package, or an image."""
    entry = {"command": command, "args": list(args)}
    return is_fetched(entry) or _program_beginning_with(entry, CONTAINERS) != ""


def is_fetched(entry: Mapping[str, Any]) -> bool:
    """Return whether a server is a package that is fetched when it is started."""
    return fetched_by(entry) != ""


def fetched_by(entry: Mapping[str, Any]) -> str:
    """Return the program that fetches a server when it is started, or nothing."""
    return _program_beginning_with(entry, FETCHED)


def _program_beginning_with(entry: Mapping[str, Any], starts: Iterable[tuple[str, ...]]) -> str:
    """Return the program of a server whose command begins with one of these, or nothing."""
    command, args = entry.get("command"), entry.get("args")
    if not isinstance(command, str):
        return ""
    program = PurePath(command).name.casefold().removesuffix(".exe").removesuffix(".cmd")
    words = (program, *(args if is_list(args) else ()))
    return program if any(words[: len(start)] == start for start in starts) else ""
