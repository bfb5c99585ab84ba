"""The switches of an agent page by page: what there is to switch, its state, and what decides that (P2, T6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from pegboard.board.catalog.loader import IN_PROCESS
from pegboard.board.discover import discover_every
from pegboard.board.services import Services
from pegboard.board.session_info import agent_of
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.access.settings.panels import (
    PanelGroup,
    PanelPart,
    PanelRow,
    PanelRows,
    RowKind,
    groups,
    switch_name,
)
from pegboard.core.access.switches import NOTHING_PAUSED, Pauses
from pegboard.core.model.agents import World
from pegboard.core.model.tools import Plugin, Tool
from pegboard.core.state.active_tools import active_tools
from pegboard.core.state.sessions import DEFAULT
from pegboard.operators.counting import CatalogCounting, count_ahead
from pegboard.operators.explain import PlainReason, plain_reason
from pegboard.operators.masked import Name, ShownNames, mask_value, shown_names

T = TypeVar("T")

GroupKind = Literal["toolkit", "plugin"]

Standing = Literal["has", "could_load", "off", "not_granted"]
"""What an agent has of a row: some of it from the start, or what it may load; else it is denied, or not granted."""

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchRow:
    """One thing that can be switched.

    Attributes:
        kind: ``toolkit``, ``plugin`` or ``tool``; ``unknown`` is a switch whose name means nothing known.
        name: its name; of a tool the wire name.
        plugin: the plugin, of a toolkit nothing.
        label: its name for people.
        icon: the icon of a toolkit, or nothing.
        description: what it is.
        default: whether it would be on without any switch.
        switch: the boolean that is in force for it, or None.
        stored: the boolean that an operator has stored, or None: what ``permissions.set`` expects and undo restores.
        switch_name: the name to hand to ``permissions.set``: it means this alone, as its stored switch is written.
        on: whether it is on now, of a toolkit without a switch whether any member is (seed 004).
        standing: what the agent has of it: ``has`` some from the start, ``could_load`` some, ``off`` where all of it is
            denied, ``not_granted`` where nothing grants it.
        reason: what decides that.
        available: whether it can run now.
        unavailable: why it cannot, or nothing (P6).
        members: how many tools stand in it; what is not known of a plugin yet is one.
        members_on: how many of them are on.
        tokens: those of its tools, on or off; None while some of them are not known, or are being counted.
    """

    kind: RowKind
    name: Name
    plugin: Name
    label: str
    icon: str
    description: str
    default: bool
    switch: bool | None
    stored: bool | None
    switch_name: Name
    on: bool
    standing: Standing = "not_granted"
    reason: PlainReason
    available: bool = True
    unavailable: str = ""
    members: int = 0
    members_on: int = 0
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelPage:
    """A part of what can be switched, and of how many rows it is one."""

    rows: tuple[SwitchRow, ...]
    total: int


class SwitchPanels:
    """The panels of all agents: what can be switched, page by page; their texts are made once."""

    def __init__(self, services: Services, counting: CatalogCounting) -> None:
        self._services = services
        self._counting = counting
        self._texts = PanelTexts()

    async def page(
        self, agent: str, *, query: str = "", offset: int = 0, limit: int = 50, permitted_first: bool = False
    ) -> PanelPage:
        """Return a page of what can be switched: toolkits, then plugins with their tools that no toolkit has (P2, T6).

        Plugins written in Python are asked for their tools first; servers are not started. A row fits where all words
        of ``query`` are in its label, name or description, or in those of one of its members.
        """
        shown, texts = await _shown_panel(self._services, agent), self._texts
        words, world = texts.words(query, shown.names), shown.permissions.world
        fitting = [group for group in groups(shown.permissions) if texts.group_fits(world, group, words)]
        if permitted_first:
            fitting.sort(key=lambda group: group.permitted(shown.permissions) == 0)
        page = _slice(fitting, offset, limit)
        counted = await self._counting.done()
        return PanelPage(rows=tuple(shown.group(group, counted=counted) for group in page), total=len(fitting))

    async def members(
        self, agent: str, kind: GroupKind, name: str, *, query: str = "", offset: int = 0, limit: int = 100
    ) -> PanelPage:
        """Return a page of the members of a toolkit, or of a plugin's tools without one; none for an unknown row."""
        shown, texts = await _shown_panel(self._services, agent), self._texts
        group = next((one for one in groups(shown.permissions) if (one.kind, one.name) == (kind, name)), None)
        if group is None:
            return PanelPage(rows=(), total=0)
        fitting = list(_members(texts, group, texts.words(query, shown.names)))
        page = _slice(fitting, offset, limit)
        await count_ahead(self._services, [tool for _, tool in page if tool is not None])
        return PanelPage(rows=tuple(shown.member(part, tool) for part, tool in page), total=len(fitting))


def _members(texts: PanelTexts, group: PanelGroup, words: Words) -> Iterator[tuple[PanelPart, Tool | None]]:
    for part in group.parts:
        if not words:
            yield from ((part, tool) for tool in part.members())
        elif part.tools:
            yield from ((part, tool) for tool in texts.tools_that_fit(part, words))
        elif texts.fits(words, part.plugin.name, part.plugin.description):
            yield part, None


def _slice(found: Sequence[T], offset: int, limit: int) -> Sequence[T]:
    start = max(offset, 0)
    return found[start : start + max(limit, 0)]


async def pauses_by_agent(services: Services) -> Mapping[str, Pauses]:
    """Return what is paused, by agent; raises ``StoreError``."""
    paused = (await services.store.stored_permissions()).pauses
    return {agent: paused.get(agent, NOTHING_PAUSED) for agent in services.world.agents}


