"""Resources, prompts and completions of servers, for one session. For the board and the gateway."""

from typing import TYPE_CHECKING

from pegboard.support.lazy_modules import lazy_modules

if TYPE_CHECKING:
    from pegboard.board.resources import extensions, reads

__all__ = ["extensions", "reads"]

__getattr__ = lazy_modules(__name__, *__all__)
