"""Light, dark, or what the visitor's system prefers: kept in a cookie, so that a page is never shown in the other."""

from __future__ import annotations

from typing import Final, Literal

from starlette.requests import Request
from starlette.responses import Response

Theme = Literal["", "light", "dark"]
"""Nothing is what the system prefers."""
_COOKIE: Final = "pegboard_theme"
_YEAR: Final = 365 * 86_400


def theme_of(request: Request) -> Theme:
    """Return the theme that a browser has chosen."""
    match request.cookies.get(_COOKIE):
        case "light":
            return "light"
        case "dark":
            return "dark"
        case _:
            return ""


def keep_theme(request: Request, response: Response, theme: str) -> None:
    """Let a browser keep a theme; any other word is what its system prefers."""
    if theme in ("light", "dark"):
        secure = request.url.scheme == "https"
        response.set_cookie(
            _COOKIE, theme, path="/console", max_age=_YEAR, httponly=True, samesite="strict", secure=secure
        )
    else:
        response.delete_cookie(_COOKIE, path="/console")
