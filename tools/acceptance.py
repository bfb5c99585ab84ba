"""Accept the configurations of a folder as its user would, for commands that find them there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pegboard.config.acceptance import accept_text, require_accepted
from pegboard.config.client_files.known import every_spot
from pegboard.config.location import Machine, find
from pegboard.errors import NotAcceptedError


def accept_found(folder: Path | None = None) -> None:
    """Accept the configuration and the clients' files of a folder, by default the current one, where its user has not.

    A test whose client's file has changed accepts it again, too.
    """
    for path in _found(folder or Path.cwd()):
        try:
            require_accepted(path, exactly=path.name not in ("pegboard.yaml", ".mcp.json"))
        except NotAcceptedError:
            accept_text(path)


def _found(folder: Path) -> Iterator[Path]:
    found = find(folder)
    if found is not None:
        yield found
    for spot in every_spot(Machine(folder=folder)):
        if spot.scope == "project" and spot.path.is_file() and spot.client.name != "pegboard":
            yield spot.path
