"""What goes to the model at one step: tools in order, hints, policy, focus, and what they cost (F1, F4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypedDict

from pegboard.core.access.names import display_name
from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions
from pegboard.core.anticipation.anticipated_leases import newly_anticipated
from pegboard.core.model.leases import ALWAYS, LEASED, Lease, LeaseReason
from pegboard.core.model.naming import did_you_mean, some_of
from pegboard.core.model.tools import CHANGED, Plugin, Tool, Unreviewed, excluded_text
from pegboard.core.state.active_tools import (
    LoadedTool,
    active_tools,
    available,
    leases_with_tools,
    starting_entries,
    starting_tools,
)
from pegboard.core.state.name_conflicts import name_conflicts
from pegboard.core.state.sessions import State
from pegboard.core.state.subjects import remove_dead_leases


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The tokens of a surface (F4).

    Attributes:
        tools: those of the tools.
        text: those of hints, policy and suffix.
        total: both.
        catalog: those of everything that the agent may use, can run, and is known.
        saved: what loading all of that would cost more than this; None while a plugin is unknown.
        unknown: the plugins that the agent may use and whose tools are not known yet; they count in no figure.
    """

    tools: int
    text: int
    total: int
    catalog: int
    saved: int | None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingPlugin:
    """A plugin that is to be loaded from the start and cannot run (P6).

    Attributes:
        plugin: its name.
        reason: why, and what to do.
    """

    plugin: str
    reason: str


