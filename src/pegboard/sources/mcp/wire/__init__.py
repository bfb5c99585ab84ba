"""What passes over a connection, seen one message at a time. Imports no other folder of the source."""

from typing import TYPE_CHECKING

from pegboard.support.lazy_modules import lazy_modules

if TYPE_CHECKING:
    from pegboard.sources.mcp.wire import open_connection, request_outcomes

__all__ = ["open_connection", "request_outcomes"]

__getattr__ = lazy_modules(__name__, *__all__)
