"""Count the tokens of many tools without keeping everyone else waiting (F4)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final

from pegboard.board.services import Services
from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions
from pegboard.core.model.catalog import Catalog
from pegboard.core.model.tools import Tool
from pegboard.core.state.requirements import usable
from pegboard.core.state.sessions import HintForm
from pegboard.core.surface.hinted import hinted_plugins
from pegboard.core.surface.hints import purposes
from pegboard.support.background import BackgroundComputations

AT_ONCE: Final = 0.005
"""For so many seconds someone computes before others run."""
SOON: Final = 0.05
"""For so many seconds someone waits for what is being computed."""


async def count_ahead(services: Services, tools: Iterable[Tool]) -> None:
    """Count the tokens of tools, so that their price is known; others run meanwhile."""
    left = iter(tools)
    if (first := next(left, None)) is None:
        return
    await asyncio.to_thread(services.prices, (first,))  # the first count of a process reads the vocabulary
    until = time.perf_counter() + AT_ONCE
    for tool in left:
        services.prices((tool,))
        if time.perf_counter() > until:
            await asyncio.sleep(0)
            until = time.perf_counter() + AT_ONCE


class CatalogCounting:
    """The tokens of everything there is, and what texts say of it, computed beside everything else.

    ``counted`` is called when something is known that someone had to go without.
    """

    def __init__(self, services: Services, counted: Callable[[], object] = lambda: None) -> None:
        self._services = services
        self._say = counted
        self._done: Catalog | None = None
        self._counting = BackgroundComputations[Catalog, None](
            "count the tokens of all tools", "the tokens of all tools could not be counted"
        )
        self._looking = BackgroundComputations[Part, None](
            "read all tools", "what all tools say could not be read", self._say_when_all_is_read
        )
        self._one = asyncio.Lock()
        self._looked = False

    async def done(self) -> bool:
        """Return whether the tokens of every tool are known; waits a moment where they are not."""
        catalog = self._services.world.catalog
        if self._done is not catalog:
            self._counting.supersede(catalog)
            with suppress(Exception):  # it is logged, and whoever asks next tries again
                await self._counting.value_within(SOON, catalog, partial(self._count, catalog))
        return self._done is catalog

    async def _count(self, catalog: Catalog) -> None:
        await count_ahead(self._services, catalog)
        self._done = catalog
        self._say()

    async def knows_surface(
        self, permissions: CompiledPermissions, loadout: str | None, form: HintForm, until: float
    ) -> bool:
        """Return whether a surface of these permissions is quickly made; waits for that ``until``, in loop time."""
        part = permissions, loadout, form
        if not _already_counted(*part):
            rest = max(until - asyncio.get_running_loop().time(), 0.0)
            with suppress(Exception):
                await self._looking.value_within(rest, part, partial(self._count_part, part))
        return bool(_already_counted(*part))

    async def _count_part(self, part: Part) -> None:
        async with self._one:
            await asyncio.to_thread(_fill_caches, *part)
        _already_counted(*part).append(True)
        self._looked = True

    def _say_when_all_is_read(self) -> None:
        if self._looked and not self._looking.running:
            self._looked = False
            self._say()

    async def aclose(self) -> None:
        """End what is being computed; no one is told."""
        await self._looking.aclose()
        await self._counting.aclose()


Part = tuple[CompiledPermissions, str | None, HintForm]
"""What a surface depends on that many sessions share."""


def _fill_caches(permissions: CompiledPermissions, loadout: str | None, form: HintForm) -> None:
    usable(permissions)
    if hinted_plugins(permissions, loadout, form):
        purposes(permissions, loadout)


@once_per_permissions
def _already_counted(permissions: CompiledPermissions, loadout: str | None, form: HintForm) -> list[bool]:  # noqa: ARG001
    return []
