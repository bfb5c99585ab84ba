"""What a provider makes of a request: a prefix of blocks, what the model sees of tools, where the client breaks it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Form = Literal["anthropic", "responses", "chat"]
FORMS: tuple[Form, ...] = ("anthropic", "responses", "chat")
REVEALS = ("tool_reference", "tool_addition")
Kind = Literal["tools", "system", "definitions", "conversation"]
"""What a block is: a tool of the list, system text, what defines tools within the history, or anything else of it."""
KINDS: tuple[Kind, ...] = ("tools", "system", "definitions", "conversation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A request as a provider reads it.

    Attributes:
        head: tools and system text, a text for each block; deferred tools stand where they are revealed.
        messages: what follows, a text for each block.
        breaks: behind how many blocks the client puts its breakpoints; empty where the provider caches by itself.
        visible: the names of the tools that the model can call.
        texts: what the model reads in the messages, unescaped.
        listed: how many blocks of the head are tools; the others are system text.
    """

    head: tuple[str, ...]
    messages: tuple[str, ...]
    breaks: tuple[int, ...]
    visible: frozenset[str]
    texts: tuple[str, ...]
    listed: int

    @property
    def blocks(self) -> tuple[str, ...]:
        return (*self.head, *self.messages)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return what each block is."""
        head: list[Kind] = ["tools" if place < self.listed else "system" for place in range(len(self.head))]
        return (*head, *("definitions" if _DEFINES.search(text) else "conversation" for text in self.messages))


_DEFINES = re.compile(r'\\*"description\\*":')
"""A description is in definitions alone: no user, answer or call of these conversations has one."""


def read(form: Form, body: Mapping[str, Any]) -> Read:
    """Return a request of one of the forms as its provider reads it."""
    return {"anthropic": _anthropic, "responses": _responses, "chat": _chat}[form](body)


@dataclass(slots=True)
class _Deferred:
    """Deferred definitions, each of which counts where it is revealed first."""

    waiting: dict[str, str]
    revealed: list[str] = field(default_factory=list[str])

    def revealed_by(self, value: object) -> str:
        names = [name for name in _names(value) if name not in self.revealed]
        self.revealed += names
        return "".join(self.waiting.pop(name, "") for name in names)


def _anthropic(body: Mapping[str, Any]) -> Read:
    tools = body.get("tools", [])
    deferred = _Deferred({tool["name"]: _text(tool) for tool in tools if tool.get("defer_loading")})
    listed = [tool for tool in tools if not tool.get("defer_loading")]
    head, breaks = list[str](), list[int]()
    system = body.get("system") or []
    texts = [{"type": "text", "text": system}] if isinstance(system, str) else system
    for block in (*listed, *texts):
        head.append(_text(block))
        breaks += [len(head)] if "cache_control" in block else []
    messages = list[str]()
    for message in body["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            messages.append(f"{message['role']}:{_text(block)}{deferred.revealed_by(block)}")
            breaks += [len(head) + len(messages)] if "cache_control" in block else []
    if "cache_control" in body:
        breaks.append(len(head) + len(messages))
    visible = frozenset((*(tool["name"] for tool in listed), *deferred.revealed))
    read_texts = tuple(_strings(body["messages"]))
    return Read(
        head=tuple(head),
        messages=tuple(messages),
        breaks=tuple(breaks),
        visible=visible,
        texts=read_texts,
        listed=len(listed),
    )


def _responses(body: Mapping[str, Any]) -> Read:
    tools = body.get("tools", [])
    deferred = _Deferred({tool["name"]: _text(tool) for tool in tools if tool.get("defer_loading")})
    listed = [tool for tool in tools if not tool.get("defer_loading")]
    items = body["input"]
    first = next((place for place, one in enumerate(items) if one.get("role") not in ("system", "developer")), 0)
    before, items = items[:first], items[first:]
    head = [*(_text(tool) for tool in listed), body.get("instructions") or "", *map(_text, before)]
    messages = tuple(_text(item) + deferred.revealed_by(item) for item in items)
    added = [tool["name"] for item in items if item.get("type") == "additional_tools" for tool in item["tools"]]
    found = [tool["name"] for item in items if item.get("type") == "tool_search_output" for tool in item["tools"]]
    visible = frozenset((*(_name(tool) for tool in listed), *deferred.revealed, *added, *found))
    return Read(
        head=tuple(head),
        messages=messages,
        breaks=(),
        visible=visible,
        texts=tuple(_strings(items)),
        listed=len(listed),
    )


def _name(tool: Mapping[str, Any]) -> str:
    """Return the name of a tool; what a provider runs itself may have its type alone."""
    return tool.get("name") or tool["type"]


def server_search(body: Mapping[str, Any]) -> str:
    """Return the name of the tool search that the provider is to run within the request, or nothing."""
    own = (tool for tool in body.get("tools", []) if str(tool.get("type")).startswith("tool_search"))
    return next((_name(tool) for tool in own), "")


def _chat(body: Mapping[str, Any]) -> Read:
    tools, messages = body.get("tools", []), body["messages"]
    first = next((place for place, one in enumerate(messages) if one["role"] not in ("system", "developer")), 0)
    head = (*(_text(tool) for tool in tools), *(_text(message) for message in messages[:first]))
    visible = frozenset(tool["function"]["name"] for tool in tools)
    behind = tuple(_text(message) for message in messages[first:])
    return Read(
        head=head, messages=behind, breaks=(), visible=visible, texts=tuple(_strings(messages)), listed=len(tools)
    )


def _text(value: Any) -> str:
    """Return a block as it counts: without the marks of breakpoints, which move."""
    return json.dumps(_unmarked(value), ensure_ascii=False, separators=(",", ":"))


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(one) for key, one in value.items() if key not in ("cache_control", "defer_loading")}
    return [_unmarked(one) for one in value] if isinstance(value, list) else value


def _names(value: Any) -> Iterator[str]:
    """Yield the names of the tools that a block reveals by reference."""
    if isinstance(value, dict):
        if value.get("type") in REVEALS:
            tool = value.get("tool") or value
            yield tool.get("name") or tool["tool_name"]
            return
        for one in value.values():
            yield from _names(one)
    elif isinstance(value, list):
        for one in value:
            yield from _names(one)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)
