"""Which requests are the operator's own: another site, port or program can do nothing in their name."""

from __future__ import annotations

import hmac
from typing import Final

from starlette.requests import Request

from pegboard.console.entry.operator_access import SignIn

CSRF_HEADER: Final = "x-csrf-token"
CSRF_FIELD: Final = "csrf"
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""What every answer has."""


def cookie_name(request: Request) -> str:
    """Return the name of the cookie: browsers share cookies between the ports of a host."""
    return f"pegboard_console_{request.url.port or 80}"


async def bears_csrf(request: Request, sign_in: SignIn) -> bool:
    """Return whether a request carries the proof that this sign-in's own page made it."""
    given = request.headers.get(CSRF_HEADER)
    if given is None and request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        found = (await request.form()).get(CSRF_FIELD)
        given = found if isinstance(found, str) else None
    return given is not None and hmac.compare_digest(given.encode(), sign_in.csrf.encode())
