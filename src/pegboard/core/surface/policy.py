"""The policy text of toolkits and tools, which a model is given while it has them (T6)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final

from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions
from pegboard.core.anticipation.anticipated_leases import Anticipation, beside_load
from pegboard.core.model.catalog import split_kind
from pegboard.core.model.masking import Masker
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import available_tools
from pegboard.core.state.commands import Command, CommandContext, Load, Outcome
from pegboard.core.state.sessions import State
from pegboard.core.state.transitions import transition

LIMIT: Final = 20_000
"""How many characters of policy one toolkit or tool may have."""
PLACEHOLDER: Final = "{tools}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One policy text: of which tools it speaks, and the names under which they may stand in it."""

    text: str
    members: frozenset[str]
    names: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HookedPolicy:
    """A policy text that a toolkit's hook writes, for those of its members that are visible."""

    toolkit: str
    hook: str
    members: tuple[str, ...]


Written = Mapping[HookedPolicy, str]
"""What hooks have written."""
_NOTHING: Final[Written] = {}


def initial(permissions: CompiledPermissions, state: State, written: Written = _NOTHING) -> str:
    """Return the policy of what is loaded from the start: it is in the prefix, and no load changes it."""
    if written:
        return _join_parts(_texts(permissions, _start(permissions, state), written).values())
    return _initial(permissions, state.loadout, state.shrunk)


def has_hooks(permissions: CompiledPermissions) -> bool:
    """Return whether a hook writes the policy of some toolkit."""
    return bool(_hooks(permissions))


def hooked_at_start(permissions: CompiledPermissions, state: State) -> tuple[HookedPolicy, ...]:
    """Return what hooks are to write of what is loaded from the start."""
    return tuple(_hooked_texts(permissions, _start(permissions, state)).values()) if _hooks(permissions) else ()


def policies_needing_hooks(
    permissions: CompiledPermissions, state: State, tools: Iterable[Tool]
) -> tuple[HookedPolicy, ...]:
    """Return what hooks are to write where these tools come."""
    wanted = {tool.id for tool in tools} if _hooks(permissions) else ()
    names = [name for name, hooked in _hooks(permissions).items() if not hooked.members.isdisjoint(wanted)]
    if not names:
        return ()
    parts = (
        _hooked_texts(permissions, found) for found in (available_tools(permissions, state), _start(permissions, state))
    )
    return tuple(dict.fromkeys(part[name] for part in parts for name in names if name in part))


def _hooked_texts(permissions: CompiledPermissions, tools: Collection[Tool]) -> dict[str, HookedPolicy]:
    """Return by toolkit what its hook is to write, where a member is among these tools."""
    found: dict[str, HookedPolicy] = {}
    for name, hooked in _hooks(permissions).items():
        members = tuple(tool.wire for tool in tools if tool.id in hooked.members)
        if members:
            found[name] = HookedPolicy(toolkit=name, hook=hooked.text, members=members)
    return found


@once_per_permissions
def _hooks(permissions: CompiledPermissions) -> Mapping[str, Text]:
    """Return the toolkits that the agent may load and whose policy a hook writes; ``text`` is the hook."""
    toolkits = permissions.world.toolkits
    names = (name for name in permissions.entries.loadable_toolkits if toolkits[name].policy_hook)
    return {name: replace(_policy_of_toolkit(permissions, name), text=toolkits[name].policy_hook) for name in names}


@once_per_permissions
def _initial(permissions: CompiledPermissions, loadout: str | None, shrunk: str | None) -> str:
    return _join_parts(
        _texts(permissions, _start(permissions, State(loadout=loadout, shrunk=shrunk)), _NOTHING).values()
    )


def policy_of_added(
    permissions: CompiledPermissions, state: State, tools: Iterable[Tool], written: Written = _NOTHING
) -> str:
    """Return the policy that comes with these tools, without what the prefix has already."""
    wanted = {tool.id for tool in tools}
    if not wanted:
        return ""
    now = _texts(permissions, available_tools(permissions, state), written, about=wanted)
    before = _texts(permissions, _start(permissions, state), written, about=wanted) if now else {}
    return _join_parts(text for key, text in now.items() if text != before.get(key))


