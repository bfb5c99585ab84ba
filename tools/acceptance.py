"""Accept the configuration of a folder as its user would, for commands that find it there."""

from __future__ import annotations

from pathlib import Path

from pegboard.config.acceptance import accept_text, require_accepted
from pegboard.config.location import find
from pegboard.errors import NotAcceptedError


def accept_found(folder: Path | None = None) -> None:
    """Accept the configuration of a folder, by default the current one, where its user has not."""
    found = find(folder or Path.cwd())
    if found is not None:
        try:
            require_accepted(found)
        except NotAcceptedError:
            accept_text(found)
