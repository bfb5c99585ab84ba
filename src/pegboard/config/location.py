"""Where configurations, and the files of clients, lie; imports nothing that reads them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pegboard.support import user_folders

NAME: Final = "pegboard.yaml"
"""How a configuration is called where it is not named."""
CLIENT_FILE: Final = ".mcp.json"
"""The file of a project in which clients have their servers: it is theirs, and counts where it is named (G12)."""
SQLITE: Final = "sqlite:///"
"""What the address of a store in a file begins with."""


def find(start: Path) -> Path | None:
    """Return the configuration of a folder."""
    path = start / NAME
    return path if path.is_file() else None


def users() -> Path | None:
    """Return the user's own configuration, if there is one: it counts in a folder that has none (G12)."""
    path = user_folders.configuration(os.environ) / NAME
    return path if path.is_file() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What decides where files lie: the current folder, the home folder, the system, variables.

    A value of its own, since a test of one system runs on another.
    """

    folder: Path = field(default_factory=Path.cwd)
    home: Path = field(default_factory=Path.home)
    system: str = sys.platform
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def settings(self) -> Path:
        """Return the folder of settings that programs share by convention (XDG)."""
        return Path(self.env.get("XDG_CONFIG_HOME") or self.home / ".config")

    @property
    def applications(self) -> Path:
        """Return where this system keeps the settings of applications."""
        if self.system == "darwin":
            return self.home / "Library" / "Application Support"
        if self.system == "win32":
            return Path(self.env.get("APPDATA") or self.home / "AppData" / "Roaming")
        return self.settings

    @property
    def configuration(self) -> Path:
        """Return the folder of our own files for this user."""
        return user_folders.configuration(self.env)

    @property
    def _goose_folder(self) -> Path:
        windows = self.applications / "Block" / "goose" / "config"
        return windows if self.system == "win32" else self.settings / "goose"

    def user_path(self, pattern: str) -> Path:
        """Return where a file of this user lies."""
        starts = {
            "~/": self.home,
            "{apps}/": self.applications,
            "{codex}/": Path(self.env.get("CODEX_HOME") or self.home / ".codex"),
            "{copilot}/": Path(self.env.get("COPILOT_HOME") or self.home / ".copilot"),
            "{opencode}/": self.settings / "opencode",
            "{goose}/": self._goose_folder,
            "{zed}/": self.applications / "Zed" if self.system == "win32" else self.settings / "zed",
        }
        start = next(start for start in starts if pattern.startswith(start))
        return starts[start] / pattern.removeprefix(start)
