"""Which files are Pegboard's own, for the guard on named paths (P10)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pegboard.core.access.named_paths import OwnKind
    from pegboard.core.model.tools import JsonObject


class OwnFiles(Protocol):
    """The files of Pegboard's own under one configuration."""

    def entries(self, start: str, folders: Sequence[str]) -> tuple[frozenset[str], ...] | None:
        """Return the names that a text may not be that is seen at once to name none of them.

        Most calls name no file: this is what the guard costs them, a look at each folder.

        Args:
            start: The folder that relative paths start from.
            folders: Paths that they may start from as well, where these are folders.

        Returns:
            What is in the folders, and the names of Pegboard's own files, in lower case; None where that is not
            known, or all in a folder is Pegboard's own: each text has to be looked at then.
        """
        ...

    def named(
        self, tool: str, arguments: JsonObject, folders: Iterable[str], *, reading: bool
    ) -> tuple[str, OwnKind] | None:
        """Return which argument of a call names one, and what that file is for.

        Args:
            tool: The name of the tool.
            arguments: What it is called with.
            folders: Those that a relative path may start from.
            reading: Whether the tool only reads; then only what nobody may read counts.

        Returns:
            The argument and what the file is for, or None where none names any.
        """
        ...
