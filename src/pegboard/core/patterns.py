"""Patterns over plugin names (L2)."""

from __future__ import annotations

from collections.abc import Iterable


def matches(pattern: str, name: str) -> bool:
    """Return whether a pattern names this plugin: exact, ``prefix*`` or ``*``; case is ignored (L2).

    >>> matches("docker*", "Docker-compose"), matches("git", "github"), matches("*", "any")
    (True, False, True)
    """
    pattern, name = pattern.casefold(), name.casefold()
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def matches_any(patterns: Iterable[str], name: str) -> str | None:
    """Return the first pattern that names this plugin."""
    return next((pattern for pattern in patterns if matches(pattern, name)), None)
