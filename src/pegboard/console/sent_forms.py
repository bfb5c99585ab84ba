"""What a model is sent, as JSON in the form of a client or a provider."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from pegboard.core.model.tools import Tool
from pegboard.operators.sent import SentToModel, SentTool
from pegboard.wire.anthropic_messages import AnthropicMessages
from pegboard.wire.openai_chat import OpenAIChat
from pegboard.wire.openai_responses import OpenAIResponses
from pegboard.wire.provider_forms import ProviderForm, RequestParts

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
        return {**instructions, "tools": [_listed(tool) for tool in sent.tools]}
    parts = RequestParts(model="", system=tuple(texts), head=_tools(sent.tools))
    request = _PROVIDERS[form].request(parts, [])
    return {name: value for name, value in request.items() if value and name != "model"}


def _listed(tool: SentTool) -> dict[str, Any]:
    wire = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": _parsed(tool.input_schema),
        "outputSchema": _parsed(tool.output_schema),
        "annotations": _parsed(tool.annotations),
    }
    return {name: value for name, value in wire.items() if value or name == "inputSchema"}


def _tools(sent: Sequence[SentTool]) -> tuple[Tool, ...]:
    return tuple(
        Tool(
            plugin=tool.plugin,
            name=tool.name,
            wire=tool.name,
            description=tool.description,
            input_schema=_parsed(tool.input_schema),
        )
        for tool in sent
    )


def _parsed(text: str) -> Any:
    """Return what JSON says; a secret that was masked in it may have been more than one text."""
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return text
