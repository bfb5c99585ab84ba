"""Tools and searches for the tests of the ranker."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.core.model.tools import Frozen, Tool
from pegboard.core.surface.searchable import Group, Searchable
from pegboard.ports import RankContext, Ranked, Ranking
from pegboard.search.ranker import ToolRanker

VERBS = ("create", "delete", "list", "update", "read", "send", "count", "archive")
NOUNS = ("invoice", "customer", "branch", "message", "photo", "meeting", "ticket", "folder", "price", "flight")


def tool(plugin: str, name: str, description: str = "", /, **parameters: str) -> Tool:
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    schema = Frozen({"type": "object", "properties": properties})
    return Tool(plugin=plugin, name=name, wire=f"{plugin}__{name}", description=description, input_schema=schema)


def office(plugins: int = 3) -> tuple[Tool, ...]:
    """Return eighty tools for each plugin, of like names and different words."""
    return tuple(
        tool(f"office{n}", f"{verb}_{noun}", f"{verb.title()}s one {noun} of office {n}.", reference=f"Which {noun}.")
        for n in range(plugins)
        for verb in VERBS
        for noun in NOUNS
    )


def among(*tools: Tool, groups: Sequence[Group] = (), **plugins: str) -> Searchable:
    return Searchable(tools=tools, plugins=Frozen(plugins), groups=tuple(groups))


def ranked(
    queries: str | Sequence[str],
    within: Searchable,
    *,
    limit: int = 5,
    messages: Sequence[str] = (),
    ranker: ToolRanker | None = None,
) -> Ranking:
    asked = [queries] if isinstance(queries, str) else queries
    context = RankContext(messages=tuple(messages))
    return (ranker or ToolRanker()).rank(asked, within, context, limit=limit)


def names(ranking: Ranking) -> list[str]:
    return [name(hit) for hit in ranking.hits]


def name(hit: Ranked) -> str:
    return hit.found.id if isinstance(hit.found, Tool) else hit.found.name
