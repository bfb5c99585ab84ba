"""Carry out the host's own tools, for agents that list them: each by a function of its own (§4, X4)."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from pegboard.board.calls.call_request import Answered, denied
from pegboard.board.calls.self_configuring import self_config
from pegboard.board.meta_tools import duty_fault
from pegboard.board.services import Services
from pegboard.board.session_info import child_of
from pegboard.board.snapshot import Snapshot
from pegboard.core.access.host_duties import delegates
from pegboard.core.model.naming import did_you_mean, one_line
from pegboard.core.model.tools import Frozen, JsonObject, Tool, text_result
from pegboard.core.state.call_plans import CallAnswer, answer, refused_as_unavailable
from pegboard.errors import UsageError

log = logging.getLogger("pegboard")

SMALLEST: Final = "task"
"""The kind of a child that nobody states a kind for: it has the smallest loadout."""


def is_duty(tool: Tool) -> bool:
    """Return whether a managed tool is one of the host's own and no meta-tool."""
    return tool.wire in _DUTIES


async def call_duty(services: Services, snapshot: Snapshot, tool: Tool, arguments: JsonObject) -> Answered:
    """Return the session after a call of one of the host's own tools, and its answer; it is audited as any call."""
    if fault := duty_fault(services, tool.wire):
        return snapshot, await denied(services, snapshot, refused_as_unavailable(tool, fault), tool.wire)
    digest, started = await services.recorder.digest(arguments), time.perf_counter()
    status = "cancelled"
    try:
        snapshot, answered = await _DUTIES[tool.wire](services, snapshot, tool, arguments)
        status = answered.status
    finally:
        duration = round((time.perf_counter() - started) * 1000, 3)
        key, turn = snapshot.info.key, snapshot.state.turn
        record = services.recorder.entry(
            key, turn, "call", tool.wire, "allowed", duration=duration, outcome=status, arguments=digest
        )
        services.recorder.note_later(record, "called")
    return snapshot, answered


async def delegate(services: Services, snapshot: Snapshot, tool: Tool, arguments: JsonObject) -> Answered:
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


Duty = Callable[[Services, Snapshot, Tool, JsonObject], Awaitable[Answered]]
"""A function that carries out a call whose arguments are valid."""
_DUTIES: Final[Mapping[str, Duty]] = Frozen({"delegate": delegate, "self_config": self_config})
