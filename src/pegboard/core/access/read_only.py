"""Which tools of servers count as read-only, or as destroying nothing: as pinned (G6, A4)."""

from __future__ import annotations

from dataclasses import dataclass

from pegboard.core.model.tools import Plugin, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What counts of what a server says: own names of the tools that only read, and of those that destroy nothing."""

    read_only: frozenset[str] = frozenset()
    harmless: frozenset[str] = frozenset()


def reads_only(plugin: Plugin, tool: Tool, counted: frozenset[str]) -> bool:
    """Return whether a tool may run where only reading is allowed (G6).

    Own plugins are believed. A server is believed with ``trust: annotations``, and only for the
    tools of which it said so when it was first seen, or which an operator has accepted since.
    """
    if not tool.read_only:
        return False
    return plugin.kind != "server" or (plugin.trusted and tool.name in counted)
