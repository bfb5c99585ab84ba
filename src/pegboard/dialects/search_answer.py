"""The answer of a search in as few tokens as its reader needs, within a budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.core.surface.brief_schema import brief_schema
from pegboard.core.surface.hints import Count
from pegboard.dialects.names import Found, FoundTool, Payload

TOKENS: Final = 400
"""What the text of an answer takes at most, schemas included; required arguments stay even above it."""
BYTES_PER_TOKEN: Final = 2
"""Text that has fewer tokens than this by its length is not counted: counting it would first read the vocabulary."""
REASON_CHARACTERS: Final = 120
FAR: Final = 0.8
"""A result with less than this share of the best score is only named."""


def search_payload(found: Found, loaded: tuple[Tool, ...], more: JsonObject, count: Count) -> Payload:
    """Return the payload of a search: results, those that were loaded with their schemas, and further names.

    Over the budget siblings go first, then further names, then sentences, the last result's first, then results from
    the end, and never required arguments or what was loaded.
    """
    schemas = {tool.wire: tool for tool in loaded}
    payload, found = Payload(value={}), _without_far(found)
    for smaller in _ever_smaller(found, schemas):
        payload = Payload(value=_value(smaller, schemas, more), schemas=loaded, inline=True, compact=True)
        if _fits(payload.text(), count):
            break
    return payload


def _without_far(found: Found) -> Found:
    """Return what was found with what is far behind its need's best among the further names."""
    best: dict[int, float] = {}
    for result in found.results:
        best[result.need] = max(best.get(result.need, 0.0), result.score)
    near = tuple(r for r in found.results if r.kind != "tool" or r.score >= FAR * best[r.need])
    far = (result.name for result in found.results if result not in near)
    return replace(found, results=near, further=(*far, *found.further))


def _fits(text: str, count: Count) -> bool:
    return len(text.encode(errors="surrogatepass")) <= BYTES_PER_TOKEN * TOKENS or count(text) <= TOKENS


def _ever_smaller(found: Found, schemas: Mapping[str, Tool]) -> Iterator[Found]:
    """Yield what was found, each time with less of it."""
    yield found
    yield (found := replace(found, siblings=()))
    while found.further:
        yield (found := replace(found, further=found.further[: len(found.further) // 2]))
    results = list(found.results)
    for place in reversed(range(len(results))):
        results[place] = replace(results[place], sentence="")
        yield (found := replace(found, results=tuple(results)))
    while len(found.results) > 1 and found.results[-1].name not in schemas:
        yield (found := replace(found, results=found.results[:-1]))


def _value(found: Found, schemas: Mapping[str, Tool], more: JsonObject) -> dict[str, Any]:
    several = len(found.query) > 1
    results = [_result(result, schemas.get(result.name), several=several) for result in found.results]
    value: dict[str, Any] = {"status": "ok", **more, "results": results}
    if names := shortened((*found.further, *found.siblings)):
        value["more"] = names
    if found.hint:
        value["hint"] = found.hint
    return value


def _result(result: FoundTool, loaded: Tool | None, *, several: bool) -> dict[str, Any]:
    """Return one result; what most have in common is not stated: that it is a tool, and has to be loaded."""
    entry: dict[str, Any] = {"name": result.name}
    if several:
        entry["need"] = result.need + 1
    if loaded is not None:
        return {**entry, "loaded": True, **definition(loaded)}
    if result.kind != "tool":
        entry["kind"] = result.kind
    if result.sentence:
        entry["description"] = result.sentence
    if result.required:
        entry["required"] = ", ".join(result.required)
    match result.status:
        case "callable":
            entry["loaded"] = True
        case "next_request":
            entry["loaded"] = "next_request"
        case "unavailable":
            entry["unavailable"] = one_line(result.reason, limit=REASON_CHARACTERS)
        case "loadable":
            pass
    return entry


def definition(tool: Tool) -> JsonObject:
    """Return what a model needs to call a tool, its schema in the brief form where it has one."""
    arguments = brief_schema(tool.input_schema)
    if arguments is None:
        return {"description": tool.description, "inputSchema": tool.input_schema}
    return {"description": tool.description, "arguments": arguments}


def shortened(names: Iterable[str]) -> str:
    """Return names in one text, what several have in front stated once.

    >>> shortened(["git__log", "read", "git__diff", "file__read"])
    'git__{log, diff}, read, file__read'
    """
    groups: dict[tuple[str, bool], list[str]] = {}
    for name in names:
        lead, _, own = name.partition("__")
        parted = bool(lead and own)
        groups.setdefault((f"{lead}__" if parted else name, parted), []).append(own)
    return ", ".join(_together(lead, own) if parted else lead for (lead, parted), own in groups.items())


def _together(lead: str, own: Sequence[str]) -> str:
    return f"{lead}{{{', '.join(own)}}}" if len(own) > 1 else f"{lead}{own[0]}"
