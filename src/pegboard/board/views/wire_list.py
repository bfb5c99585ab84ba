"""What pays under a host's prompt cache: decided once a session, and what stays on the wire (D3, F4)."""

from __future__ import annotations

from dataclasses import replace

from pegboard.board.meta_tools import hints_to_show, meta_tools, view
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.board.views.shown_to_model import Shown
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import starting_tools
from pegboard.core.state.sessions import DEFAULT
from pegboard.core.surface.cache_cost import Sizes, plan, wire_list
from pegboard.core.surface.surfaces import Surface


def everything_pays(services: Services, snapshot: Snapshot) -> bool:
    """Return whether loading all that is permitted from the start is cheapest for the host's cache (F4)."""
    return plan(_sizes(services, snapshot), snapshot.info.host).everything


def _sizes(services: Services, snapshot: Snapshot) -> Sizes:
    info, permissions = snapshot.info, snapshot.permissions
    start = starting_tools(permissions)
    tools = [tool for tool in permissions.permitted if tool.id not in start.head and tool.id not in start.tail]
    count = services.counter.count
    shown = hints_to_show(services, info, permissions, DEFAULT)
    named = sum(ref.startswith("tool:") for ref in shown.about)
    one_by_one = 2 * named >= len(tools)
    return Sizes(
        everything=services.prices(tools),
        units=len(shown.about),
        by="tool" if one_by_one else "plugin",
        meta=services.prices(meta_tools(services, info, view(services, info, permissions, DEFAULT))),
        hints=0 if info.host.calls_through else count("\n".join(shown.lines)),
        plugins=len({tool.plugin for tool in tools}) if permissions.agent.anticipate is not None else 0,
    )


def next_wire_list(services: Services, snapshot: Snapshot, shown: Shown, surface: Surface) -> Shown:
    """Return what is shown with the next request: what is loaded, and what lapsed while keeping it is cheaper (D3)."""
    info, listed = snapshot.info, frozenset(tool.id for tool in shown.wire_list)
    warm = bool(shown.wire_list) and info.host.cache is not None and bool(info.host.cache.tokens)
    answered = shown.answered - listed if warm else frozenset[str]()
    loaded = tuple(loaded.tool for loaded in surface.tools if loaded.tool.id not in answered)
    unloaded = shown.unloaded - {tool.wire for tool in loaded}

    def may_stay(tool: Tool) -> bool:
        return tool.wire not in unloaded and snapshot.permissions.permits(tool)

    tools = wire_list(
        shown.wire_list,
        loaded,
        lambda tool: services.prices([tool]),
        cache=info.host.cache,
        turns_left=float(surface.turn),
        may_stay=may_stay,
    )
    return replace(shown, wire_list=tools, unloaded=unloaded, answered=answered)
