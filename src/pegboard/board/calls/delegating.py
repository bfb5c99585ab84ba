"""Hand a task to a child session, which the host runs (P8, L8)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Final

from pegboard.board.services import Services
from pegboard.board.session_info import child_of
from pegboard.board.snapshot import Snapshot
from pegboard.core.access.host_duties import delegates
from pegboard.core.model.naming import did_you_mean, one_line
from pegboard.core.model.tools import JsonObject, Tool, text_result
from pegboard.core.state.call_plans import CallAnswer, answer
from pegboard.errors import UsageError

log = logging.getLogger("pegboard")

SMALLEST: Final = "task"
"""The kind of a child that nobody states a kind for: it has the smallest loadout."""


async def delegate(
    services: Services, snapshot: Snapshot, tool: Tool, arguments: JsonObject
) -> tuple[Snapshot, CallAnswer]:
    """Return what the host's callback answers for a child session that does the task.

    With an agent that this one may delegate to, the child works under that agent's profile; without an agent it is a
    child of the kind. Another agent's name is not found.
    """
    run, agent = services.delegation.run, arguments.get("agent")
    assert run is not None
    known = delegates(snapshot.permissions)
    if agent is not None and agent not in known:
        hint = did_you_mean(agent, known) or (f"There are: {', '.join(known)}." if known else "Name none.")
        message = f"Agent '{one_line(agent, limit=100)}' was not found. {hint}"
        return snapshot, answer("not_found", message, tool=tool)
    try:
        child = child_of(
            snapshot.info, services.world, str(arguments.get("kind") or agent or SMALLEST), agent, delegates=known
        )
    except UsageError as error:
        return snapshot, answer("refused", f"{error.message} {error.hint}".strip(), tool=tool)
    return snapshot, await _answered(services, tool, run(child, str(arguments["task"])))


async def _answered(services: Services, tool: Tool, work: Awaitable[object]) -> CallAnswer:
    """Return what the host's callback answers; what it raises is the error of this call alone."""
    try:
        text = await work
    except Exception as error:  # the host's own code may raise anything
        log.debug("a delegated task failed", exc_info=True)
        why = services.masker.text(f"{type(error).__name__}: {error}")
        return answer("error", f"The task was not done. {why}", tool=tool)
    if not isinstance(text, str):
        return answer("error", f"The task has no answer: board.on_delegate returned {type(text).__name__}.", tool=tool)
    return CallAnswer(status="ok", result=text_result(services.masker.text(text)), tool=tool)
