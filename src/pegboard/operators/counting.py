"""Count the tokens of many tools without keeping everybody else waiting (F4)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import Final

from pegboard.board.services import Services
from pegboard.core.access.derived import once_per_permissions
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.catalog import Catalog
from pegboard.core.model.tools import Tool
from pegboard.core.state.requirements import usable
from pegboard.core.state.sessions import HintForm
from pegboard.core.surface.hinted import hinted_plugins
from pegboard.core.surface.purposes import purposes

AT_ONCE: Final = 0.005
"""For so many seconds somebody computes before others run."""
SOON: Final = 0.05
"""For so many seconds somebody waits for what is being computed."""

log = logging.getLogger("pegboard")


async def count_ahead(services: Services, tools: Iterable[Tool]) -> None:
    """Count the tokens of tools, so that their price is known; others run meanwhile."""
    until = time.perf_counter() + AT_ONCE
    for tool in tools:
        services.prices((tool,))
        if time.perf_counter() > until:
            await asyncio.sleep(0)
            until = time.perf_counter() + AT_ONCE


class CatalogCounting:
    """The tokens of everything there is, and what texts say of it, computed beside everything else.

    ``counted`` is called when something is known that somebody had to go without.
    """

    def __init__(self, services: Services, counted: Callable[[], object]) -> None:
        self._services = services
        self._say = counted
        self._done: Catalog | None = None
        self._counting: tuple[Catalog, asyncio.Task[None]] | None = None
        self._looking: dict[Part, asyncio.Task[None]] = {}
        self._one = asyncio.Lock()
        self._looked = False

    async def done(self) -> bool:
        """Return whether the tokens of every tool are known; waits a moment where they are not."""
        catalog = self._services.world.catalog
        if self._done is catalog:
            return True
        if self._counting is None or self._counting[0] is not catalog:
            if self._counting is not None:
                self._counting[1].cancel()
            self._counting = catalog, asyncio.create_task(self._count(catalog), name="count the tokens of all tools")
        await asyncio.wait({self._counting[1]}, timeout=SOON)
        return self._done is catalog

    async def _count(self, catalog: Catalog) -> None:
        try:
            await count_ahead(self._services, catalog)
            self._done = catalog
        except Exception:
            log.exception("the tokens of all tools could not be counted")  # whoever asks next tries again
            return
        finally:
            if self._counting is not None and self._counting[0] is catalog:
                self._counting = None
        self._say()

    async def aclose(self) -> None:
        """End what is being computed; nobody is told."""
        ending = set(self._looking.values())
        if self._counting is not None:
            ending.add(self._counting[1])
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)

    async def knows_surface(
        self, permissions: CompiledPermissions, loadout: str | None, form: HintForm, until: float
    ) -> bool:
        """Return whether a surface of these permissions is quickly made; waits for that ``until``, in loop time."""
        part = permissions, loadout, form
        if not _looked(*part):
            if part not in self._looking:
                self._looking[part] = asyncio.create_task(self._look(part), name="look at all tools")
            rest = max(until - asyncio.get_running_loop().time(), 0.0)
            await asyncio.wait({self._looking[part]}, timeout=rest)
        return bool(_looked(*part))

    async def _look(self, part: Part) -> None:
        try:
            async with self._one:
                await asyncio.to_thread(_look, *part)
            _looked(*part).append(True)
            self._looked = True
        except Exception:
            log.exception("what all tools say could not be read")
        finally:
            del self._looking[part]
        if self._looked and not self._looking:
            self._looked = False
            self._say()


Part = tuple[CompiledPermissions, str | None, HintForm]
"""What a surface depends on that many sessions share."""


def _look(permissions: CompiledPermissions, loadout: str | None, form: HintForm) -> None:
    usable(permissions)
    if hinted_plugins(permissions, loadout, form):
        purposes(permissions, loadout)


@once_per_permissions
def _looked(permissions: CompiledPermissions, loadout: str | None, form: HintForm) -> list[bool]:  # noqa: ARG001
    return []
