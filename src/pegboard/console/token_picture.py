"""The picture of which servers and tools take how many tokens: tiles of a treemap, each a link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pegboard.console.context import Context
from pegboard.console.templating import number, query, shown
from pegboard.console.treemap import Box, fitting, squarified
from pegboard.operators.token_map import MappedServer, TokenMap

WIDTH: Final = 960
HEIGHT: Final = 420
TEXT: Final = 15
"""How large letters are in tiles of servers; those of tools are a little smaller."""
SMALL: Final = 14
_HEAD: Final = 24.0
_MARGIN: Final = 2.0
_INSIDE: Final = 6.0
_LINES: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One tile: where it is, what it says as far as it has room, what it is, and where it leads; nowhere if empty."""

    box: Box
    label: str
    tokens: str
    title: str
    href: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTile:
    """The tile of a server, with those of its tools in it."""

    own: Tile
    tools: tuple[Tile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPicture:
    """The tiles, and what they stand for."""

    width: int
    height: int
    tiles: tuple[ServerTile, ...]
    of: TokenMap


async def token_picture(context: Context) -> TokenPicture | None:
    """Return the picture of what is known; None while its tokens are being counted, and where there are none."""
    found = await context.operations.token_map()
    return picture_of(found) if found is not None and found.tokens else None


def picture_of(found: TokenMap) -> TokenPicture:
    """Return the tiles of a map."""
    sizes = [server.tokens for server in found.servers] + [found.more_tokens]
    boxes = squarified(sizes, Box(x=0, y=0, width=WIDTH, height=HEIGHT))
    tiles = [_server(server, box) for server, box in zip(found.servers, boxes, strict=False)]
    if found.more:
        label = f"and {number(found.more)} more"
        tiles.append(ServerTile(own=_tile(boxes[-1], label, found.more_tokens, "", TEXT), tools=()))
    return TokenPicture(width=WIDTH, height=HEIGHT, tiles=tuple(tiles), of=found)


def _server(server: MappedServer, box: Box) -> ServerTile:
    own = _tile(box, shown(server.name, 80), server.tokens, query("/console/server", name=server.name), TEXT)
    inside = box.within(_MARGIN, _HEAD)
    if inside.width < _LINES or inside.height < _LINES:
        return ServerTile(own=own, tools=())
    sizes = [tool.tokens for tool in server.tools] + [server.more_tokens]
    boxes = squarified(sizes, inside)
    tools = [
        _tile(
            at,
            shown(tool.name, 80),
            tool.tokens,
            query("/console/explain", q=tool.name),
            SMALL,
            shown(tool.name.removeprefix(f"{server.name}__"), 80),
        )
        for tool, at in zip(server.tools, boxes, strict=False)
        if at.area
    ]
    if server.more:
        href = query("/console/server", name=server.name)
        tools.append(_tile(boxes[-1], f"and {number(server.more)} more", server.more_tokens, href, SMALL))
    return ServerTile(own=own, tools=tuple(tools))


def _tile(box: Box, name: str, tokens: int, href: str, size: int, short: str = "") -> Tile:
    """Return a tile; on it a tool has its ``short`` name, since it stands in the tile of its server."""
    inside = short or name
    room = box.width - 2 * _INSIDE
    label = fitting(inside, room, size) if box.height >= _LINES else ""
    count = number(tokens)
    beside = label and fitting(f"{inside}  {count}", room, size) == f"{inside}  {count}"
    return Tile(box=box, label=label, tokens=count if beside else "", title=f"{name}: {count} tokens", href=href)
