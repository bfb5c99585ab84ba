"""Which files are Pegboard's own, for the guard on named paths (P10)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pegboard.core.access.named_paths import OwnKind
    from pegboard.core.model.tools import JsonObject


class OwnFiles(Protocol):
    """The files of Pegboard's own under one configuration."""

    @property
    def names(self) -> frozenset[str]:
        """Return the names that a text may not be that is seen at once to name none of them, in lower case."""
        ...

    @property
    def server_folder(self) -> str:
        """Return the folder in which servers without one of their own start: relative paths are seen from there."""
        ...

    def has_all_of(self, folder: str) -> bool:
        """Return whether all in a folder, a path without links, may be Pegboard's own: each text is looked at then."""
        ...

    def named(
        self, tool: str, arguments: JsonObject, folders: Iterable[str], *, reading: bool
    ) -> tuple[str, OwnKind] | None:
        """Return which argument of a call names one, and what that file is for.

        Args:
            tool: The name of the tool.
            arguments: What it is called with.
            folders: Those that a relative path may start from.
            reading: Whether the tool only reads; then only what no one may read counts.

        Returns:
            The argument and what the file is for, or None where none names any.
        """
        ...
