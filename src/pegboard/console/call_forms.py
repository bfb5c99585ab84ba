"""A call in forms to copy: as JSON, and as a command that makes it again over MCP, with a placeholder for the token."""

from __future__ import annotations

import json
import shlex
from typing import Any, Final
from urllib.parse import quote

from pegboard.operators.calls import CallOverview
from pegboard.support.mcp_constants import CAPABILITIES_KEY, VERSION_KEY

PLACEHOLDER: Final = "YOUR_TOKEN"
"""What stands for the token: nobody's is in a command that is copied."""
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
