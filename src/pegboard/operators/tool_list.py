"""All tools that there are, page by page: server, tokens, calls, failures, and who may use each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from pegboard.board.catalog.loader import IN_PROCESS
from pegboard.board.discover import discover_every
from pegboard.board.services import Services
from pegboard.core.access.read_only import is_destructive
from pegboard.core.model.naming import first_sentence
from pegboard.core.model.tools import Tool
from pegboard.operators.counting import count_ahead
from pegboard.operators.masked import Name, mask_value, shown_names
from pegboard.operators.search import OperatorSearch
from pegboard.operators.tool_figures import ToolFigures, tool_figures

DAYS: Final = 7
"""Of how many days the figures are."""
LONGEST_DESCRIPTION: Final = 300
"""How many characters of the first sentence of a description are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTool:
    """One tool.

    Attributes:
        id: its id.
        wire: its name on the wire.
        server: the server or plugin that it belongs to.
        title: its name for people.
        description: the first sentence of its own description, cut where it is long.
        tokens: those of its definition.
        read_only: whether it says that it changes nothing.
        destructive: whether it may destroy something, as far as is known.
        unavailable: why it cannot run, or nothing.
        agents: how many of the operator's agents may use it.
        calls: its calls of the last week.
        errors: how many of them failed.
    """

    id: Name
    wire: Name
    server: Name
    title: str
    description: str
    tokens: int
    read_only: bool
    destructive: bool
    unavailable: str
    agents: int
    calls: int
    errors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPage:
    """A part of all tools; ``indexing`` is whether the search is not ready yet."""

    rows: tuple[ListedTool, ...]
    total: int
    indexing: bool = False


async def list_tools(
    services: Services, search: OperatorSearch, agents: Sequence[str], *, query: str = "", offset: int = 0, limit: int
) -> ToolPage:
    """Return a part of all tools in the order of the catalog; with a query what answers it, the best first."""
    await discover_every(services, IN_PROCESS)
    await services.compiler.refresh()
    catalog = services.world.catalog
    if query.strip():
        answer = await search.for_agents(agents, query, limit=100)
        names = await shown_names(services)
        known = (catalog.find_tool(names.meant(hit.name)) for hit in answer.hits if hit.kind == "tool")
        found = [tool for tool in known if tool is not None]
        total, indexing = len(found), answer.indexing
        page = found[offset : offset + limit]
    else:
        total, indexing = len(catalog), False
        page = list(islice(catalog, offset, offset + limit))
    await count_ahead(services, page)
    figures = {one.name: one for one in await tool_figures(services, "tool", days=DAYS, agents=frozenset(agents))}
    compiled = [services.compiler.permissions_of_agent(agent) for agent in agents]
    rows = tuple(
        _row(services, tool, sum(one.permits(tool) for one in compiled), figures.get(tool.id)) for tool in page
    )
    return mask_value(ToolPage(rows=rows, total=total, indexing=indexing), await shown_names(services))


def _row(services: Services, tool: Tool, agents: int, figures: ToolFigures | None) -> ListedTool:
    return ListedTool(
        id=tool.id,
        wire=tool.wire,
        server=tool.plugin,
        title=tool.title,
        description=first_sentence(tool.description)[:LONGEST_DESCRIPTION],
        tokens=services.prices((tool,)),
        read_only=tool.read_only,
        destructive=is_destructive(tool),
        unavailable=tool.unavailable,
        agents=agents,
        calls=figures.calls if figures is not None else 0,
        errors=figures.errors if figures is not None else 0,
    )
