"""Where the configuration of a folder lies; imports nothing that reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

NAMES: Final = ("pegboard.yaml", ".mcp.json")


def find(start: Path) -> Path | None:
    """Return the configuration of a folder: ``pegboard.yaml``, else ``.mcp.json``."""
    return next((path for name in NAMES if (path := start / name).is_file()), None)
