"""Requests that a browser makes for a page of another site: they do nothing in the name of whoever sits there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

SAFE: Final = frozenset({"GET", "HEAD"})
"""The methods that change nothing."""


def is_foreign(method: str, headers: Mapping[str, str]) -> bool:
    """Return whether a page of another origin, which may be another port, has made a request.

    A link from elsewhere may open a page; nothing else comes from elsewhere. The names of ``headers`` are lower-case.
    """
    origin = headers.get("origin")
    if origin is not None and not _is_own(origin, headers.get("host", "")):
        return True
    site = headers.get("sec-fetch-site", "none")
    opens = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return site not in ("same-origin", "none") and not (opens and method in SAFE)


def _is_own(origin: str, host: str) -> bool:
    """Return whether an origin is exactly where the request went, the port included."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()