class Focus(TypedDict):
    """A narrowing of one step (F3): the wire names that may be called, and whether one of them has to be."""

    allowed_tools: list[str]
    tool_choice: Literal["auto", "required"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """What goes to the model at one step (F1).

    Attributes:
        agent: the agent's name.
        session: the session's id, or None.
        turn: the session's turn.
        tools: what is loaded, in order, the meta-tools included; without what a session loads where its host takes
            loads in their answers alone (``delivery=("result",)``).
        hints: one line for each tool or plugin that could be loaded.
        suffix: what is loaded, in one line for the end of the history.
        policy: what the model is to know of the tools that are loaded from the start.
        focus: the tools of this step where a focus rule narrows it, else None (F3).
        loadout: the session's active loadout, or None (L7).
        shrunk: the loadout that narrows what is loaded from the start to fit the budget, or None (S9).
        anticipated: the tools that joined in this turn ahead of being asked for (S5).
        ahead: their definitions, where they stand in no list: a host puts this text once behind the newest message,
            and keeps it there (D4).
        missing: the plugins that are to be loaded from the start and cannot run.
        count: what counts the tokens, or None.
    """

    agent: str
    session: str | None
    turn: int
    tools: tuple[LoadedTool, ...]
    hints: tuple[str, ...] = ()
    suffix: str = ""
    policy: str = ""
    focus: Focus | None = None
    loadout: str | None = None
    shrunk: str | None = None
    anticipated: tuple[Tool, ...] = ()
    ahead: str = ""
    missing: tuple[MissingPlugin, ...] = ()
    count: Callable[[], Costs] | None = field(default=None, compare=False, repr=False)

    @property
    def tokens(self) -> Costs:
        """Return what the surface costs, counted now.

        Raises:
            ValueError: there is nothing that counts.
        """
        if self.count is None:
            raise ValueError("this surface was made without a token counter")
        return self.count()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the wire names, in order."""
        return tuple(loaded.tool.wire for loaded in self.tools)

    def find(self, wire: str) -> LoadedTool | None:
        """Return the loaded tool with this wire name, or None.

        Args:
            wire: the wire name.
        """
        return next((loaded for loaded in self.tools if loaded.tool.wire == wire), None)


def resolve(
    permissions: CompiledPermissions,
    state: State,
    *,
    session: str | None = None,
    meta: Iterable[Tool] = (),
    host_tools: Iterable[Tool] = (),
    fixed: bool = False,
) -> Surface:
    """Return the surface: total, deterministic, its cost that of what is loaded.

    With ``fixed`` no load changes its tools: what a session loads is called through one of ``meta`` (D1).
    """
    listed = replace(state, leases=(), seen=()) if fixed else state
    return Surface(
        agent=permissions.agent.name,
        session=session,
        turn=state.turn,
        tools=order(
            permissions, seen_tools(permissions, listed), (*loaded_host_tools(host_tools), *loaded_meta_tools(meta))
        ),
        loadout=state.loadout,
        shrunk=state.shrunk,
        anticipated=newly_anticipated(permissions, state),
        missing=missing_at_start(permissions),
    )


def seen_tools(permissions: CompiledPermissions, state: State) -> Mapping[str, LoadedTool]:
    """Return what is loaded, and among it what was unloaded and leaves with the turn (D2)."""
    loaded = active_tools(permissions, state)
    if not state.seen:
        return loaded
    seen = active_tools(permissions, state.as_seen)
    return {key: one if key in loaded else replace(one, leaving=True) for key, one in seen.items()}


@once_per_permissions
def missing_at_start(permissions: CompiledPermissions) -> tuple[MissingPlugin, ...]:
    """Return the plugins that are to be loaded from the start and cannot run, the first reason of each."""
    found: dict[str, str] = {}
    for entry in starting_entries(permissions):
        plugin = permissions.world.catalog.plugins[entry.plugin]
        reason = plugin.variant(entry.key).unavailable
        if reason and (entry.tools or permissions.grants_unseen(plugin)):
            found.setdefault(plugin.name, reason)
        elif changed := tuple(tool.name for tool in entry.tools if tool.unavailable == CHANGED):
            found.setdefault(plugin.name, Unreviewed(changed=changed).text)
        elif plugin.excluded and len(entry.tools) == len(plugin.tools):  # all of it
            found.setdefault(plugin.name, _sentence(excluded_text(plugin.excluded)))
    for name, tools in permissions.entries.unresolved_from_start.items():
        plugin = permissions.world.catalog.plugins[name]
        absent = [tool for tool in tools if _has_no_denial(permissions, Tool(plugin=name, name=tool), plugin)]
        if absent and (reason := plugin.variant("").unavailable or _missing_tools_text(plugin, absent)):
            found.setdefault(name, reason)
    for one in name_conflicts(permissions):
        if not one.toolkit:
            found.setdefault(one.second.plugin, f"{one.text} {one.fix}")
    return tuple(MissingPlugin(plugin=name, reason=reason) for name, reason in found.items())


def _sentence(clause: str) -> str:
    return f"{clause[:1].upper()}{clause[1:]}."


def _missing_tools_text(plugin: Plugin, tools: Sequence[str]) -> str:
    """Return that a plugin which has answered lacks tools that are to be loaded from the start."""
    if not any(variant.known for variant in plugin.variants.values()):
        return ""
    if reasons := {tool: plugin.excluded[tool] for tool in tools if tool in plugin.excluded}:
        return _sentence(excluded_text(reasons))
    guess = did_you_mean(tools[0], (tool.name for tool in plugin.tools))
    return f"It has no tool {' or '.join(map(repr, tools))}. {guess}".strip()


def _has_no_denial(permissions: CompiledPermissions, tool: Tool, plugin: Plugin) -> bool:
    return next(permissions.decisions.denials(tool, plugin), None) is None


def loaded_meta_tools(tools: Iterable[Tool]) -> tuple[LoadedTool, ...]:
    """Return the meta-tools as they stand on a surface."""
    return tuple(LoadedTool(tool=tool, until=ALWAYS, because=(LeaseReason.META,)) for tool in tools)


def loaded_host_tools(tools: Iterable[Tool]) -> tuple[LoadedTool, ...]:
    """Return the host's own tools as they stand on a surface: listed as static ones, and managed."""
    because = (LeaseReason.STATIC, LeaseReason.META)
    return tuple(LoadedTool(tool=tool, until=ALWAYS, because=because) for tool in tools)


def order(
    permissions: CompiledPermissions, active: Mapping[str, LoadedTool], meta: Iterable[LoadedTool]
) -> tuple[LoadedTool, ...]:
    """Return what the model gets, in the order of F1, without what is unavailable or to come (P6, D2)."""
    head = starting_tools(permissions).head
    now = {key: loaded for key, loaded in active.items() if not loaded.pending}
    first = {key for key, loaded in now.items() if key in head and loaded.because[0] not in LEASED}
    front = [loaded for key, loaded in now.items() if key in first]
    back = [loaded for key, loaded in now.items() if key not in first]
    return (*available(permissions, front), *meta, *available(permissions, back))


def suffix(permissions: CompiledPermissions, state: State, *, revealed: bool = False) -> str:
    """Return the line that follows the history and never is in the prefix (F2).

    It has what is loaded now and from the next request on, what went with the last turn, what narrows the rest. What
    the history has ``revealed`` it does not name again (D4).
    """
    leases = tuple(leases_with_tools(permissions, state, remove_dead_leases(permissions, state).leases))
    now = _subject_names(permissions, (lease for lease in leases if lease.from_turn <= state.turn))
    later = [name for name in _subject_names(permissions, leases) if name not in now]
    names = (*now, *later)
    parts = [f"Loaded now: {', '.join(now)}."] if now and not revealed else []
    if later:
        parts.append(f"Loaded from the next request on: {', '.join(later)}.")
    gone = [name for name in state.evicted if name not in names and not revealed]
    if gone:
        parts.append(f"Unloaded at the end of the last turn: {some_of(gone)}.")
    if state.loadout is not None:
        parts.append(f"Active loadout: {state.loadout}; what it excludes is out of reach.")
    if state.shrunk is not None:
        parts.append(
            f"To fit the budget only loadout '{state.shrunk}' is loaded from the start; the rest may be loaded."
        )
    return " ".join(parts)


def _subject_names(permissions: CompiledPermissions, leases: Iterable[Lease]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(display_name(permissions, lease.subject) for lease in leases))


# -- what joins and leaves from one request to the next --------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceChanges:
    """What changed of the tools since the last request.

    Attributes:
        joined: the tools that are new, in the order of the surface, or whose definition is another one now.
        left: the wire names of those that are gone, in the order that they stood in.
    """

    joined: tuple[Tool, ...] = ()
    left: tuple[str, ...] = ()


def changes_between(before: Iterable[Tool], now: Surface) -> SurfaceChanges:
    """Return what joined and left between the tools of one surface and those of a later one."""
    known = {tool.wire: tool for tool in before}
    names = frozenset(now.names)
    joined = tuple(one.tool for one in now.tools if known.get(one.tool.wire) != one.tool)
    return SurfaceChanges(joined=joined, left=tuple(wire for wire in known if wire not in names))
