"""What a session tells a model: its surface, and what a client reads once (F1, F2)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pegboard.board.calls import focus, meta_tools
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.state.active_tools import loadable, resolve
from pegboard.core.state.surfaces import Costs, Surface
from pegboard.core.surface import policy
from pegboard.core.surface.hints import hints
from pegboard.core.surface.suffix import suffix

if TYPE_CHECKING:
    from pegboard.board.session import Session


async def surface(session: Session, message: str | None, *, loaded: bool) -> Surface:
    """Return what goes to the model at this step; without ``loaded`` the part that no load changes."""
    state = await session.state() if loaded else session.start
    access = await session.looked(state)
    state = session.settled(access, state)
    found = resolve(
        access,
        state,
        session=session.key.session if session.stable else None,
        meta=meta_tools.tools(session, meta_tools.view(session, access, state)),
    )
    count, budget = session.board.parts.counter.count, access.agent.hint_tokens
    said = replace(
        found,
        hints=() if session.host.calls_through else hints(access, count, budget=budget, state=state),
        suffix=suffix(access, state) if loaded else "",
        policy=session.board.masker.text(policy.initial(access, state)),
    )
    narrowed = await focus.focus(session, access, said, message) if loaded else None
    session.board.meter.surfaced(session.key, said)
    return replace(said, focus=narrowed, count=lambda: costs(session, access, said))


def costs(session: Session, access: CompiledPermissions, said: Surface) -> Costs:
    """Return what a surface costs, with a real tokenizer (F4)."""
    board = session.board
    tools = board.price(out.tool for out in said.tools)
    text = sum(board.parts.counter.count(t) for t in (*said.hints, said.suffix, said.policy) if t)
    catalog = board.price(access.world.catalog)
    total = tools + text
    return Costs(tools=tools, text=text, total=total, catalog=catalog, saved=catalog - total)


async def instructions(session: Session) -> str:
    """Return what a client is told once: how to find more tools, and the policy of what is out (F2, T6)."""
    access = await session.looked(session.start)
    state = session.settled(access, session.start)
    told = session.board.masker.text(policy.initial(access, state))
    if not (session.stable and loadable(access)):
        return told
    names = [tool.wire for tool in session.dialect.tools(meta_tools.view(session, access, state))]
    how = (
        f"More tools than are listed can be had. Use {', '.join(names)} to find and load them, "
        "then call them by name or through call_tool."
    )
    return f"{how}\n\n{told}" if told else how
