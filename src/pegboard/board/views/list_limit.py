"""What a provider's limit on the number of tools leaves of a session's list (D4)."""

from __future__ import annotations

import logging
from dataclasses import replace

from pegboard.board.meta_tools import meta_tools, runnable_host_tools, view
from pegboard.board.services import Services
from pegboard.board.session_info import SessionInfo
from pegboard.board.snapshot import Snapshot
from pegboard.core.model.leases import ALWAYS
from pegboard.core.state.active_tools import active_tools, starting_tools

log = logging.getLogger("pegboard")


def with_room(services: Services, snapshot: Snapshot, room: int) -> SessionInfo | None:
    """Return a session whose start is shortened until its list has at most this many tools; None where it has.

    Args:
        services: of the board.
        snapshot: the session.
        room: how many tools of the session a request has place for.
    """
    info, permissions, state = snapshot.info, snapshot.permissions, snapshot.state
    start, active = starting_tools(permissions), active_tools(permissions, state)
    listed = active if not info.host.list_is_fixed else [tool_id for tool_id in active if tool_id in start]
    count, others = len(start), runnable_host_tools(services, permissions)
    if len(listed) + len(others) + len(meta_tools(services, info, view(services, info, permissions, state))) <= room:
        return None
    shorter = replace(info, constraints=replace(info.constraints, most_at_start=max(count - 1, 0)))
    may = services.compiler.permissions(shorter, snapshot.narrowed_above)
    managing = meta_tools(services, shorter, view(services, shorter, may, state))
    most = max(room - len(others) - len(managing) - (len(listed) - count), 0)
    return replace(info, constraints=replace(info.constraints, most_at_start=most)) if most < count else None


def report(services: Services, before: Snapshot, after: Snapshot) -> None:
    """Report what is not listed: one line in the log, and an event."""
    key, kept = after.info.key, starting_tools(after.permissions)
    start = active_tools(before.permissions, before.state)
    left = [one.tool.wire for tool_id, one in start.items() if tool_id not in kept and one.until is ALWAYS]
    if not left:
        return
    alone = after.permissions.agent.dialect == "toolkits"
    reached = "loads those that toolkits have, as its dialect wants" if alone else "finds, loads and calls these"
    text = (
        f"{len(left)} of the {len(starting_tools(before.permissions))} tools that agent '{key.agent}' has from the "
        f"start are not listed, from '{left[0]}' on, since a request to this model has no place for more. The model "
        f"{reached}. Put tools into toolkits, or list fewer."
    )
    log.warning("%s", text)
    about = {"principal": key.principal, "agent": key.agent, "session": key.session}
    services.events.emit("adapted", {**about, "subject": "form:tools", "reason": text})
