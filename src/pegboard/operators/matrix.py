"""Every agent beside every toolkit: what is on, what is off, and what is paused (P2, P4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pegboard.board.catalog.loader import IN_PROCESS
from pegboard.board.discover import discover_every
from pegboard.board.services import Services
from pegboard.board.session_info import agent_of
from pegboard.board.switch_actions import last_standing
from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions
from pegboard.core.access.settings.panels import PanelGroup, groups
from pegboard.core.access.switches import subjects_named
from pegboard.core.model.agents import World
from pegboard.core.model.catalog import Ref
from pegboard.operators.masked import Name, Verbatim, mask_value, shown_names
from pegboard.ports import SwitchAction

CellState = Literal["on", "part", "off"]
"""All of its tools are on, some, or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCell:
    """What one agent has of a toolkit or plugin.

    Attributes:
        state: whether it is on.
        tools: how many of its tools are on.
        stored: the boolean that an operator has stored for it; None where the file decides.
    """

    state: CellState
    tools: int
    stored: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """A toolkit or plugin, and what each agent has of it.

    Attributes:
        kind: what it is.
        name: its name.
        label: its name for people.
        switch_name: the name under which it is switched for every agent.
        tools: how many tools it has; what is not known yet of a plugin is one.
        cells: one for each agent, in the order of the agents.
        standing: the mark of the newest action over it that still stands and can be taken back, or nothing.
    """

    kind: Literal["toolkit", "plugin"]
    name: Name
    label: str
    switch_name: Name
    tools: int
    cells: tuple[MatrixCell, ...]
    standing: Verbatim = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixAgent:
    """An agent, and whether nothing of it can be called until it is resumed."""

    name: Name
    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixPlugin:
    """A server or plugin, and for how many of the agents it is paused."""

    name: Name
    kind: str
    paused: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Agents beside toolkits.

    Attributes:
        agents: the agents.
        toolkits: the toolkits.
        others: the plugins that have something outside of toolkits, with that.
        plugins: all servers and plugins, those of toolkits too.
    """

    agents: tuple[MatrixAgent, ...]
    toolkits: tuple[MatrixRow, ...]
    others: tuple[MatrixRow, ...]
    plugins: tuple[MatrixPlugin, ...]


class _Groups:
    """What there is to switch in one world, alike for every agent."""

    def __init__(self, permissions: CompiledPermissions) -> None:
        self.world = permissions.world
        self.known = tuple(group for group in groups(permissions) if group.kind != "unknown")
        self.subjects = tuple(Ref(group.kind, group.name) for group in self.known if group.kind != "unknown")


class MatrixReader:
    """The matrix of a board; what an agent has is counted once until something changes for it."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._groups: _Groups | None = None

    async def matrix(self, agents: Sequence[str]) -> Matrix:
        """Return these agents beside every toolkit and plugin.

        Plugins written in Python are asked for their tools first; servers are not started.
        """
        services = self._services
        for agent in agents:
            agent_of(services.world, agent)
        await discover_every(services, IN_PROCESS)
        await services.compiler.refresh()
        compiled = [services.compiler.permissions_of_agent(agent) for agent in agents]
        standing = await last_standing(services, agents)
        rows = self._rows(compiled, standing)
        pauses = [services.compiler.pauses(agent) for agent in agents]
        found = Matrix(
            agents=tuple(
                MatrixAgent(name=agent, paused=of_agent.agent) for agent, of_agent in zip(agents, pauses, strict=True)
            ),
            toolkits=tuple(row for row in rows if row.kind == "toolkit"),
            others=tuple(row for row in rows if row.kind == "plugin"),
            plugins=tuple(
                MatrixPlugin(name=name, kind=plugin.kind, paused=sum(name in one.plugins for one in pauses))
                for name, plugin in services.world.catalog.plugins.items()
            ),
        )
        return mask_value(found, await shown_names(services))

    def _rows(self, compiled: Sequence[CompiledPermissions], standing: Mapping[str, SwitchAction]) -> list[MatrixRow]:
        if not compiled:
            return []
        if self._groups is None or self._groups.world is not compiled[0].world:
            self._groups = _Groups(compiled[0])
        known = self._groups
        columns = [_cells(permissions, known) for permissions in compiled]
        return [
            _row(known.world, group, tuple(column[at] for column in columns), standing)
            for at, group in enumerate(known.known)
        ]


@once_per_permissions
def _cells(permissions: CompiledPermissions, known: _Groups) -> tuple[MatrixCell, ...]:
    return tuple(_cell(permissions, group, subject) for group, subject in zip(known.known, known.subjects, strict=True))


def _cell(permissions: CompiledPermissions, group: PanelGroup, subject: Ref) -> MatrixCell:
    on = group.permitted(permissions) if group.parts else _count_unseen(permissions, group)
    size = group.size or 1
    standing = permissions.switches.switch_of(subject)
    return MatrixCell(
        state="off" if on == 0 else "on" if on >= size else "part",
        tools=on,
        stored=standing.on if standing is not None and standing.at_run_time else None,
    )


def _count_unseen(permissions: CompiledPermissions, group: PanelGroup) -> int:
    """Return whether what is not known yet would be on."""
    if group.kind == "toolkit":
        return int(permissions.may_load_toolkit(group.name))
    return int(permissions.grants_unseen(permissions.world.catalog.plugins[group.name]))


def _row(
    world: World, group: PanelGroup, cells: tuple[MatrixCell, ...], standing: Mapping[str, SwitchAction]
) -> MatrixRow:
    kind = "toolkit" if group.kind == "toolkit" else "plugin"
    name = (
        group.name if subjects_named(world, group.name, on=True) == (Ref(kind, group.name),) else f"{kind}:{group.name}"
    )
    action = standing.get(name)
    return MatrixRow(
        kind=kind,
        name=group.name,
        label=(world.toolkits[group.name].label if kind == "toolkit" else "") or group.name,
        switch_name=name,
        tools=group.size or 1,
        cells=cells,
        standing=action.mark if action is not None else "",
    )
