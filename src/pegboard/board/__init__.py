"""Load state, decide, save, act, record: sessions over the engine, with no rules of their own."""

from pegboard.board.board import Board, Permissions
from pegboard.board.session import Session

__all__ = ["Board", "Permissions", "Session"]
