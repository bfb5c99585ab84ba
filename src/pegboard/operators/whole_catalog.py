"""Everything that there is, ready to be searched: indexed beside everything else, once for all agents."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pegboard.board.services import Services
from pegboard.core.model.agents import World
from pegboard.core.surface.searchable import Searchable, everything
from pegboard.operators.near_names import NearNames

SOON: Final = 0.1
"""For so many seconds the first search of all waits for the index."""

log = logging.getLogger("pegboard")

T = TypeVar("T")


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
        self._tasks: set[asyncio.Task[Any]] = set()

    async def indexed(self) -> Indexed | None:
        """Return everything that there is now; None while it is indexed for the first time and that takes long."""
        world, known = self._services.world, self._indexed
        if known is not None and _same(known.world, world):
            await self._services.ranker.prepare(known.among)
            return known
        making = self._making
        if making is None or not _same(making[0], world):
            making = self._making = (world, self._started(self._made(world), "index everything"))
        done, _ = await asyncio.wait({making[1]}, timeout=SOON if known is None else None)
        if not done or making[1].cancelled():
            return None
        if self._making is making:
            self._making = None
        self._indexed = making[1].result()
        return self._indexed

    async def prepared(self, among: Searchable) -> bool:
        """Return whether a part of it can be searched; waits a moment where that is indexed for the first time."""
        task = self._started(self._services.ranker.prepare(among), "index a part")
        done, _ = await asyncio.wait({task}, timeout=SOON)
        if not done or task.cancelled():
            return False
        task.result()
        return True

    async def aclose(self) -> None:
        """End what is being indexed; nobody is told."""
        ending = tuple(self._tasks)
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)

    def _started(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Return a task that somebody may wait for no longer than they like; its failure is logged."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("could not %s", task.get_name(), exc_info=error)

    async def _made(self, world: World) -> Indexed:
        made = await asyncio.to_thread(_made, world)
        await self._services.ranker.prepare(made.among)
        return made


def _same(one: World, other: World) -> bool:
    return one.catalog is other.catalog and one.toolkits is other.toolkits


def _made(world: World) -> Indexed:
    return Indexed(world=world, among=everything(world), names=NearNames(world))
