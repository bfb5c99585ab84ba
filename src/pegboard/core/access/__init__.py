"""May it? Grants and denials, switches, guards and lookup for one agent. Imports `model` only."""

from typing import TYPE_CHECKING

from pegboard.support.lazy_modules import lazy_modules

if TYPE_CHECKING:
    from pegboard.core.access import named_paths

__all__ = ["named_paths"]

__getattr__ = lazy_modules(__name__, *__all__)
