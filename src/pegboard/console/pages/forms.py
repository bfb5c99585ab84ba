"""Forms: what they carry, and the answer after one was taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, Final
from urllib.parse import quote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from starlette.responses import HTMLResponse, RedirectResponse, Response

from pegboard.console.context import Context
from pegboard.console.entry.operator_access import SignIn
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.refusals import AS_NOTICE
from pegboard.errors import UsageError
from pegboard.operators.masked import ShownNames

LARGEST_OFFSET: Final = 10_000_000
MOST: Final = 10
"""How many notices wait for the next page of a browser; the oldest gives way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoForm:
    """The form that takes something back: its address and its fields."""

    action: str
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What an operator reads after a form was taken; ``kind`` is ``done`` or ``error``."""

    message: str
    hint: str = ""
    kind: str = "done"
    undo: UndoForm | None = None


def keep_notice(sign_in: SignIn | None, names: ShownNames, notice: Notice) -> None:
    """Keep a notice, masked, for the next page of a browser that is signed in."""
    if sign_in is not None:
        sign_in.notices = [*sign_in.notices, _without_secrets(notice, names)][-MOST:]


def _without_secrets(notice: Notice, names: ShownNames) -> Notice:
    mask = names.masker.text
    return replace(notice, message=mask(notice.message), hint=mask(notice.hint))


def after_form(context: Context, visit: OperatorRequest, notice: Notice, *, back: str) -> Response:
    """Return the answer after a form: the notice for a script of the page, else the page with it."""
    if visit.partial:
        csrf = visit.sign_in.csrf if visit.sign_in is not None else ""
        text = context.templates.text("notice.html", notice=_without_secrets(notice, visit.names), csrf=csrf)
        return HTMLResponse(text, headers={"HX-Trigger": "done", **AS_NOTICE})
    keep_notice(visit.sign_in, visit.names, notice)
    return RedirectResponse(back, status_code=303)


def kept_address(response: Response, address: str) -> Response:
    """Return an answer that lets the browser's address follow what is filtered, where a script asks for a part."""
    response.headers["HX-Replace-Url"] = quote(address, safe="/?&=%+:,;@~*'()!$-._")
    return response


def text_of(form: Mapping[str, Any], name: str) -> str:
    """Return a field of a form; raises ``UsageError`` where it is missing or a file."""
    found = form.get(name)
    if not isinstance(found, str):
        raise UsageError(f"The form has no field '{name}'.", hint="Load the page again.")
    return found


def offset_of(given: Mapping[str, str]) -> int:
    """Return where a page of a list begins; raises ``UsageError`` where that is no number."""
    text = given.get("offset", "") or "0"
    if not (text.isascii() and text.isdecimal() and int(text[:9]) <= LARGEST_OFFSET):
        raise UsageError("`offset` is not a number.", hint="Go back to the first page.")
    return int(text[:9])


def moment_of(name: str, text: str, zone: str) -> datetime | None:
    """Return a date or a time as an input element has it, which is in the zone of the browser; without one in UTC."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"`{name}` is not a date or time.", hint="Write 2026-11-22 or 2026-11-22T18:30.") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=zone_of(zone))


def zone_of(name: str) -> tzinfo:
    """Return a time zone, UTC without a name; raises ``UsageError`` where it is none."""
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise UsageError("`zone` is not a time zone.", hint="Write Europe/Berlin, or nothing for UTC.") from None
