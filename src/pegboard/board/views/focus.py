"""What focus rules make of a message: the tools of one step (F3)."""

from __future__ import annotations

import logging
from typing import Any

from pegboard.board.services import Services
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.tools import JsonObject
from pegboard.core.surface.focus import MESSAGE, Directive, answered, directive, members, overlay, rules
from pegboard.core.surface.surfaces import Surface
from pegboard.ports import FocusRules

log = logging.getLogger("pegboard")


async def focus_of(
    services: Services, permissions: CompiledPermissions, surface: Surface, message: str | None
) -> JsonObject | None:
    """Return the focus that a message asks for, or None."""
    if message is None or services.focus is None:
        return None
    bounded = message[:MESSAGE]
    asked = [
        await _directive(services, services.focus, permissions, surface, toolkit, rule, bounded)
        for toolkit, rule in rules(permissions)
    ]
    return overlay(surface, (one for one in asked if one is not None))


async def _directive(
    services: Services,
    judge: FocusRules,
    permissions: CompiledPermissions,
    surface: Surface,
    toolkit: str,
    rule: JsonObject,
    message: str,
) -> Directive | None:
    hook: Any = rule.get("python")
    if hook is None:
        if not judge.matches(rule["when"], message):
            return None
        return directive(permissions, toolkit, rule.get("tools", ()), rule.get("choice", "auto"))
    own = members(permissions, toolkit)
    visible = [loaded.tool.wire for loaded in surface.tools if loaded.tool.id in own]
    try:
        answer = answered(await judge.ask(hook, message, visible))
    except Exception as error:  # a hook's own code may raise anything
        why = services.masker.text(f"{type(error).__name__}: {error}")
        log.warning("the focus hook %s of toolkit %s is passed over: %s", hook, toolkit, why)
        return None
    return directive(permissions, toolkit, *answer) if answer is not None else None
