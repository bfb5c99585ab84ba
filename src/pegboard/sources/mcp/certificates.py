"""What certificates are trusted, read once. Import late."""

from __future__ import annotations

from functools import cache
from typing import Any

import httpx2


@cache
def tls() -> Any:
    """Return what is trusted, read once."""
    return httpx2.create_ssl_context()