def apply_with_policy(
    permissions: CompiledPermissions,
    state: State,
    command: Command,
    terms: CommandContext,
    anticipation: Anticipation | None = None,
) -> tuple[State, Outcome]:
    """Return the state after a command, and its outcome with the policy of the tools that it added, but for hooks'.

    It is the one way to change a session (S5). With ``anticipation`` a load that may bring the siblings of the tools
    that it names brings them, as far as they are cheap.
    """
    after, outcome = transition(permissions, state, command, terms)
    if anticipation is not None and isinstance(command, Load) and command.siblings:
        after, outcome = beside_load(permissions, after, outcome, anticipation, terms)
    text = policy_of_added(permissions, after, outcome.added)
    return after, replace(outcome, policy=without_secrets(terms.masker, permissions, text)) if text else outcome


def without_secrets(masker: Masker, permissions: CompiledPermissions, text: str) -> str:
    """Return a policy without secrets; the names of tools stay, since the model calls them by these (X5)."""
    if not text:
        return ""
    plugins = permissions.world.catalog.plugins.values()
    return masker.text_around(text, lambda: (tool.wire for plugin in plugins for tool in plugin.tools))


def _start(permissions: CompiledPermissions, state: State) -> tuple[Tool, ...]:
    return available_tools(permissions, replace(state, leases=()))


def _texts(
    permissions: CompiledPermissions,
    tools: Collection[Tool],
    written: Written,
    *,
    about: AbstractSet[str] | None = None,
) -> dict[str, str]:
    """Return the texts by toolkit and by tool where a member is visible; ``about`` keeps what concerns these."""
    wires = {tool.id: tool.wire for tool in tools}
    found = {f"toolkit:{name}": text for name, text in _policy_of_toolkits(permissions).items()}
    for tool in tools:
        if tool.policy.strip():
            only = frozenset({tool.id})
            found[f"tool:{tool.id}"] = Text(text=tool.policy, members=only, names={tool.wire: only})
    concerned = {key: text for key, text in found.items() if about is None or not about.isdisjoint(text.members)}
    filled = {key: _fill_placeholders(text, wires) for key, text in concerned.items()}
    hooked = _hooked_texts(permissions, tools) if written else {}
    for name, asked in hooked.items():
        if about is None or not about.isdisjoint(_hooks(permissions)[name].members):
            filled[f"toolkit:{name}"] = "\n".join(map(_printable_line, written.get(asked, "").splitlines())).strip()
    return {key: text for key, text in filled.items() if text}


@once_per_permissions
def _policy_of_toolkits(permissions: CompiledPermissions) -> Mapping[str, Text]:
    """Return the policy of every toolkit that the agent may load."""
    names = (name for name in permissions.entries.loadable_toolkits if permissions.world.toolkits[name].policy.strip())
    return {name: _policy_of_toolkit(permissions, name) for name in names}


def _policy_of_toolkit(permissions: CompiledPermissions, name: str) -> Text:
    toolkit, entries = permissions.world.toolkits[name], permissions.entries.toolkits[name]
    named = {split_kind(item.name)[1]: frozenset[str]() for item in toolkit.members}
    for entry in entries:
        standing = (tool for tool in permissions.world.catalog.plugins[entry.plugin].tools if tool.id in entry.names)
        aliases = [(alias, frozenset({tool.id})) for tool in standing for alias in {tool.wire, tool.name}]
        for alias, ids in ((split_kind(entry.member.name)[1], entry.ids), *aliases):
            named[alias] = named.get(alias, frozenset()) | ids
    members = frozenset[str]().union(*(entry.ids for entry in entries))
    return Text(text=toolkit.policy, members=members, names=named)


def _fill_placeholders(text: Text, wires: Mapping[str, str]) -> str:
    """Return the text for what is visible, without the lines that name something that is not."""
    members = [wire for tool_id, wire in wires.items() if tool_id in text.members]
    if not members:
        return ""
    absent = [name for name, ids in text.names.items() if ids.isdisjoint(wires)]
    forbidden = _pattern_of_names(absent)
    kept = (line for line in text.text.splitlines() if forbidden is None or not forbidden.search(line))
    filled = (_printable_line(line).replace(PLACEHOLDER, ", ".join(members)) for line in kept)
    return "\n".join(line.rstrip() for line in filled).strip()


def _pattern_of_names(names: Collection[str]) -> re.Pattern[str] | None:
    """Return a pattern that finds any of these names where it stands as a whole word."""
    if not names:
        return None
    return re.compile(rf"(?<![A-Za-z0-9_-])(?:{'|'.join(map(re.escape, names))})(?![A-Za-z0-9_-])")


def _printable_line(line: str) -> str:
    return "".join(char if char.isprintable() else " " for char in line)


def _join_parts(parts: Iterable[str]) -> str:
    return "\n\n".join(dict.fromkeys(parts))
