"""What certificates are trusted, read once. Import late."""

from __future__ import annotations

import os
import ssl
from functools import cache
from typing import Any

import httpx2

from pegboard.errors import ToolUnavailableError

_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def tls_for(url: str) -> Any:
    """Return what is trusted at an address; over http no authority, since no certificate is asked for."""
    return tls() if url.lower().startswith("https:") else _no_authority()


@cache
def tls() -> Any:
    """Return what is trusted, read once; raises ``ToolUnavailableError`` where that cannot be read."""
    try:
        return httpx2.create_ssl_context()
    except (OSError, ValueError) as error:
        named = " and ".join(f"{name} names '{os.environ[name]}'" for name in _VARIABLES if os.environ.get(name))
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        hint = "Correct or unset that variable." if named else "Install the certificates of this system."
        reason = f"{named} ({why})" if named else why
        raise ToolUnavailableError(f"the certificates that are trusted cannot be read: {reason}", hint=hint) from None


@cache
def _no_authority() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
