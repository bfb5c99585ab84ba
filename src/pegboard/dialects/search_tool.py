"""The search of the dialects that list it, always or where hints are cut (F2)."""

from __future__ import annotations

from typing import Any, Final

from pegboard.core.model.tools import EMPTY, JsonObject, Tool
from pegboard.dialects.names import READ_ONLY, Conversation, Found, Search, meta_tool
from pegboard.dialects.search_answer import search_payload

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


def searched(arguments: JsonObject) -> Conversation:
    """Search, and load nothing of what is found."""
    search = search_of(arguments)
    done = yield search
    return search_payload(done.found or Found(query=search.queries, results=()), (), EMPTY, done.count)


def strings(value: Any) -> tuple[str, ...]:
    """Return the texts of a list; a plain string is taken too."""
    return (value,) if isinstance(value, str) else tuple(value)
