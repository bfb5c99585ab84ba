"""One request to a server: sending it, its second try, the questions before its answer."""

from typing import TYPE_CHECKING

from pegboard.support.lazy_modules import lazy_modules

if TYPE_CHECKING:
    from pegboard.sources.mcp.requests import retry, send

__all__ = ["retry", "send"]

__getattr__ = lazy_modules(__name__, *__all__)
