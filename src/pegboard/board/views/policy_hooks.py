"""Let the hooks of toolkits write their policy texts, each for the members that are visible (T6)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Final

from pegboard.board.services import Services
from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions
from pegboard.core.model.tools import EMPTY, Tool
from pegboard.core.state.sessions import State
from pegboard.core.surface import policy
from pegboard.core.surface.policy import HookedPolicy, Written

PATIENCE: Final = 2.0
"""How many seconds a hook may take, its import included."""
log = logging.getLogger("pegboard")


async def initial_policy(services: Services, permissions: CompiledPermissions, state: State) -> str:
    """Return the policy of what is loaded from the start, without secrets."""
    written = await _written(services, permissions, policy.hooked_at_start(permissions, state))
    return policy.without_secrets(services.masker, permissions, policy.initial(permissions, state, written))


async def later_policy(
    services: Services, permissions: CompiledPermissions, state: State, tools: Iterable[Tool]
) -> str:
    """Return the policy that comes with these tools, without secrets."""
    added = tuple(tools)
    written = await _written(services, permissions, policy.hooked_with(permissions, state, added))
    return policy.without_secrets(services.masker, permissions, policy.later(permissions, state, added, written))


async def _written(services: Services, permissions: CompiledPermissions, asked: Iterable[HookedPolicy]) -> Written:
    """Return what the hooks write; one that fails writes nothing, and is asked again the next time."""
    known, found = _answers(permissions), dict[HookedPolicy, str]()
    for one in asked:
        text = known.get(one)
        if text is None:
            text = await _asked(services, one)
            if text is not None:
                known[one] = text
        found[one] = text or ""
    return found or _NOTHING


_NOTHING: Final[Mapping[HookedPolicy, str]] = EMPTY  # type: ignore[assignment]


@once_per_permissions
def _answers(permissions: CompiledPermissions) -> dict[HookedPolicy, str]:  # noqa: ARG001
    """Return what hooks have written so far: the same members have the same text, so that nothing moves (F1)."""
    return {}


async def _asked(services: Services, one: HookedPolicy) -> str | None:
    if services.hooks is None:
        return None
    try:
        async with asyncio.timeout(PATIENCE):
            text = await services.hooks.ask(one.hook, list(one.members))
    except (Exception, SystemExit) as error:  # a hook's own code may raise anything
        why = services.masker.text(f"{type(error).__name__}: {error}")
        log.warning("the policy hook %s of toolkit %s is passed over: %s", one.hook, one.toolkit, why)
        return None
    if isinstance(text, str):
        return text[: policy.LIMIT]
    log.warning("the policy hook %s of toolkit %s answers no text: %s", one.hook, one.toolkit, type(text).__name__)
    return None
