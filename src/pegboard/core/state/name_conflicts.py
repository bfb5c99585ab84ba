"""Tools of one agent that have one name on the wire, so that they are never loaded together (G10)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions
from pegboard.core.model.catalog import Ref
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import starting_tools
from pegboard.core.state.subjects import tools_of_subject


@dataclass(frozen=True, slots=True, kw_only=True)
class NameConflict:
    """Two tools with one wire name: while the first is loaded, the second cannot be.

    ``toolkit`` is the toolkit that cannot be loaded because of it; where it is empty, both tools are to be loaded from
    the start. ``within`` says that the toolkit has both.
    """

    first: Tool
    second: Tool
    toolkit: str = ""
    within: bool = False

    @property
    def text(self) -> str:
        """Return it as a sentence."""
        first, second, name = self.first.id, self.second.id, self.second.wire
        if not self.toolkit:
            return f"'{second}' is not available: '{first}', which is loaded, has the same name, '{name}'."
        if self.within:
            return f"Toolkit '{self.toolkit}' cannot be loaded: '{first}' and '{second}' have one name, '{name}'."
        return f"Toolkit '{self.toolkit}' cannot be loaded: '{first}', loaded from the start, is called '{name}' too."

    @property
    def fix(self) -> str:
        """Return what ends it, as a sentence."""
        return f"Give one of the plugins a prefix: `prefix: {self.second.plugin}` for plugin '{self.second.plugin}'."


@once_per_permissions
def name_conflicts(permissions: CompiledPermissions) -> tuple[NameConflict, ...]:
    """Return the tools that an agent never has because of their names, as far as tools are known.

    What only a category brought in gives way to what is written, and is not among them (L9).
    """
    return tuple(_conflicts_of_start(permissions)) + tuple(_conflicts_of_toolkits(permissions))


def _conflicts_of_start(permissions: CompiledPermissions) -> Iterator[NameConflict]:
    catalog = permissions.world.catalog
    for second, first in starting_tools(permissions).excluded.items():
        one, other = catalog.by_id(first), catalog.by_id(second)
        if one is not None and other is not None and not catalog.plugins[other.plugin].by_category:
            yield NameConflict(first=one, second=other)


def _conflicts_of_toolkits(permissions: CompiledPermissions) -> Iterator[NameConflict]:
    start = starting_tools(permissions)
    from_start = {one.tool.wire: one.tool for part in (start.head, start.tail) for one in part.values()}
    for name in permissions.entries.loadable_toolkits:
        if name in permissions.agent.initial_toolkits:
            continue
        own: dict[str, Tool] = {}
        for tool, _ in tools_of_subject(permissions, Ref("toolkit", name)).tools:
            first = from_start.get(tool.wire) or own.setdefault(tool.wire, tool)
            if first.id != tool.id:
                yield NameConflict(first=first, second=tool, toolkit=name, within=first.wire not in from_start)
