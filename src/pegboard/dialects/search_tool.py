"""The search that dialects list, and its answer in as few tokens as its reader needs, within a budget (F2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import EMPTY, JsonObject, Tool
from pegboard.core.surface.definitions import Texts, definition
from pegboard.core.surface.hints import Count
from pegboard.dialects.names import READ_ONLY, DialectSteps, Found, FoundTool, MetaToolAnswer, Search, meta_tool

SEARCH: Final = "search_tools"
RESULTS: Final = 5
RESULTS_PER_NEED: Final = 2
MOST_RESULTS: Final = 20


def search_definition() -> Tool:
    """Return the definition of the search."""
    return meta_tool(
        SEARCH,
        "Find tools that are not listed. Search before saying that something cannot be done. "
        "One short query per thing needed.",
        {"queries": {"type": "array", "items": {"type": "string"}}, "limit": {"type": "integer"}},
        required=("queries",),
        annotations=READ_ONLY,
    )


def search_of(arguments: JsonObject) -> Search:
    """Return what a call of the search asks for; a plain string is one query."""
    queries, limit = strings(arguments["queries"]), arguments.get("limit")
    share = max(RESULTS, RESULTS_PER_NEED * len(queries)) if limit is None else int(limit)  # in JSON 5.0 is an integer
    return Search(queries=queries, limit=min(max(share, 1), MOST_RESULTS))


def search_steps(arguments: JsonObject) -> DialectSteps:
    """Search, and load nothing of what is found."""
    search = search_of(arguments)
    done = yield search
    return search_payload(done.found or Found(query=search.queries, results=()), (), EMPTY, done.count)


def strings(value: Any) -> tuple[str, ...]:
    """Return the texts of a list; a plain string is taken too."""
    return (value,) if isinstance(value, str) else tuple(value)


TOKENS: Final = 400
"""What the text of an answer takes at most, schemas included; required arguments stay even above it."""
BYTES_PER_TOKEN: Final = 2
"""Text that has fewer tokens than this by its length is not counted: counting it would first read the vocabulary."""
REASON_CHARACTERS: Final = 120
SHORTENED: Final = "texts of optional arguments; load_tools gives them whole"
FAR: Final = 0.8
"""A result with less than this share of the best score is only named."""


def search_payload(found: Found, loaded: tuple[Tool, ...], more: JsonObject, count: Count) -> MetaToolAnswer:
    """Return the payload of a search: results, those that were loaded with their schemas, and further names.

    Over the budget siblings go first, then further names, then sentences, the last result's first, then results from
    the end, then texts of what was loaded, and never required arguments.
    """
    payload = MetaToolAnswer(value={})
    for answer in _ever_smaller(_Answer(found=_without_far(found), loaded={tool.wire: tool for tool in loaded})):
        payload = MetaToolAnswer(value=_value(answer, more), schemas=loaded, inline=True, compact=True)
        if _within_tokens(payload.text(), count):
            break
    return payload


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What an answer gives: what was found, and how much of the text of what was loaded."""

    found: Found
    loaded: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    texts: Texts = "whole"


def _without_far(found: Found) -> Found:
    """Return what was found with what is far behind its need's best among the further names."""
    best: dict[int, float] = {}
    for result in found.results:
        best[result.need] = max(best.get(result.need, 0.0), result.score)
    near = tuple(r for r in found.results if r.kind != "tool" or r.score >= FAR * best[r.need])
    far = (result.name for result in found.results if result not in near)
    return replace(found, results=near, further=(*far, *found.further))


def _within_tokens(text: str, count: Count) -> bool:
    return len(text.encode(errors="surrogatepass")) <= BYTES_PER_TOKEN * TOKENS or count(text) <= TOKENS


def _ever_smaller(answer: _Answer) -> Iterator[_Answer]:
    """Yield an answer, each time with less of it."""
    yield answer
    for found in _shrinking_results(answer.found, answer.loaded):
        answer = replace(answer, found=found)
        yield answer
    if answer.loaded:
        yield replace(answer, texts="first sentence")
        yield replace(answer, texts="none")


def _shrinking_results(found: Found, loaded: Mapping[str, Tool]) -> Iterator[Found]:
    """Yield what was found, each time with less of it, but for what was loaded."""
    yield (found := replace(found, siblings=()))
    while found.further:
        yield (found := replace(found, further=found.further[: len(found.further) // 2]))
    results = list(found.results)
    for place in reversed(range(len(results))):
        results[place] = replace(results[place], sentence="")
        yield (found := replace(found, results=tuple(results)))
    while len(found.results) > 1 and found.results[-1].name not in loaded:
        yield (found := replace(found, results=found.results[:-1]))


def _value(answer: _Answer, more: JsonObject) -> dict[str, Any]:
    found = answer.found
    several = len(found.query) > 1
    results = [_result(result, answer, several=several) for result in found.results]
    value: dict[str, Any] = {"status": "ok", **more, "results": results}
    if names := shorten_names((*found.further, *found.siblings)):
        value["more"] = names
    if answer.texts != "whole":
        value["shortened"] = SHORTENED
    if found.hint:
        value["hint"] = found.hint
    return value


def _result(result: FoundTool, answer: _Answer, *, several: bool) -> dict[str, Any]:
    """Return one result; what most have in common is not stated: that it is a tool, and has to be loaded."""
    entry: dict[str, Any] = {"name": result.name}
    if several:
        entry["need"] = result.need + 1
    loaded = answer.loaded.get(result.name)
    if loaded is not None:
        return {**entry, "loaded": True, **definition(loaded, answer.texts)}
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


def shorten_names(names: Iterable[str]) -> str:
    """Return names in one text, what several have in front stated once.

    >>> shorten_names(["git__log", "read", "git__diff", "file__read"])
    'git__{log, diff}, read, file__read'
    """
    groups: dict[tuple[str, bool], list[str]] = {}
    for name in names:
        lead, _, own = name.partition("__")
        parted = bool(lead and own)
        groups.setdefault((f"{lead}__" if parted else name, parted), []).append(own)
    return ", ".join(_with_common_prefix(lead, own) if parted else lead for (lead, parted), own in groups.items())


def _with_common_prefix(lead: str, own: Sequence[str]) -> str:
    return f"{lead}{{{', '.join(own)}}}" if len(own) > 1 else f"{lead}{own[0]}"