async def _shown_panel(services: Services, agent: str) -> _PanelView:
    agent_of(services.world, agent)
    await discover_every(services, IN_PROCESS)
    compiler, names = services.compiler, await shown_names(services)
    await compiler.refresh()
    permissions, bare = compiler.permissions_of_agent(agent), compiler.without_switches(agent)
    return _PanelView(services, permissions, bare, compiler.stored(agent), names)


class _PanelView:
    """The panel of one agent at one moment, as rows for operators."""

    def __init__(
        self,
        services: Services,
        permissions: CompiledPermissions,
        bare: CompiledPermissions,
        stored: Mapping[str, bool],
        names: ShownNames,
    ) -> None:
        self.permissions = permissions
        self._services = services
        self._rows = PanelRows(permissions, bare)
        self._stored = stored
        self._started = active_tools(permissions, DEFAULT)
        self.names = names

    def group(self, group: PanelGroup, *, counted: bool) -> SwitchRow:
        """Return the row of a toolkit, plugin or unknown name."""
        known = counted and bool(group.parts) and all(part.tools for part in group.parts)
        tokens = sum(self._services.prices(part.tools) for part in group.parts) if known else None
        ids = (tool.id for part in group.parts for tool in part.tools)
        return self._row(
            self._rows.row_of_group(group),
            has=any(one in self._started for one in ids),
            members=group.size,
            members_on=group.permitted(self.permissions),
            tokens=tokens,
        )

    def member(self, part: PanelPart, tool: Tool | None) -> SwitchRow:
        """Return the row of a member."""
        tokens = self._services.prices((tool,)) if tool is not None else None
        has = tool is not None and tool.id in self._started
        return self._row(self._rows.member(part, tool), has=has, tokens=tokens)

    def _row(
        self, row: PanelRow, *, has: bool, members: int = 0, members_on: int = 0, tokens: int | None = None
    ) -> SwitchRow:
        name, fault = switch_name(self.permissions, row), row.fault or ""
        found = SwitchRow(
            kind=row.kind,
            name=row.name,
            plugin=row.plugin or "",
            label=row.label,
            icon=row.icon or "",
            description=row.description,
            default=row.default,
            switch=row.switch,
            stored=self._stored.get(name),
            switch_name=name,
            on=row.on,
            standing=_standing_of_row(row, has=has),
            reason=plain_reason(row.reason),
            available=not fault,
            unavailable=fault,
            members=members,
            members_on=members_on,
            tokens=tokens,
        )
        return mask_value(found, self.names)


def _standing_of_row(row: PanelRow, *, has: bool) -> Standing:
    if row.on:
        return "has" if has else "could_load"
    return "not_granted" if row.reason.code in ("not_granted", "not_seen") and row.switch is None else "off"


class PanelTexts:
    """The texts of plugins and their tools as they are shown; no switch changes them.

    They are made when someone first looks. What is hidden in them is not found, so that no one guesses it bit by bit.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Plugin, str, dict[str, str]]] = {}
        self._names: ShownNames | None = None

    def words(self, query: str, names: ShownNames) -> Words:
        """Return the words of a query, all of which have to stand in one text; ``names`` is how these are shown."""
        if self._names is None or not self._names.is_like(names):
            self._known.clear()
        self._names = names
        return tuple(names.shown(names.meant(query)).casefold().split())

    def fits(self, words: Words, *texts: str) -> bool:
        """Return whether every word is in one of these texts."""
        folded = self._fold_texts(texts)
        return all(word in folded for word in words)

    def _fold_texts(self, texts: Iterable[str]) -> str:
        names = self._names
        return "\n".join(texts if names is None else map(names.shown, texts)).casefold()

    def group_fits(self, world: World, group: PanelGroup, words: Words) -> bool:
        """Return whether a row fits, or one of its members does."""
        if not words:
            return True
        return self.fits(words, *_texts_of_group(world, group)) or any(
            self._part_fits(part, words) for part in group.parts
        )

    def _part_fits(self, part: PanelPart, words: Words) -> bool:
        if not part.tools:
            return self.fits(words, part.plugin.name, part.plugin.description)
        return next(self.tools_that_fit(part, words), None) is not None

    def tools_that_fit(self, part: PanelPart, words: Words) -> Iterator[Tool]:
        """Yield the tools of a part that fit, in order."""
        together, texts = self._texts_of_plugin(part.plugin)
        if not all(word in together for word in words):
            return
        for tool in part.tools:
            text = texts[tool.id]
            if all(word in text for word in words):
                yield tool

    def _texts_of_plugin(self, plugin: Plugin) -> tuple[str, dict[str, str]]:
        known = self._known.get(plugin.name)
        if known is None or known[0] is not plugin:
            texts = {tool.id: self._fold_texts(_texts(tool)) for tool in plugin.tools}
            known = self._known[plugin.name] = plugin, "\n".join(texts.values()), texts
        return known[1:]


def _texts_of_group(world: World, group: PanelGroup) -> tuple[str, ...]:
    """Return the texts of a group itself."""
    match group.kind:
        case "toolkit":
            toolkit = world.toolkits[group.name]
            return group.name, toolkit.label, toolkit.description
        case "plugin":
            return group.name, world.catalog.plugins[group.name].description
        case "unknown":
            return (group.name,)


def _texts(tool: Tool) -> tuple[str, ...]:
    return tool.wire, tool.name, tool.stated_title, tool.description
