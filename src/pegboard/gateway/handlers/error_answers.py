"""Errors as a client receives them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from mcp.shared.exceptions import MCPError

from pegboard.errors import PegboardError, UpstreamError
from pegboard.support.mcp_constants import INTERNAL_ERROR, INVALID_PARAMS

if TYPE_CHECKING:
    from pegboard.core.model.masking import Masker

_RESOURCE_NOT_FOUND: Final = -32002
"""The code for an unknown resource in the handshake era."""

_logger = logging.getLogger("mcp.pegboard")


def client_error(error: Exception, method: str, masker: Masker) -> MCPError:
    """Return the error that a client receives for any failure; one that nobody foresaw is logged."""
    match error:
        case MCPError():
            return error
        case PegboardError():
            return MCPError(INTERNAL_ERROR, masker.text(str(error)), {"code": error.code})
        case _:
            _logger.error("%s failed", method, exc_info=error)
            return MCPError(INTERNAL_ERROR, f"Pegboard failed here: {type(error).__name__}.")


def server_error(error: Mapping[str, Any], masker: Masker) -> MCPError:
    """Return the JSON-RPC error of a server as the server gave it, without secrets."""
    masked = masker.known(dict(error))
    return MCPError(masked["code"], masked["message"], masked["data"])


def failed_upstream(error: UpstreamError, masker: Masker) -> Exception:
    """Return the JSON-RPC error of a failed request to a server, where the server gave one, else the failure."""
    return error if error.answer is None else server_error(error.answer, masker)


def unknown_resource(uri: str, masker: Masker, *, modern: bool) -> MCPError:
    """Return the error for a resource that there is not, or not for this agent (P9)."""
    masked = masker.text(uri)
    code = INVALID_PARAMS if modern else _RESOURCE_NOT_FOUND
    return MCPError(code, f"Unknown resource: {masked}", {"uri": masked})
