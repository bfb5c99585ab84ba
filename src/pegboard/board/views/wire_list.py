"""What pays under a host's prompt cache: decided once a session, and what stays on the wire (D3, F4)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pegboard.board import children
from pegboard.board.calls import meta_tools
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import starting_tools
from pegboard.core.state.sessions import DEFAULT
from pegboard.core.surface.cache_cost import Sizes, plan, wire_list
from pegboard.core.surface.hints import hints

if TYPE_CHECKING:
    from pegboard.board.session import Session
    from pegboard.core.state.surfaces import Surface


def decide(session: Session, access: CompiledPermissions) -> None:
    """Take everything out from the start where that is cheapest; stands for the whole session (F4)."""
    if session.host.cache is None or session.planned:
        return
    session.planned = True
    if plan(_sizes(session, access), session.host).everything:
        session.circumstances = replace(session.circumstances, everything=True)


def _sizes(session: Session, access: CompiledPermissions) -> Sizes:
    board = session.board
    start = starting_tools(access)
    tools = [tool for tool in access.permitted if tool.id not in start.head and tool.id not in start.tail]
    count = board.parts.counter.count
    lines = hints(access, count, budget=access.agent.hint_tokens)
    text = "\n".join(lines)
    named = all(tool.wire in text or tool.name in text for tool in tools)
    return Sizes(
        everything=board.price(tools),
        units=len(tools) if named else len({tool.plugin for tool in tools}),
        by="tool" if named else "plugin",
        meta=board.price(meta_tools.tools(session, meta_tools.view(session, access, DEFAULT))),
        hints=0 if session.host.calls_through else count(text),
    )


def wire(session: Session, surface: Surface) -> tuple[Tool, ...]:
    """Return the tool list for the next request: what is out, and what lapsed while keeping it is cheaper (D3)."""
    access = children.access_now(session)
    now = tuple(out.tool for out in surface.tools)
    session.unloaded -= {tool.wire for tool in now}
    session.wired = wire_list(
        session.wired,
        now,
        lambda tool: session.board.price([tool]),
        cache=session.host.cache,
        turns_left=float(surface.turn),
        may_stay=lambda tool: tool.wire not in session.unloaded and access.permits(tool),
    )
    return session.wired


def still_wired(session: Session, tool: Tool) -> bool:
    """Return whether the model still has the schema of a tool whose lease lapsed: a call renews it and runs."""
    return tool.wire not in session.unloaded and any(kept.wire == tool.wire for kept in session.wired)
