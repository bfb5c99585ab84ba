"""Confine the process of a plugin (A7): what it may reach, and how it is started so.

Sources that start processes use this: :func:`policy_for` says what one may reach, :func:`confined_command` what is
started in its place, :func:`available` why this system cannot. ``launcher.py`` is a program of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pegboard.support.lazy_modules import lazy_names

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
        remove_folder,
    )
    from pegboard.sources.confinement.disk import SYSTEM
    from pegboard.sources.confinement.kept_refusals import KeptRefusals
    from pegboard.sources.confinement.policy import ConfinementPolicy
    from pegboard.sources.confinement.refusals import RefusalReader, refusal_lines, with_refusals
    from pegboard.sources.confinement.runner_packages import InstalledProgram, found_program, installed_program

__all__ = [
    "SYSTEM", "ConfinementPolicy", "InstalledProgram", "KeptRefusals", "RefusalReader", "available",
    "caches_of", "confined_command", "found_program", "given_files", "installed_program", "line_for", "made_temporary",
    "named_paths", "points_to_socket", "policy_for", "refusal_lines", "remove_folder", "with_refusals",
]  # fmt: skip

# Most starts confine nothing.
_LATE = {
    "command": "available caches_of confined_command given_files line_for made_temporary named_paths"
    " points_to_socket policy_for remove_folder",
    "disk": "SYSTEM",
    "kept_refusals": "KeptRefusals",
    "policy": "ConfinementPolicy",
    "refusals": "RefusalReader refusal_lines with_refusals",
    "runner_packages": "InstalledProgram found_program installed_program",
}
if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__, _LATE)
