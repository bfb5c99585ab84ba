"""What certificates are trusted, read once. Import late."""

from __future__ import annotations

import os
from functools import cache
from typing import Any, Final

import httpx2

from pegboard.errors import ToolUnavailableError

_NAMED_BY: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")


@cache
def tls() -> Any:
    """Return what is trusted, read once; raises ``ToolUnavailableError`` where what the environment names is gone."""
    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        named = next((f"{name} names {os.environ[name]!r}" for name in _NAMED_BY if os.environ.get(name)), "")
        reason = error.strerror or str(error)
        raise ToolUnavailableError(
            f"the certificates that are trusted cannot be read{f': {named}' if named else ''} ({reason})",
            hint="Correct that variable, or take it out of the environment: then the public authorities are trusted.",
        ) from None
