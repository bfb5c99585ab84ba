"""What OpenAI's Chat Completions refuse, in their words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pegboard.testing.providers.replies import ProviderRefusal
from pegboard.testing.providers.tool_rules import tools_refusal

Json = Mapping[str, Any]


def chat_refusal(body: Json) -> ProviderRefusal | None:
    """Return what is refused of a request, or None."""
    tools: Sequence[Json] = body.get("tools") or ()
    functions = [tool.get("function") or {} for tool in tools]
    return tools_refusal(functions, "tools", ".function") or next(_problems(body, functions), None)


def _problems(body: Json, functions: Sequence[Json]) -> Iterator[ProviderRefusal]:
    names = {str(one.get("name")) for one in functions}
    choice: Any = body.get("tool_choice")
    if choice is not None and not names:
        yield ProviderRefusal(
            text="'tool_choice' is only allowed when 'tools' are specified.", param="tool_choice", code="invalid_value"
        )
    for name in chosen_names(choice):
        if name not in names:
            yield ProviderRefusal(
                text=f"Invalid 'tool_choice': function '{name}' was not found in 'tools'.",
                param="tool_choice",
                code="invalid_value",
            )
    messages: Sequence[Json] = body.get("messages") or ()
    if not messages:
        yield _empty("messages")
    open_calls: list[str] = []
    for number, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                text = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with"
                yield ProviderRefusal(text=f"{text} 'tool_calls'.", param=f"messages.[{number}].role")
            else:
                open_calls.remove(str(message["tool_call_id"]))
            continue
        if open_calls:
            yield _without_results(number, open_calls)
        yield from _message_problems(message, f"messages[{number}]")
        open_calls = [str(call.get("id")) for call in message.get("tool_calls") or ()]
    if open_calls:
        yield _without_results(len(messages), open_calls)


def _message_problems(message: Json, where: str) -> Iterator[ProviderRefusal]:
    calls: Any = message.get("tool_calls")
    if calls is not None and not calls:
        yield _empty(f"{where}.tool_calls")
    if message.get("content") is None and not calls and not message.get("refusal") and not message.get("audio"):
        text = "Invalid value for 'content': expected a string, got null."
        yield ProviderRefusal(text=text, param=f"{where}.content")
    for place, call in enumerate(calls or ()):
        if not isinstance((call.get("function") or {}).get("arguments"), str):
            text = f"Invalid type for '{where}.tool_calls[{place}].function.arguments': expected a string."
            yield ProviderRefusal(
                text=text, param=f"{where}.tool_calls[{place}].function.arguments", code="invalid_type"
            )


def _empty(where: str) -> ProviderRefusal:
    rule = "Expected an array with minimum length 1, but got an empty array instead."
    return ProviderRefusal(text=f"Invalid '{where}': empty array. {rule}", param=where, code="empty_array")


def _without_results(number: int, missing: Sequence[str]) -> ProviderRefusal:
    text = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
    return ProviderRefusal(
        text=f"{text} The following tool_call_ids did not have response messages: {', '.join(missing)}",
        param=f"messages.[{number}].role",
    )


def chosen_names(choice: Any) -> list[str]:
    """Return the names of the functions that a choice of tools names, in either form of OpenAI."""
    if not isinstance(choice, Mapping):
        return []
    if choice.get("type") == "function":
        return [str((choice.get("function") or choice).get("name"))]
    allowed: Any = choice.get("allowed_tools") or choice
    return [str((tool.get("function") or tool).get("name")) for tool in allowed.get("tools") or ()]
