"""What a message says, and its form for each receiver: never an argument of a call, unless that is wanted."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, assert_never

from pegboard.core.model.hooks import Hook, HookEvent
from pegboard.core.model.naming import one_line
from pegboard.operators.approvals import ApprovalOverview
from pegboard.operators.attention import AttentionItem
from pegboard.support.visible_text import visible

NAME: Final = 120
"""How many characters of a name are sent."""
ARGUMENT: Final = 500
"""How many characters of an argument are sent."""
TOOLS: Final = 5
"""How many tools are named where several calls wait."""
ARGUMENTS: Final = 12
"""How many arguments are sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookMessage:
    """What someone is told; ``link`` is the page for it, or nothing where no console is served."""

    event: HookEvent | Literal["test"]
    title: str
    text: str
    link: str = ""
    details: Mapping[str, str | float | None] | None = None
    arguments: Mapping[str, str] | None = None


def of_approval(one: ApprovalOverview, link: str, *, arguments: bool) -> HookMessage:
    """Return what is said of a call that waits; its arguments, secrets masked, only where that is wanted."""
    tool, agent, principal = (_name(text) for text in (one.tool, one.agent, one.principal))
    shown = {_name(part.name): _cut_text(part.text) for part in one.arguments[:ARGUMENTS]} if arguments else None
    if shown is not None and len(one.arguments) > ARGUMENTS:
        shown["…"] = f"{len(one.arguments) - ARGUMENTS} more"
    return HookMessage(
        event="approval",
        title=f"{tool} waits for a person",
        text=f"A call of {tool} by agent {agent} for {principal} waits for an answer.",
        link=link,
        details={"id": one.id, "tool": tool, "agent": agent, "principal": principal, "expires_at": one.expires_at},
        arguments=shown,
    )


def of_approvals(ones: Sequence[ApprovalOverview], link: str) -> HookMessage:
    """Return what is said of several calls of one agent that wait; of their arguments nothing."""
    agent, tools = _name(ones[0].agent), Counter(_name(one.tool) for one in ones)
    counted = [f"{tool} ({count})" for tool, count in tools.most_common(TOOLS)]
    more = f" and {len(tools) - TOOLS} more tools" if len(tools) > TOOLS else ""
    return HookMessage(
        event="approval",
        title=f"{len(ones)} calls of {agent} wait for a person",
        text=f"{len(ones)} more calls of agent {agent} wait for an answer: {', '.join(counted)}{more}.",
        link=link,
        details={"agent": agent, "calls": len(ones)},
    )


def of_attention(item: AttentionItem, link: str) -> HookMessage:
    """Return what is said of something else that needs a person."""
    return HookMessage(
        event="attention",
        title="Pegboard needs a person",
        text=visible(one_line(item.text, limit=600)),
        link=link,
        details={"kind": item.kind, "severity": item.severity, "subject": _name(item.subject)},
    )


def of_test() -> HookMessage:
    """Return a message that says nothing but that it arrives."""
    return HookMessage(event="test", title="Pegboard", text="This is a test: nothing waits.")


def write_message(message: HookMessage, hook: Hook) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of a message in the form of a hook."""
    match hook.shape:
        case "json":
            return _as_json(message)
        case "ntfy":
            return _as_ntfy(message)
        case "slack":
            return _as_slack(message)
        case _:
            assert_never(hook.shape)


def _as_json(message: HookMessage) -> tuple[bytes, dict[str, str]]:
    found: dict[str, object] = {"event": message.event, "text": message.text, "link": message.link}
    found |= message.details or {}
    if message.arguments is not None:
        found["arguments"] = dict(message.arguments)
    return json.dumps(found).encode(), {"Content-Type": "application/json"}


def _as_ntfy(message: HookMessage) -> tuple[bytes, dict[str, str]]:
    headers = {"Title": _header(message.title), "Tags": "lock" if message.event == "approval" else "warning"}
    if message.link:
        headers["Click"] = message.link
    if message.event == "approval":
        headers["Priority"] = "high"
    lines = [message.text, *(f"{name}: {text}" for name, text in (message.arguments or {}).items())]
    return "\n".join(lines).encode(errors="backslashreplace"), {
        "Content-Type": "text/plain; charset=utf-8",
        **headers,
    }


def _as_slack(message: HookMessage) -> tuple[bytes, dict[str, str]]:
    lines = [_escape_for_slack(message.text)]
    lines += [
        f"{_escape_for_slack(name)}: {_escape_for_slack(text)}" for name, text in (message.arguments or {}).items()
    ]
    lines += [f"<{message.link}|Look and answer>"] if message.link else []
    return json.dumps({"text": "\n".join(lines)}).encode(), {"Content-Type": "application/json"}


def _escape_for_slack(text: str) -> str:
    """Return a text in which Slack finds no mention, link or mark of its own.

    >>> _escape_for_slack("<!channel> *now*")
    '&lt;!channel&gt; ∗now∗'
    """
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return plain.translate({ord("*"): "∗", ord("`"): "ˋ", ord("~"): "∼"})


def _header(text: str) -> str:
    """Return a text as a header may have it (RFC 2047)."""
    if text.isascii():
        return text
    return f"=?UTF-8?B?{b64encode(text.encode(errors='backslashreplace')).decode()}?="


def _name(text: str) -> str:
    return visible(one_line(text, limit=NAME))


def _cut_text(text: str) -> str:
    return visible(one_line(text, limit=ARGUMENT))
