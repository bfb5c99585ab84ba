"""Whether the hooks of a configuration take a message, for `pegboard check --probe`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pegboard.console.hooks.http_messenger import HttpMessenger
from pegboard.console.hooks.messages import of_test, written
from pegboard.core.model.hooks import Hook
from pegboard.problems import Problem


async def untaken(hooks: Sequence[Hook], messenger: HttpMessenger) -> tuple[Problem, ...]:
    """Send each hook a message that says nothing, and return those that did not take it as warnings."""
    whys = await asyncio.gather(*(messenger.deliver(hook.url, *written(of_test(), hook)) for hook in hooks))
    return tuple(
        Problem(
            severity="warning",
            code="hook_failed",
            message=f"a message to '{hook.host}' did not arrive: {why}.",
            hint="Nobody is told there of what waits; nothing else depends on it.",
            place=hook.place,
        )
        for hook, why in zip(hooks, whys, strict=True)
        if why
    )
