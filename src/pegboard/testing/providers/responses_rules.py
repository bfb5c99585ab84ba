"""What OpenAI's Responses refuse, in their words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pegboard.testing.providers.chat_rules import chosen_names
from pegboard.testing.providers.replies import ProviderRefusal
from pegboard.testing.providers.tool_rules import tools_refusal

Json = Mapping[str, Any]


def responses_refusal(body: Json, known_ids: Collection[str] = ()) -> ProviderRefusal | None:
    """Return what is refused of a request, or None.

    Args:
        body: the request.
        known_ids: the ids of the responses that were given.
    """
    tools = _functions(body)
    items: Sequence[Json] = [] if isinstance(body.get("input"), str) else body.get("input") or ()
    refused = tools_refusal(tools, "tools", "")
    for number, item in enumerate(items):
        if item.get("type") == "additional_tools":
            refused = refused or tools_refusal(_functions(item), f"input[{number}].tools", "")
    return refused or next(_problems(body, items, tools, known_ids), None)


def _functions(holder: Json) -> list[Json]:
    return [tool for tool in holder.get("tools") or () if tool.get("type", "function") == "function"]


def _problems(
    body: Json, items: Sequence[Json], tools: Sequence[Json], known_ids: Collection[str]
) -> Iterator[ProviderRefusal]:
    before = body.get("previous_response_id")
    if before is not None and before not in known_ids:
        text = f"Previous response with id '{before}' not found."
        yield ProviderRefusal(text=text, param="previous_response_id", code="previous_response_not_found")
    joined = [tool for item in items if item.get("type") == "additional_tools" for tool in _functions(item)]
    names = {str(tool.get("name")) for tool in (*tools, *joined)}
    for name in chosen_names(body.get("tool_choice")):
        if name not in names:
            yield ProviderRefusal(text="Tool choice 'function' not found in 'tools' parameter.", param="tool_choice")
    yield from _item_problems(items, kept=body.get("store") is not False)
    if before is None and body.get("conversation") is None:
        yield from _pair_problems(items)


def _item_problems(items: Sequence[Json], *, kept: bool) -> Iterator[ProviderRefusal]:
    for number, item in enumerate(items):
        item_id = item.get("id")
        if item.get("type") == "item_reference" or (
            item.get("type") == "reasoning" and not item.get("encrypted_content") and not kept
        ):
            text = f"Item with id '{item_id}' not found. Items are not persisted when `store` is set to false."
            hint = "Try again with `store` set to true, or remove this item from your input."
            yield ProviderRefusal(text=f"{text} {hint}", status=404, param="input")
        following = items[number + 1] if number + 1 < len(items) else {}
        if item.get("type") == "reasoning" and not _is_of_model(following):
            text = f"Item '{item_id}' of type 'reasoning' was provided without its required following item."
            yield ProviderRefusal(text=text, param="input")
        if item.get("type") == "function_call" and not isinstance(item.get("arguments"), str):
            where = f"input[{number}].arguments"
            yield ProviderRefusal(
                text=f"Invalid type for '{where}': expected a string.", param=where, code="invalid_type"
            )
        if item.get("type", "message") == "message" and not item.get("content") and item.get("role") != "assistant":
            where = f"input[{number}].content"
            text = f"Missing required parameter: '{where}'."
            yield ProviderRefusal(text=text, param=where, code="missing_required_parameter")


def _is_of_model(item: Json) -> bool:
    kind = str(item.get("type"))
    return item.get("role") == "assistant" or (kind.endswith("_call") or kind in ("reasoning", "message"))


def _pair_problems(items: Sequence[Json]) -> Iterator[ProviderRefusal]:
    calls: set[str] = set()
    for item in items:
        call_id = str(item.get("call_id"))
        if item.get("type") == "function_call":
            calls.add(call_id)
        elif item.get("type") == "function_call_output" and call_id not in calls:
            text = f"No tool call found for function call output with call_id {call_id}."
            yield ProviderRefusal(text=text, param="input")
    answered = {str(item.get("call_id")) for item in items if item.get("type") == "function_call_output"}
    for call_id in sorted(calls - answered):
        yield ProviderRefusal(text=f"No tool output found for function call {call_id}.", param="input")
