"""A board in the daemon: its servers may be those of other boards, and it has no plugins in code (G12)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.assembly import Pegboard
from pegboard.core.model.masking import Masker
from pegboard.core.model.specs import ServerSpec
from pegboard.daemon.open_board import CodePluginsError, open_board
from pegboard.ports import Store
from pegboard.sources.mcp.source import McpSource

if TYPE_CHECKING:
    from pegboard.config.schema.configuration import Configuration


class DaemonBoard(Pegboard):
    """The board of the ``OpenBoard`` that the running task works for."""

    @classmethod
    def _servers(cls, masker: Masker, *, fast_path: bool, store: Store, folder: Path | None) -> McpSource:
        kept = open_board()
        return McpSource(
            mask=masker.text,
            learn=masker.learn,
            fast_path=fast_path,
            store=store,
            folder=folder,
            shared=None if kept is None else kept.processes,
        )

    def _require_here(self, taken: Configuration) -> None:
        kept = open_board()
        if kept is None or kept.runs_code or all(isinstance(spec, ServerSpec) for spec in taken.specs.values()):
            return
        kept.move(taken.path)
        raise CodePluginsError(kept.key)

    async def take_edits(self) -> None:
        """Reload, as a board does; for an edit that adds plugins in code its clients go elsewhere."""
        with suppress(CodePluginsError):
            await super().take_edits()
