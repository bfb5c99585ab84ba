"""Booleans over toolkits, plugins and tools, and what an operator has paused (P2, P4, seed 004)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from pegboard.core.model.agents import Agent, World
from pegboard.core.model.catalog import Ref, RefKind, split_kind
from pegboard.core.model.selectors import Entry, find
from pegboard.core.model.toolkits import HOST_TOOLS
from pegboard.core.model.tools import EMPTY, Tool
from pegboard.problems import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """What is paused for one agent: all of it, or some plugins."""

    agent: bool = False
    plugins: frozenset[str] = frozenset()


NOTHING_PAUSED: Final = Pauses()


def is_paused(pauses: Pauses, plugin: str | None) -> bool:
    """Return whether a plugin, or with None the whole agent, is paused."""
    return pauses.agent if plugin is None else plugin in pauses.plugins


def with_pause(pauses: Pauses, plugin: str | None, *, on: bool) -> Pauses:
    """Return pauses once a plugin, or with None the whole agent, is paused or resumed."""
    if plugin is None:
        return Pauses(agent=on, plugins=pauses.plugins)
    return Pauses(agent=pauses.agent, plugins=pauses.plugins | {plugin} if on else pauses.plugins - {plugin})


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """One boolean in force: as it is written, what it means, where it was set, and for whom besides the agent."""

    name: str
    subject: Ref
    on: bool
    at_run_time: bool = False
    place: Place | None = None
    whose: str = ""

    @property
    def kind(self) -> RefKind:
        """Return what the switch names: its subject's kind, or a category that its subject is of."""
        return "category" if split_kind(self.name)[0] == "category" else self.subject.kind


Derived = dict[tuple[Hashable, ...], Any]
"""What was computed from a value that never changes, by function and further arguments."""

OF_PRINCIPAL: Final = " for this principal"


