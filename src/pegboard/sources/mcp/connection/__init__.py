"""One connection to a server: started once, shared, started again."""

from typing import TYPE_CHECKING

from pegboard.support.lazy_modules import lazy_modules

if TYPE_CHECKING:
    from pegboard.sources.mcp.connection import failure_reasons, open_client

__all__ = ["failure_reasons", "open_client"]

__getattr__ = lazy_modules(__name__, *__all__)
