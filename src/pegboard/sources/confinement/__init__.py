"""Confine the process of a plugin (A7): what it may reach, and how it is started so.

Sources that start processes use this: :func:`policy_for` says what one may reach, :func:`confined_command` what is
started in its place, :func:`available` why this system cannot. ``launcher.py`` is a program of its own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.sources.confinement.command import (
        available,
        caches_of,
        confined_command,
        given_files,
        line_for,
        made_temporary,
        named_paths,
        points_to_socket,
        policy_for,
        removed,
    )
    from pegboard.sources.confinement.disk import SYSTEM
    from pegboard.sources.confinement.kept_refusals import KeptRefusals
    from pegboard.sources.confinement.plan import ConfinedPlugin, plan
    from pegboard.sources.confinement.policy import ConfinementPolicy
    from pegboard.sources.confinement.refusals import RefusalReader, refusal_lines, with_refusals
    from pegboard.sources.confinement.runner_packages import InstalledProgram, found_program, installed_program

__all__ = [
    "SYSTEM",
    "ConfinedPlugin",
    "ConfinementPolicy",
    "InstalledProgram",
    "KeptRefusals",
    "RefusalReader",
    "available",
    "caches_of",
    "confined_command",
    "found_program",
    "given_files",
    "installed_program",
    "line_for",
    "made_temporary",
    "named_paths",
    "plan",
    "points_to_socket",
    "policy_for",
    "refusal_lines",
    "removed",
    "with_refusals",
]

_HOMES = {
    "ConfinedPlugin": "plan", "ConfinementPolicy": "policy", "InstalledProgram": "runner_packages",
    "KeptRefusals": "kept_refusals", "RefusalReader": "refusals", "SYSTEM": "disk", "available": "command",
    "caches_of": "command", "confined_command": "command", "given_files": "command", "found_program": "runner_packages",
    "installed_program": "runner_packages", "line_for": "command", "made_temporary": "command",
    "named_paths": "command", "plan": "plan", "points_to_socket": "command", "policy_for": "command",
    "refusal_lines": "refusals", "removed": "command", "with_refusals": "refusals",
}  # fmt: skip


def __getattr__(name: str) -> object:
    """Import what is asked for: most starts confine nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