class ToolkitEntries:
    """The toolkits of one world, each looked up once; permissions of the same world share them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.derived: Derived = {}
        self._known: dict[str, tuple[Entry, ...]] = {}

    def entries_of_toolkit(self, toolkit: str) -> tuple[Entry, ...]:
        """Return the entries of a toolkit of the world."""
        known = self._known.get(toolkit)
        if known is None:
            known = self._known[toolkit] = self.world.toolkits[toolkit].entries(self.world.catalog)
        return known


class Switches:
    """The booleans that are in force for an agent in a world.

    One set at run time replaces the file's for the same subject; a category stands for its plugins.
    ``personal`` are those for one principal, which count beside: off of either wins. ``pauses`` are what is paused,
    which no switch undoes. Where one layer names a subject twice, or where a bare name that is off means several
    tools, off wins: deny beats grant (P1).
    """

    def __init__(
        self,
        looked_up: ToolkitEntries,
        agent: Agent,
        stored: Mapping[str, bool],
        *,
        personal: Mapping[str, bool] = EMPTY,
        pauses: Pauses = NOTHING_PAUSED,
    ) -> None:
        self.pauses = pauses
        self._looked_up = looked_up
        self._world = world = looked_up.world
        self._names = {**agent.switches, **stored}
        self._names |= {name: on and self._names.get(name, True) for name, on in personal.items()}
        file = {name: on for name, on in agent.switches.items() if name not in stored}
        found: dict[Ref, Switch] = {}
        for layer, at_run_time in ((file, False), (stored, True)):
            own: dict[Ref, Switch] = {}
            for name, on in layer.items():
                place = None if at_run_time else agent.switch_places.get(name)
                for ref in subjects_named(world, name, on=on):
                    if ref not in own or not on:
                        own[ref] = Switch(name=name, subject=ref, on=on, at_run_time=at_run_time, place=place)
            found.update(own)
        for name, on in personal.items():
            for ref in subjects_named(world, name, on=on):
                if not on or ref not in found:
                    found[ref] = Switch(name=name, subject=ref, on=on, at_run_time=True, whose=OF_PRINCIPAL)
        self._by_ref = found
        self.toolkits = {ref.name: switch for ref, switch in found.items() if ref.kind == "toolkit"}
        self.plugins = {ref.name: switch for ref, switch in found.items() if ref.kind == "plugin"}
        self.tools = {ref.name: switch for ref, switch in found.items() if ref.kind == "tool"}

    @cached_property
    def effective(self) -> Mapping[str, bool]:
        """Return the switches in force by their written names; one that means nothing known is kept."""
        standing = {(switch.name, switch.on) for switch in self._by_ref.values()}
        return {
            name: on
            for name, on in self._names.items()
            if (name, on) in standing or not subjects_named(self._world, name, on=on)
        }

    @property
    def unknown(self) -> Mapping[str, bool]:
        """Return the switches whose names mean nothing that is known yet."""
        return {name: on for name, on in self._names.items() if not subjects_named(self._world, name, on=on)}

    @property
    def unresolved(self) -> bool:
        """Return whether a name that is switched on means nothing that is known yet."""
        return any(self.unknown.values())

    def switch_of(self, subject: Ref) -> Switch | None:
        """Return the switch in force of a toolkit, a plugin or a tool, not that of anything that it is part of."""
        return self._by_ref.get(subject)

    def switch_of_tool(self, tool: Tool) -> Switch | None:
        """Return the tool's own switch, or that of its plugin."""
        return self.tools.get(tool.id) or self.plugins.get(tool.plugin)

    def bundles(self, tool: Tool) -> tuple[Switch, ...]:
        """Return the switched toolkits that contain the tool.

        A tool without a name stands for what a plugin may have that was not asked yet.
        """
        return self.members.get(tool.id, ())

    @cached_property
    def members(self) -> Mapping[str, tuple[Switch, ...]]:
        """Return by tool id the switched toolkits that contain it."""
        found: dict[str, list[Switch]] = {}
        for name, switch in self.toolkits.items():
            ids: dict[str, None] = {}
            for entry in self._looked_up.entries_of_toolkit(name):
                ids.update(dict.fromkeys(entry.ids))
                if entry.whole and (switch.on or not entry.member.filtered):
                    ids[f"{entry.plugin}/"] = None
            for tool_id in ids:
                found.setdefault(tool_id, []).append(switch)
        return {tool_id: tuple(switches) for tool_id, switches in found.items()}

    @property
    def toolkits_on(self) -> tuple[str, ...]:
        """Return the toolkits that are switched on."""
        return tuple(name for name, switch in self.toolkits.items() if switch.on)

    def named_on(self) -> Iterator[Tool]:
        """Yield every tool that a switch which is on names: by toolkit, by plugin, by itself."""
        catalog = self._world.catalog
        for name in self.toolkits_on:
            for entry in self._looked_up.entries_of_toolkit(name):
                yield from entry.tools
        for plugin, switch in self.plugins.items():
            yield from catalog.plugins[plugin].tools if switch.on else ()
        for tool_id, switch in self.tools.items():
            tool = catalog.by_id(tool_id) if switch.on else None
            if tool is not None:
                yield tool


def subjects_named(world: World, name: str, *, on: bool) -> tuple[Ref, ...]:
    """Return what a switch names: toolkit, then plugin, then tool; of a category, its plugins.

    A bare name that several tools have switches nothing on; it switches all of them off.
    """
    kind, bare = split_kind(name)
    if kind in (None, "toolkit") and bare in world.toolkits:
        return (Ref("toolkit", bare),)
    if kind == "category":
        return tuple(Ref("plugin", plugin.name) for plugin in world.catalog.category(bare))
    ref = find(name, world.catalog)
    if ref is not None:
        return (ref,)
    if kind in (None, "tool") and not on:
        return tuple(Ref("tool", tool.id) for tool in world.catalog.named(bare))
    return ()


def other_spellings(world: World, name: str, among: Iterable[str]) -> tuple[str, ...]:
    """Return the names that mean the one thing that a switch names, written in another way; none for a category."""
    refs = subjects_named(world, name, on=True)
    if len(refs) != 1 or split_kind(name)[0] == "category":
        return ()
    return tuple(
        other
        for other in among
        if other != name and split_kind(other)[0] != "category" and subjects_named(world, other, on=True) == refs
    )


def switchable(world: World, name: str) -> bool:
    """Return whether a switch of this name means something, or may once a plugin was asked for its tools."""
    if subjects_named(world, name, on=True):
        return True
    kind, bare = split_kind(name)
    if kind in (None, "tool") and bare in HOST_TOOLS:
        return True
    owners = world.catalog.unseen_owners(bare)
    return kind in (None, "tool") and any(bare not in (owner.name, owner.prefix) for owner in owners)
