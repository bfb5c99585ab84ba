"""Logins to servers over HTTP: found by metadata, completed by a person or the gateway, renewed by one process."""

from typing import TYPE_CHECKING

from pegboard.support.lazy_modules import lazy_modules

if TYPE_CHECKING:
    from pegboard.sources.mcp.login import logins, token_requests

__all__ = ["logins", "token_requests"]

__getattr__ = lazy_modules(__name__, *__all__)
