"""What one process may reach, as the launcher takes it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from pegboard.errors import ToolUnavailableError

_LONGEST: Final = 120_000
"""Characters of one argument of a program; a longer policy is compressed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfinementPolicy:
    """What one process may reach: paths without links, each with what is below it.

    ``write`` can be read, changed and run, ``read`` read and run; the entries of ``list_only`` can be listed, nothing
    else. ``split_folders`` hold files of Pegboard's own: each of their other entries is granted separately, and nothing
    new can be made directly in them. ``refused_paths`` were asked for and are not granted. ``caches`` and ``temporary``
    are folders of the process's own, ``temporary`` for this one start. ``token`` is the file that tells the gateways of
    the user of each start with network.
    """

    write: tuple[str, ...]
    read: tuple[str, ...]
    list_only: tuple[str, ...]
    devices: tuple[str, ...]
    network: tuple[int, ...] | None
    split_folders: tuple[str, ...] = ()
    refused_paths: tuple[str, ...] = ()
    caches: str = ""
    temporary: str = ""
    token: str = ""

    def text(self) -> str:
        """Return the policy as the argument of the launcher; raises ``ToolUnavailableError`` where it is too long."""
        found = {
            "write": self.write,
            "read": self.read,
            "list_only": self.list_only,
            "devices": self.devices,
            "network": self.network,
            "token": self.token,
        }
        text = json.dumps(found)
        if len(text) <= _LONGEST:
            return text
        import binascii
        import zlib

        packed = f"z:{binascii.b2a_base64(zlib.compress(text.encode()), newline=False).decode()}"
        if len(packed) > _LONGEST:
            folders = ", ".join(self.split_folders or self.list_only)
            raise ToolUnavailableError(
                f"it cannot be confined: {folders} contains too much next to Pegboard's own files",
                hint="Name the folders that it needs under `confine: {write: [...]}`.",
            )
        return packed

    def writes(self, path: str) -> bool:
        """Return whether a path without links may be changed."""
        return _covers_path(self.write, path)

    def reads(self, path: str) -> bool:
        """Return whether a path without links may be read."""
        return _covers_path((*self.write, *self.read, *self.devices), path)


def _covers_path(granted: tuple[str, ...], path: str) -> bool:
    return any(path == each or path.startswith(f"{each.rstrip('/')}/") for each in granted)
