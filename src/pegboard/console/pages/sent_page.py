"""What the model of a session sees, was sent before and what differs; as JSON of a client or a provider too."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_args

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.operated_sessions import sent_to_model
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.calls_page import DIGITS
from pegboard.console.pages.sessions_page import key_of
from pegboard.console.templating import query
from pegboard.core.model.tools import Tool
from pegboard.errors import UsageError
from pegboard.operators.sent import SentToModel, SentTool
from pegboard.wire.anthropic_messages import AnthropicMessages
from pegboard.wire.openai_chat import OpenAIChat
from pegboard.wire.openai_responses import OpenAIResponses
from pegboard.wire.provider_forms import ProviderForm, RequestParts

TOOLS: Final = 200
"""How many tools have a row; the JSON has all of them."""
FORMS: Final[dict[SentForm, str]] = {
    "mcp": "MCP client",
    "anthropic": "Anthropic Messages",
    "responses": "OpenAI Responses",
    "chat": "OpenAI Chat",
}


async def sent_page(context: Context, visit: OperatorRequest) -> Response:
    """Show what the model sees, or what it was sent, as rows and as JSON."""
    given = visit.request.query_params
    form, step = _form(given.get("form", "")), _step(given.get("step", ""))
    sent = await sent_to_model(context, visit, key_of(context, visit, given), step)
    names = {"principal": sent.principal, "agent": sent.agent, "session": sent.session}
    shown = {**names, **({"step": step} if step is not None else {})}
    return context.templates.page(
        "sent.html",
        visit,
        sent=sent,
        json=in_form(sent, form),
        form=form,
        forms=FORMS,
        most=TOOLS,
        session=query("/console/session", **names),
        addresses={one: query("/console/session/sent", **shown, form=one) for one in FORMS},
        steps={one.number: query("/console/session/sent", **names, step=one.number, form=form) for one in sent.before},
        newest=query("/console/session/sent", **names, form=form),
        here=query("/console/session/sent", **shown, form=form),
    )


def _step(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= DIGITS):
        raise UsageError("A list that was sent is named by its number.", hint="Use the links of the page.")
    return int(text)


def _form(text: str) -> SentForm:
    match text:
        case "mcp" | "anthropic" | "responses" | "chat":
            return text
        case "":
            return "mcp"
        case _:
            raise UsageError("There is no such form.", hint=f"Forms: {', '.join(get_args(SentForm))}.")


PAGES: Final = (Page("/console/session/sent", sent_page),)


SentForm = Literal["mcp", "anthropic", "responses", "chat"]
"""Of an MCP client, Anthropic's Messages, OpenAI's Responses and Chat Completions."""
_PROVIDERS: Final[Mapping[SentForm, ProviderForm]] = {
    "anthropic": AnthropicMessages(),
    "responses": OpenAIResponses(),
    "chat": OpenAIChat(),
}


def in_form(sent: SentToModel, form: SentForm) -> str:
    """Return the tools, and what stands before the history, as a request has them."""
    return json.dumps(_request(sent, form), ensure_ascii=False, indent=2)


def _request(sent: SentToModel, form: SentForm) -> dict[str, Any]:
    texts = [one.text for one in sent.texts if one.place in ("instructions", "hints", "policy", "beside")]
    if form == "mcp":
        instructions = {"instructions": "\n\n".join(texts)} if texts else {}
        return {**instructions, "tools": [_tool_json(tool) for tool in sent.tools]}
    parts = RequestParts(model="", system=tuple(texts), head=_tools(sent.tools))
    request = _PROVIDERS[form].request(parts, [])
    return {name: value for name, value in request.items() if value and name != "model"}


def _tool_json(tool: SentTool) -> dict[str, Any]:
    wire = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": _parse_json(tool.input_schema),
        "outputSchema": _parse_json(tool.output_schema),
        "annotations": _parse_json(tool.annotations),
    }
    return {name: value for name, value in wire.items() if value or name == "inputSchema"}


def _tools(sent: Sequence[SentTool]) -> tuple[Tool, ...]:
    return tuple(
        Tool(
            plugin=tool.plugin,
            name=tool.name,
            wire=tool.name,
            description=tool.description,
            input_schema=_parse_json(tool.input_schema),
        )
        for tool in sent
    )


def _parse_json(text: str) -> Any:
    """Return what JSON says; a secret that was masked in it may have been more than one text."""
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return text
