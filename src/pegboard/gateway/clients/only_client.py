"""The only client of a process, for the sources whose servers ask outside of any call (G9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pegboard.ports import AskingSource

if TYPE_CHECKING:
    from pegboard.gateway.protocol.board_port import BoardPort


def asking_sources(board: BoardPort) -> Iterator[AskingSource]:
    """Yield the sources whose servers may ask."""
    yield from (source for source in board.services.loader.sources if isinstance(source, AskingSource))
