"""Hold a message against the focus rules, and calls against the focus (F3)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.core.state.calls import CallAnswer, answer
from pegboard.core.state.sessions import State
from pegboard.core.state.surfaces import Surface
from pegboard.core.surface.focus import MESSAGE, Directive, answered, directive, members, overlay, rules

if TYPE_CHECKING:
    from pegboard.board.session import Session

log = logging.getLogger("pegboard")


async def focus(
    session: Session, access: CompiledPermissions, surface: Surface, message: str | None
) -> JsonObject | None:
    """Return the focus that a message asks for, and bind the session's calls by it until the next surface."""
    found = None
    if message is not None:
        bounded = message[:MESSAGE]
        asked = [await _asked(session, access, surface, kit, rule, bounded) for kit, rule in rules(access)]
        found = overlay(surface, (one for one in asked if one is not None))
    session.focus = None if found is None else frozenset(found["allowed_tools"])
    return found


async def _asked(
    session: Session, access: CompiledPermissions, surface: Surface, toolkit: str, rule: JsonObject, message: str
) -> Directive | None:
    held = session.board.parts.focus
    if held is None:
        return None
    hook: Any = rule.get("python")
    if hook is None:
        if not held.matches(rule["when"], message):
            return None
        return directive(access, toolkit, rule.get("tools", ()), rule.get("choice", "auto"))
    own = members(access, toolkit)
    shown = [out.tool.wire for out in surface.tools if out.tool.id in own]
    try:
        said = answered(await held.ask(hook, message, shown))
    except Exception as error:  # a hook's own code may raise anything
        why = session.board.masker.text(f"{type(error).__name__}: {error}")
        log.warning("the focus hook %s of toolkit %s is passed over: %s", hook, toolkit, why)
        return None
    return directive(access, toolkit, *said) if said is not None else None


async def outside(session: Session, state: State, tool: Tool) -> CallAnswer | None:
    """Return the refusal of a call that the focus of the newest surface leaves out; None where it may run."""
    if session.focus is None or tool.wire in session.focus:
        return None
    message = f"'{tool.wire}' is outside the focus of this step: {', '.join(sorted(session.focus))}."
    await session.board.recorder.denied(session.key, state.turn, subject=tool.wire, reason=message, outcome="focus")
    return answer("refused", message, tool=tool)
