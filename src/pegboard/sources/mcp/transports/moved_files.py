"""Files that a server keeps in its own package, where what is confined cannot write: they get a data folder (A7)."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pegboard.core.model.specs import ServerSpec
from pegboard.sources.mcp.transports.npx_cache import installation_folder

log = logging.getLogger("pegboard.sources.mcp")
_KEEPING: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "@modelcontextprotocol/server-memory": (
        "MEMORY_FILE_PATH",
        "memory.jsonl",
        ("dist/memory.jsonl", "dist/memory.json"),
    ),
}
"""By package of npm the variable that says where its file lies, the name of that, and where it lies in the package."""


def moved_file(spec: ServerSpec, package: str, env: Mapping[str, str], data: Path) -> dict[str, str]:
    """Return the variables that keep the file of a server in its data folder, where it is; nothing for most.

    What npx has kept for it until now is copied there once, which is said.

    Args:
        spec: the server.
        package: the package that it is installed from.
        env: the environment in which npx ran it.
        data: the folder; it is made.
    """
    if package not in _KEEPING or _KEEPING[package][0] in spec.env:
        return {}
    variable, name, before = _KEEPING[package]
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = data / name
    if not file.exists() and (old := _kept_by_npx(spec.command, spec.args, env, package, before)) is not None:
        shutil.copyfile(old, file)
        log.warning(
            "server %r is confined and cannot write its package: its data in %s was copied to %s and is used there",
            spec.name,
            old,
            file,
        )
    return {variable: str(file)}


def _kept_by_npx(
    command: str | None, args: Sequence[str], env: Mapping[str, str], package: str, files: Sequence[str]
) -> Path | None:
    folder = installation_folder(command, args, env)
    if folder is None:
        return None
    found = (folder / "node_modules" / package / file for file in files)
    return next((file for file in found if file.is_file()), None)
