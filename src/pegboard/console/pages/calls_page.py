"""One call, in forms to copy too, making it again, and what happened in a session turn by turn."""

from __future__ import annotations

import json
import shlex
from typing import Any, Final, cast
from urllib.parse import quote

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.forms import Notice, after_form, keep_notice, text_of
from pegboard.console.pages.sessions_page import key_of
from pegboard.console.templating import query
from pegboard.core.model.naming import one_line
from pegboard.errors import UsageError
from pegboard.operators.calls import CallOverview, unknown_call
from pegboard.operators.calls import call as read_call
from pegboard.operators.calls import call_again as repeat_call
from pegboard.operators.timeline import timeline as read_timeline
from pegboard.support.mcp_constants import CAPABILITIES_KEY, VERSION_KEY

_CALL: Final = "/console/call"
_AGAIN: Final = "/console/call/again"
DIGITS: Final = 18


def number_of(text: str) -> int:
    """Return the number of a call that an address names.

    Raises:
        UsageError: it is none.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= DIGITS):
        raise unknown_call()
    return int(text)


def cursor_of(text: str) -> int | None:
    """Return the cursor that an address has, None where it has none.

    Raises:
        UsageError: it is none.
    """
    if text and not (text.isascii() and text.isdecimal() and len(text) <= DIGITS):
        raise UsageError("`before` is not a number.", hint="Go back to the newest.")
    return int(text) if text else None


async def call_page(context: Context, visit: OperatorRequest) -> Response:
    """Show one call."""
    number = number_of(visit.request.query_params.get("id", ""))
    call = await read_call(context.services, number, visit.operator.sees)
    names = {"principal": call.principal, "agent": call.agent, "session": call.session}
    return context.templates.page(
        "call.html",
        visit,
        call=call,
        arguments=_indent_json(call.arguments),
        json=as_json(call),
        curl=as_curl(call, str(visit.request.base_url).rstrip("/")),
        session=query("/console/session", **names),
        sent=query("/console/session/sent", **names),
        asked=_query_of(call),
        here=query(_CALL, id=number),
    )


async def again_form(context: Context, visit: OperatorRequest) -> Response:
    """Ask whether a call is to be made again."""
    number = number_of(visit.request.query_params.get("id", ""))
    call = await read_call(context.services, number, visit.operator.sees)
    return context.templates.page("call_again.html", visit, call=call, arguments=_indent_json(call.arguments))


async def call_again(context: Context, visit: OperatorRequest) -> Response:
    """Make a call again, and go to the page of the new one."""
    form = await visit.request.form()
    number = number_of(text_of(form, "id"))
    done = await repeat_call(context.services, number, visit.operator.sees, by=visit.operator.name)
    back = query(_CALL, id=done.id or number)
    said = done.message or "".join(block.text for block in done.blocks[:1])
    message = f"Made again in session {done.session}: {done.status}."
    notice = (
        Notice(message=message)
        if done.status == "ok"
        else Notice(message=message, hint=one_line(said, limit=300), kind="error")
    )
    if done.id is None or not visit.partial:
        return after_form(context, visit, notice, back=back)
    keep_notice(visit.sign_in, visit.names, notice)
    return Response(headers={"HX-Redirect": back})


async def timeline_page(context: Context, visit: OperatorRequest) -> Response:
    """Show what happened in a session, turn by turn."""
    key = key_of(context, visit, visit.request.query_params)
    before = cursor_of(visit.request.query_params.get("before", ""))
    found = await read_timeline(context.services, key, before=before)
    names = {"principal": found.principal, "agent": found.agent, "session": found.session}
    return context.templates.page(
        "timeline.html",
        visit,
        timeline=found,
        before=before,
        session=query("/console/session", **names),
        here=query("/console/session/timeline", **names, before=before),
    )


def _query_of(call: CallOverview) -> str:
    """Return what a search was asked first, nothing where that is not kept or it is none."""
    value = _value(call.arguments) if call.kind == "search" and call.arguments else None
    asked = cast("dict[str, Any]", value).get("queries") if isinstance(value, dict) else None
    return str(cast("list[Any]", asked)[0]) if isinstance(asked, list) and asked else ""


def _indent_json(arguments: str) -> str:
    """Return the JSON of arguments as people read it."""
    try:
        return json.dumps(json.loads(arguments), indent=2, ensure_ascii=False) if arguments else ""
    except ValueError:
        return arguments


PAGES: Final = (
    Page(_CALL, call_page),
    Page(_AGAIN, again_form),
    Page(_AGAIN, call_again, "POST", "configure"),
    Page("/console/session/timeline", timeline_page),
)
"""The addresses of calls."""


PLACEHOLDER: Final = "YOUR_TOKEN"
"""What stands for the token: no one's is in a command that is copied."""
_VERSION: Final = "2026-07-28"


def as_json(call: CallOverview) -> str:
    """Return a call as indented JSON, in ASCII: what hides or turns characters around is an escape."""
    about = {name: getattr(call, name) for name in ("id", "at", "principal", "agent", "session", "turn")}
    told = {name: getattr(call, name) for name in ("decision", "outcome", "reason", "error", "duration")}
    given: dict[str, Any] = {"tool": call.tool}
    if call.arguments:
        given["arguments"] = _value(call.arguments)
    if call.answer:
        given["answer"] = [
            {name: value for name in ("type", "text", "mime", "uri", "bytes") if (value := getattr(block, name))}
            for block in call.answer
        ]
    return json.dumps({**about, **given, **told}, indent=2)


def as_curl(call: CallOverview, origin: str) -> str:
    """Return a command that makes a call again, or nothing where its arguments are not kept as they were."""
    if call.not_again or not call.plugin:
        return ""
    meta: dict[str, Any] = {
        VERSION_KEY: _VERSION,
        CAPABILITIES_KEY: {},
    }
    params: dict[str, Any] = {"name": call.tool, "arguments": _value(call.arguments), "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    headers = (
        f"Authorization: Bearer {PLACEHOLDER}",
        "Accept: application/json, text/event-stream",
        "Content-Type: application/json",
        f"MCP-Protocol-Version: {_VERSION}",
        "Mcp-Method: tools/call",
        f"Mcp-Name: {call.tool}",
    )
    address = f"{origin}/mcp/{quote(call.agent, safe='')}"
    lines = [f"curl {shlex.quote(address)}"]
    lines += [f"  -H {shlex.quote(header)}" for header in headers]
    return " \\\n".join((*lines, f"  --data {shlex.quote(body)}"))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
