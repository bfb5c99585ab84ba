"""Which servers and tools take how many tokens where all of them are listed: the greatest, and what the rest takes."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nlargest

from pegboard.board.services import Services
from pegboard.core.model.catalog import Catalog
from pegboard.core.model.tools import Plugin
from pegboard.operators.counting import CatalogCounting
from pegboard.operators.masked import Name, Verbatim, masked, shown_names


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedTool:
    """A tool by its one name for models, and how many tokens its definition takes."""

    name: Name
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedServer:
    """A server or plugin, what its tools take together, the greatest of them, and how many more there are."""

    name: Name
    kind: Verbatim
    tokens: int
    tools: tuple[MappedTool, ...]
    more: int
    more_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenMap:
    """The servers and plugins whose tools take the most tokens, and what the others take.

    Attributes:
        servers: the greatest, the greatest first.
        tokens: what everything that is known takes.
        more: how many are not listed.
        more_tokens: what those take.
        unknown: of how many the tools are not known.
    """

    servers: tuple[MappedServer, ...]
    tokens: int
    more: int
    more_tokens: int
    unknown: int


class TokenMaps:
    """The map of the catalog, kept until the catalog changes."""

    def __init__(self, services: Services, counting: CatalogCounting) -> None:
        self._services = services
        self._counting = counting
        self._kept: tuple[Catalog, int, int, TokenMap] | None = None

    async def newest(self, *, servers: int, tools: int) -> TokenMap | None:
        """Return the map of what is known by now, or None while the tokens are being counted."""
        if not await self._counting.done():
            return None
        catalog = self._services.world.catalog
        if self._kept is None or self._kept[:3] != (catalog, servers, tools):
            self._kept = catalog, servers, tools, self._made(catalog, servers, tools)
        return masked(self._kept[3], await shown_names(self._services))

    def _made(self, catalog: Catalog, servers: int, tools: int) -> TokenMap:
        plugins = [plugin for plugin in catalog.plugins.values() if plugin.tools]
        sizes = {plugin.name: self._services.prices(plugin.tools) for plugin in plugins}
        shown = nlargest(servers, plugins, key=lambda plugin: (sizes[plugin.name], plugin.name))
        total = sum(sizes.values())
        return TokenMap(
            servers=tuple(self._server(plugin, sizes[plugin.name], tools) for plugin in shown),
            tokens=total,
            more=len(plugins) - len(shown),
            more_tokens=total - sum(sizes[plugin.name] for plugin in shown),
            unknown=sum(not plugin.tools for plugin in catalog.plugins.values()),
        )

    def _server(self, plugin: Plugin, tokens: int, tools: int) -> MappedServer:
        sizes = {tool.wire: self._services.prices((tool,)) for tool in plugin.tools}
        shown = nlargest(tools, sizes, key=lambda wire: (sizes[wire], wire))
        return MappedServer(
            name=plugin.name,
            kind=plugin.kind,
            tokens=tokens,
            tools=tuple(MappedTool(name=wire, tokens=sizes[wire]) for wire in shown),
            more=len(sizes) - len(shown),
            more_tokens=tokens - sum(sizes[wire] for wire in shown),
        )
