"""Carry out the host's own tools, for agents that list them: each by a function of its own (§4, X4)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from pegboard.board.calls.call_request import Answered, denied
from pegboard.board.calls.delegating import delegate
from pegboard.board.calls.self_configuring import self_config
from pegboard.board.meta_tools import duty_fault
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.core.model.tools import Frozen, JsonObject, Tool
from pegboard.core.state.call_plans import refused_as_unavailable

Duty = Callable[[Services, Snapshot, Tool, JsonObject], Awaitable[Answered]]
"""A function that carries out a call whose arguments are valid."""
_DUTIES: Final[Mapping[str, Duty]] = Frozen({"delegate": delegate, "self_config": self_config})


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
