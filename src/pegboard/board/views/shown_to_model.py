"""What the model was shown last, and what stays on the wire because it pays under a prompt cache (D3, F3, F4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pegboard.board.meta_tools import command_context, hints_to_show, meta_tools, view
from pegboard.board.observability.conversations import Request
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.core.access.names import find_called
from pegboard.core.model.delivery import choose
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import starting_tools
from pegboard.core.state.requirements import usable
from pegboard.core.state.sessions import DEFAULT
from pegboard.core.state.shrinking import Size, over
from pegboard.core.surface.cache_cost import Sizes, plan, wire_list
from pegboard.core.surface.surfaces import Surface


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the model was shown last.

    ``surface`` are the tools of the newest surface, ``focus`` the wire names that its focus allows, None without one.
    ``wire_list`` is the tool list that was sent last, ``unloaded`` the wire names of what was unloaded by name since,
    ``answered`` the ids of what reached the model in the answer of its load, and waits for a boundary of the cache to
    be listed (D1).
    """

    surface: tuple[Tool, ...] = ()
    focus: frozenset[str] | None = None
    wire_list: tuple[Tool, ...] = ()
    unloaded: frozenset[str] = frozenset()
    answered: frozenset[str] = frozenset()

    def after(self, snapshot: Snapshot, request: Request) -> Shown:
        """Return the same after a request: no list keeps what it unloaded, its answer has what it loaded (D1, D3)."""
        answered = request.brought if choose(snapshot.info.host) == "result" else frozenset[str]()
        return replace(self, unloaded=self.unloaded | snapshot.unloaded, answered=self.answered | answered)

    def still_lists(self, tool: Tool) -> bool:
        """Return whether the model still has the schema of a tool whose lease lapsed: a call renews it and runs."""
        return tool.wire not in self.unloaded and any(listed.wire == tool.wire for listed in self.wire_list)


def loading_all_is_cheaper(services: Services, snapshot: Snapshot) -> bool:
    """Return whether loading all that is permitted from the start is cheapest for the host's cache (F4)."""
    return loading_all_fits(services, snapshot) and plan(_sizes(services, snapshot), snapshot.info.host).everything


def loading_all_fits(services: Services, snapshot: Snapshot) -> bool:
    """Return whether the budget has room for all that is permitted (S9)."""
    permissions = snapshot.permissions
    if not permissions.budgeted:
        return True
    terms = command_context(services, snapshot.info, permissions)
    return not over(permissions, Size(tools=0).with_tools(permissions, (*terms.meta, *usable(permissions)), terms))


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


def next_wire_list(
    services: Services, snapshot: Snapshot, shown: Shown, surface: Surface, revealed: Iterable[str] = ()
) -> Shown:
    """Return what is shown with the next request: what is loaded, and what lapsed while keeping it is cheaper (D3).

    ``revealed`` are the wire names of what the history has revealed: it stays as long as it is permitted (D4).
    """
    info, listed = snapshot.info, frozenset(tool.id for tool in shown.wire_list)
    warm = bool(shown.wire_list) and info.host.cache is not None and bool(info.host.cache.tokens)
    answered = shown.answered - listed if warm else frozenset[str]()
    loaded = tuple(loaded.tool for loaded in surface.tools if loaded.tool.id not in answered)
    unloaded = shown.unloaded - {one.tool.wire for one in surface.tools if not one.leaving}

    def may_stay(tool: Tool) -> bool:
        return tool.wire not in unloaded and snapshot.permissions.permits(tool)

    if info.host.reveals:
        known = {tool.wire: tool for tool in shown.wire_list}
        lapsed = [known.get(name) or find_called(snapshot.permissions, name, listed) for name in (*known, *revealed)]
        now = {tool.wire: tool for tool in loaded}
        stays = {tool.wire: tool for tool in lapsed if tool is not None and tool.wire not in now and may_stay(tool)}
        return replace(shown, wire_list=(*loaded, *stays.values()), unloaded=unloaded, answered=frozenset())
    tools = wire_list(
        shown.wire_list,
        loaded,
        lambda tool: services.prices([tool]),
        cache=info.host.cache,
        turns_left=float(surface.turn),
        may_stay=may_stay,
    )
    return replace(shown, wire_list=tools, unloaded=unloaded, answered=answered)
