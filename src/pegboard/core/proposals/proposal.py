"""What is proposed for an agent, what became of it, and how a proposed toolkit is named after its members."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.catalog import Ref
from pegboard.core.model.naming import one_line, words_of
from pegboard.core.model.toolkits import RESERVED
from pegboard.core.model.tools import Tool
from pegboard.core.proposals.replay import Totals
from pegboard.core.state.subjects import tools_of_subject


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToolkit:
    """A toolkit that is not there yet; its members are plugins, and tools as ``plugin/tool``."""

    name: str
    description: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A change of an agent: what joins its lists ``tools`` and ``initial_toolkits``, or a toolkit that it may load.

    It speaks of what ``sessions`` of ``of`` sessions did; ``schema`` are the tokens of what would be
    loaded from the start, or of what a load of the toolkit brings.
    """

    agent: str
    static: tuple[str, ...] = ()
    initial: tuple[str, ...] = ()
    toolkit: NewToolkit | None = None
    sessions: int
    of: int
    schema: int

    @property
    def names(self) -> tuple[str, ...]:
        """Return what it is about."""
        return (*self.static, *self.initial, *((self.toolkit.name,) if self.toolkit else ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A proposal that stands, and what it saves beside those before it."""

    proposal: Proposal
    saved: Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined:
    """What is loaded often and still not proposed, and why."""

    proposal: Proposal
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What the trail of one agent says; ``enough`` is whether there is enough of it to propose anything.

    ``unknown`` are plugins on the trail whose tools are not known, so that nothing that concerns
    them is counted or proposed; ``gone`` are subjects that mean nothing today.
    """

    agent: str
    enough: bool
    sessions: int
    turns: int
    calls: int
    before: Totals
    after: Totals
    accepted: tuple[Accepted, ...] = ()
    declined: tuple[Declined, ...] = ()
    unknown: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


_SHORTEST: Final = 3
"""A shorter word, or one with a digit, does not name a toolkit."""
_UNSAFE: Final = re.compile(r"[^a-z0-9]+")
_STOP: Final = frozenset({"and", "for", "from", "the", "with", "get", "list", "all", "set", "run", "tool", "tools"})
_LONGEST: Final = 40
_DESCRIPTION: Final = 160


def new_toolkit(permissions: CompiledPermissions, subjects: Iterable[str]) -> NewToolkit | None:
    """Return a toolkit of these subjects with a name that nothing has yet.

    None where it cannot be written plainly: a member with settings or a filter of its own, a reserved
    name, or only one member. The description names plugins and tools, and repeats nothing that a
    server says of them.
    """
    members: dict[str, list[Tool]] = {}
    for subject in subjects:
        found = _members(permissions, Ref.parse(subject))
        if not found or not RESERVED.isdisjoint(found):
            return None
        members.update(found)
    whole = {name for name in members if name in permissions.world.catalog.plugins}
    written = [name for name in members if name in whole or name.rpartition("/")[0] not in whole]
    if len(written) < 2:
        return None
    tools = [tool for name in written for tool in members[name]]
    return NewToolkit(
        name=_free_name(permissions, _name(written, tools)), description=_description(tools), members=tuple(written)
    )


def _members(permissions: CompiledPermissions, ref: Ref) -> dict[str, list[Tool]]:
    """Return the plugins and tools that a subject names, each with what is permitted; none where one is not plain."""
    found = tools_of_subject(permissions, ref)
    members: dict[str, list[Tool]] = {}
    for entry in found.entries:
        if entry.key or entry.member.filtered:
            return {}
        permitted = [tool for tool in entry.tools if permissions.permits(tool)]
        if entry.whole:
            members[entry.plugin] = permitted
        else:
            members.update((tool.id, [tool]) for tool in permitted)
    written = permissions.world.toolkits[ref.name].members if ref.kind == "toolkit" else found.entries
    return members if len(found.entries) == len(written) else {}


def _name(members: list[str], tools: list[Tool]) -> str:
    """Return a name from the word that most members share, else from their plugins."""
    plugins = list(dict.fromkeys(tool.plugin for tool in tools))
    counts: Counter[str] = Counter()
    for name in members:
        own = [tool for tool in tools if name in (tool.plugin, tool.id)]
        counts.update({word for tool in own for word in _words(tool.name)} - _STOP)
    shared = sorted((word for word, count in counts.items() if count == len(members)), key=lambda w: (-len(w), w))
    word = next((word for word in shared if word not in map(str.lower, plugins)), "")
    if len(plugins) == 1:
        return _safe(f"{plugins[0]}-{word or 'tools'}")
    return _safe(word) if word else _safe("-".join(plugins[:3]))


def _words(name: str) -> set[str]:
    return {word for word in words_of(name) if len(word) >= _SHORTEST and word.isascii() and word.isalpha()}


def _safe(text: str) -> str:
    return _UNSAFE.sub("-", text.lower())[:_LONGEST].strip("-") or "together"


def _free_name(permissions: CompiledPermissions, name: str) -> str:
    """Return the name, with a number behind it where something is called so."""
    world = permissions.world
    taken = {one.casefold() for one in (*world.toolkits, *world.catalog.plugins, *RESERVED)}
    free, number = name, 2
    while free in taken or world.catalog.find_tool(free) is not None:
        free, number = f"{name}-{number}", number + 1
    return free


def _description(tools: list[Tool]) -> str:
    plugins = list(dict.fromkeys(tool.plugin for tool in tools))
    names = list(dict.fromkeys(tool.name for tool in tools))
    who = plugins[0] if len(plugins) == 1 else f"{', '.join(plugins[:-1])} and {plugins[-1]}"
    return one_line(f"Used together, of {who}: {', '.join(names)}", limit=_DESCRIPTION)
