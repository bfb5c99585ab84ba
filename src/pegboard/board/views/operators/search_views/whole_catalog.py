"""Everything that there is, ready to be searched: indexed beside everything else, once for all agents."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from pegboard.board.services import Services
from pegboard.board.views.operators.search_views.near_names import NearNames
from pegboard.core.model.agents import World
from pegboard.core.surface.searchable import Searchable, everything

SOON: Final = 0.1
"""For so many seconds the first search of all waits for the index."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Indexed:
    """Everything that a world has, of which the ranker has an index, and its names."""

    world: World
    among: Searchable
    names: NearNames


class WholeCatalog:
    """The index over everything of a board; it follows the catalog."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._indexed: Indexed | None = None
        self._making: tuple[World, asyncio.Task[Indexed]] | None = None
        self._preparing: set[asyncio.Task[None]] = set()

    async def indexed(self) -> Indexed | None:
        """Return everything that there is now; None while it is indexed for the first time and that takes long."""
        world, known = self._services.world, self._indexed
        if known is not None and _same(known.world, world):
            await self._services.ranker.prepare(known.among)
            return known
        making = self._making
        if making is None or not _same(making[0], world):
            making = self._making = (world, asyncio.create_task(self._made(world), name="index everything"))
        done, _ = await asyncio.wait({making[1]}, timeout=SOON if known is None else None)
        if not done:
            return None
        self._making = None
        self._indexed = making[1].result()
        return self._indexed

    async def prepared(self, among: Searchable) -> bool:
        """Return whether a part of it can be searched; waits a moment where that is indexed for the first time."""
        task = asyncio.create_task(self._services.ranker.prepare(among), name="index a part")
        self._preparing.add(task)
        task.add_done_callback(self._preparing.discard)
        done, _ = await asyncio.wait({task}, timeout=SOON)
        for one in done:
            one.result()
        return bool(done)

    async def _made(self, world: World) -> Indexed:
        made = await asyncio.to_thread(_made, world)
        await self._services.ranker.prepare(made.among)
        return made


def _same(one: World, other: World) -> bool:
    return one.catalog is other.catalog and one.toolkits is other.toolkits


def _made(world: World) -> Indexed:
    return Indexed(world=world, among=everything(world), names=NearNames(world))
