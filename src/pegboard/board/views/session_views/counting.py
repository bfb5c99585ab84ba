"""Count the tokens of many tools without keeping everybody else waiting (F4)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from pegboard.board.services import Services
from pegboard.core.access.derived import once_per_permissions
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.tools import Tool
from pegboard.core.state.requirements import usable

AT_ONCE: Final = 200
"""Of how many tools the tokens are counted before others run: a few milliseconds."""


async def count_ahead(services: Services, tools: Sequence[Tool]) -> None:
    """Count the tokens of tools, so that their price is known; others run meanwhile."""
    for start in range(0, len(tools), AT_ONCE):
        services.prices(tools[start : start + AT_ONCE])
        if len(tools) > AT_ONCE:
            await asyncio.sleep(0)


async def count_usable_ahead(services: Services, access: CompiledPermissions) -> None:
    """Count the tokens of everything that an agent may use, once for its permissions."""
    counted = _counted(access)
    if not counted:
        await count_ahead(services, usable(access))
        counted.append(True)


@once_per_permissions
def _counted(access: CompiledPermissions) -> list[bool]:  # noqa: ARG001
    return []
