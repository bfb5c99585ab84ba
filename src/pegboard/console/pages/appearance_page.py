"""How the console looks in one browser: its theme, the icon with what waits, and the keys that it knows."""

from __future__ import annotations

from typing import Final

from starlette.responses import RedirectResponse, Response

from pegboard.console.context import Context, Page
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.forms import text_of
from pegboard.console.templating import keep_theme

_MOST: Final = 99
_ICON: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect x="1" y="1" width="22" height="22" rx="5"'
    ' fill="#2f6f5e"/><circle cx="14" cy="14" r="10" fill="#ffd27a"/><text x="14" y="19" font-size="13"'
    ' font-family="sans-serif" font-weight="700" text-anchor="middle" fill="#3d2f10">{}</text></svg>'
)


async def theme(context: Context, visit: OperatorRequest) -> Response:  # noqa: ARG001
    """Let this browser keep a theme, and return to where it was chosen."""
    form = await visit.request.form()
    back = text_of(form, "back")
    response = RedirectResponse(back if _is_own(back) else "/console", status_code=303)
    keep_theme(visit.request, response, text_of(form, "theme"))
    return response


def _is_own(address: str) -> bool:
    return address == "/console" or address.startswith(("/console?", "/console/"))


async def icon(context: Context, visit: OperatorRequest) -> Response:  # noqa: ARG001
    """Return the icon of a page while so many calls wait."""
    text = visit.request.query_params.get("count", "")
    count = int(text) if text.isascii() and text.isdecimal() and len(text) <= 2 else _MOST
    return Response(_ICON.format(count), media_type="image/svg+xml")


async def keys(context: Context, visit: OperatorRequest) -> Response:
    """Show what can be done from the keyboard."""
    return context.templates.page("keys.html", visit)


PAGES: Final = (
    Page("/console/theme", theme, "POST"),
    Page("/console/icon", icon),
    Page("/console/keys", keys),
)
"""The addresses of what one browser chooses."""
