"""What a client would list without Pegboard: the servers of an agent, each with all of its tools (F4)."""

from __future__ import annotations

from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions
from pegboard.core.model.known_clients import ListedServer
from pegboard.core.model.tools import Tool
from pegboard.core.state.requirements import usable


@once_per_permissions
def direct_servers(permissions: CompiledPermissions) -> tuple[ListedServer, ...]:
    """Return the plugins of an agent as servers, with all of their tools that it may use and that can run."""
    by_plugin: dict[str, list[Tool]] = {}
    for tool in usable(permissions):
        by_plugin.setdefault(tool.plugin, []).append(tool)
    plugins = permissions.world.catalog.plugins
    return tuple(
        ListedServer(name=name, tools=tuple(tools), instructions=plugins[name].instructions)
        for name, tools in by_plugin.items()
    )


def own_server(tools: tuple[Tool, ...], instructions: str = "") -> ListedServer:
    """Return Pegboard as a client lists it; the entry that `init` writes keeps it in view where a client can."""
    return ListedServer(name="pegboard", tools=tools, instructions=instructions, in_view=True)
