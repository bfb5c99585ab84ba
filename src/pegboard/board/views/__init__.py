"""What is read of a session and changes nothing: surface, wire list, search, explanation. For sessions only."""

from typing import TYPE_CHECKING

from pegboard.support.lazy_modules import lazy_modules

if TYPE_CHECKING:
    from pegboard.board.views import explain, list_limit, run_costs

__all__ = ["explain", "list_limit", "run_costs"]

__getattr__ = lazy_modules(__name__, *__all__)
