"""Join the servers of a client with a configuration that other clients use already (G12)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pegboard.config.clients.generated import ServersToTake, client_text
from pegboard.config.documents.document import is_list, is_mapping
from pegboard.config.documents.value_edits import value_at, with_value, without_value
from pegboard.core.model.loadouts import matches_pattern
from pegboard.core.model.tools import EMPTY
from pegboard.errors import UsageError

DEFAULT: Final = "default"
"""The agent of clients that name none: it has what the first of them had."""
_EVERY: Final = {"discoverable": ["*"]}
"""What the agent of a configuration may load that has no section of agents."""
Resolve = Callable[[Any], Any]
"""Returns an entry with the values that it refers to, as far as they are known here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedServers:
    """What a configuration gets for one client, and where that client finds its servers in it.

    Attributes:
        names: the name in the configuration of each server of the client, by the client's name for it.
        added: the servers that the configuration does not have yet.
        agent: the agent whose set of servers is the client's.
        parts: what is written of toolkits and agents, by its path of keys.
        whole: the client's servers, where there is no configuration yet; ``source`` is the file that they come from.
    """

    names: Mapping[str, str] = field(default=EMPTY)
    added: Mapping[str, Any] = field(default=EMPTY)
    agent: str = DEFAULT
    parts: Mapping[tuple[str, ...], Any] = field(default_factory=dict[tuple[str, ...], Any])
    whole: ServersToTake | None = None
    source: str = ""

    @property
    def changes(self) -> bool:
        """Return whether the configuration is written at all."""
        return self.whole is not None or bool(self.added or self.parts)

    def text(self, text: str, servers: Mapping[str, Any], *, file: str, shared: bool) -> str:
        """Return the text of the configuration with these servers in place of those that are added.

        Args:
            text: what is in the configuration, nothing where there is none.
            servers: those that are added, as they are to be written.
            file: the name of the configuration.
            shared: whether clients with other sets of servers may join it later.

        Raises:
            ConfigError: it cannot be written without changing something else.
        """
        if self.whole is not None:
            discoverable = plain_names(self.whole) if shared else ["*"]
            return client_text(self.whole, self.source, servers=servers, discoverable=discoverable)
        for name, entry in servers.items():
            text = with_value(text, ("servers", name), dict(entry), file=file)
        for path, value in self.parts.items():
            text = with_value(text, path, value, file=file)
        return text


def merge_servers(
    text: str,
    taken: ServersToTake,
    *,
    file: str,
    source: str,
    own: str,
    current: str | None = None,
    shared: bool,
    resolve: Resolve,
) -> MergedServers:
    """Return what a configuration needs so that a client finds its servers in it, and no others.

    A server that is there already with the same command, arguments, environment, address and headers is not written
    again. One of the same name that differs becomes ``NAME-OWN`` with the prefix ``NAME``.

    Args:
        text: what is in the configuration, nothing where there is none.
        taken: the servers of the client.
        file: the name of the configuration.
        source: the name of the client's file.
        own: the agent that the client gets where its set of servers is another one than that of ``default``.
        current: the agent that the client has already, which keeps what it has; None where it has none.
        shared: whether ``default`` has to have exactly these servers, or may have more.
        resolve: returns an entry with the values that it refers to.

    Raises:
        ConfigError: the configuration cannot be read.
    """
    if not text:
        names = {name: name for name in taken.servers}
        return MergedServers(names=names, added=dict(taken.servers), whole=taken, source=source)
    value: Mapping[str, Any] = value_at(text, (), file=file) or EMPTY
    names, added = _place_servers(value, taken, own, resolve)
    wanted = _WantedGrants(taken, names)
    agents = _section(value, "agents")
    usual = current or DEFAULT
    there: Mapping[str, Any] = agents.get(usual) or EMPTY if agents else _EVERY
    renamed = any(name != in_file for name, in_file in names.items())  # else one name would mean two servers
    exactly = current is None and (shared or renamed)
    if (usual in agents or not agents) and wanted.granted_by(value, there, [*added], exactly=exactly):
        return MergedServers(names=names, added=added, agent=usual)
    parts: dict[tuple[str, ...], Any] = {}
    if not agents:
        every = [*_section(value, "servers"), *_section(value, "plugins")]
        parts["agents", DEFAULT] = there = {"dialect": "pegboard", "discoverable": every}
    for name, members in wanted.toolkits(value, own).items():
        if _section(value, "toolkits").get(name) is None:
            parts["toolkits", name] = {"description": f"Tools of {name}", "tools": members}
    profile = agents.get(own)
    base: Mapping[str, Any] = profile or (there if current is not None else EMPTY)
    lists = wanted.lists(value, own, base)
    if profile is None:
        parts["agents", own] = {"dialect": "pegboard", **base, **lists}
    else:
        parts |= {("agents", own, key): items for key, items in lists.items() if items != profile.get(key)}
    return MergedServers(names=names, added=added, agent=own, parts=parts)


def plain_names(taken: ServersToTake) -> list[str]:
    """Return the servers all of whose tools may be loaded, and are not always."""
    return [name for name in taken.servers if name not in taken.filters and name not in taken.in_view]


def discoverable_with(profile: Mapping[str, Any], name: str) -> list[str] | None:
    """Return what an agent's ``discoverable`` is once it may load a server; None where it may already.

    >>> discoverable_with({"discoverable": ["git"]}, "time"), discoverable_with({"discoverable": ["*"]}, "time")
    (['git', 'time'], None)
    """
    patterns = [one for one in _list(profile.get("discoverable")) if isinstance(one, str)]
    return None if any(matches_pattern(pattern, name) for pattern in patterns) else [*patterns, name]


# -- servers ---------------------------------------------------------------------------------------


def _place_servers(
    value: Mapping[str, Any], taken: ServersToTake, own: str, resolve: Resolve
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the name of each server in the configuration, and those that are not in it yet."""
    there, others = _section(value, "servers"), _section(value, "plugins")
    names: dict[str, str] = {}
    added: dict[str, Any] = {}
    for name, entry in taken.servers.items():
        number, free = 1, name
        while True:
            wanted = entry if free == name else {**entry, "prefix": name}
            known = there.get(free)
            if known is None and free not in others and free not in added:
                added[free] = wanted
                break
            if known is not None and same_server(known, wanted, resolve):
                break
            free = f"{name}-{own}" if number == 1 else f"{name}-{own}-{number}"
            number += 1
        names[name] = free
    return names, added


def same_server(one: Any, other: Any, resolve: Resolve) -> bool:
    """Return whether two entries are one server: what is started or called, and with which environment and headers.

    Where the second says how it is confined, the first says the same.
    """
    if not is_mapping(one) or not is_mapping(other):
        return bool(one == other)
    if "confine" in other and one.get("confine") != other["confine"]:
        return False
    return _identity(resolve(one)) == _identity(resolve(other))


def _identity(entry: Mapping[str, Any]) -> object:
    command = entry.get("command")
    program, *rest = [*command] if is_list(command) and command else [command]
    found = shutil.which(program) if isinstance(program, str) else None
    off = entry.get("disabled") is True or entry.get("enabled") is False
    headers = {str(key).casefold(): value for key, value in _as_mapping(entry.get("headers")).items()}
    return (
        found or program,
        [*rest, *_list(entry.get("args"))],
        dict(_as_mapping(entry.get("env"))),
        entry.get("url"),
        headers,
        *(entry.get(key) for key in ("cwd", "prefix", "auth")),
        off,
    )


# -- agents ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _WantedGrants:
    """What an agent has to have for the servers of a client, under their names in the configuration."""

    taken: ServersToTake
    names: Mapping[str, str]

    def granted_by(
        self, value: Mapping[str, Any], profile: Mapping[str, Any], added: Sequence[str], *, exactly: bool
    ) -> bool:
        """Return whether an agent has all of this; ``exactly``: and nothing else."""
        everything = [*_section(value, "servers"), *added, *_section(value, "plugins")]
        patterns = [one for one in _list(profile.get("discoverable")) if isinstance(one, str)]
        plain = {name for name in everything if any(matches_pattern(pattern, name) for pattern in patterns)}
        kits = _section(value, "toolkits")
        members = [kits.get(name) for name in _list(profile.get("allowed_toolkits"))]
        limited = {_key(one) for kit in members if is_mapping(kit) for one in _list(kit.get("tools"))}
        static = {_key(one) for one in _list(profile.get("tools"))}
        wanted = (
            set(self._plain_members),
            {_key(one) for one in self._filters_by_name},
            {_key(one) for one in self._static},
        )
        if exactly:
            others = {"loadout", "essential", "permissions"} & profile.keys()
            return (plain, limited, static) == wanted and not others
        needed, needed_limited, needed_static = wanted
        return needed <= plain and needed_limited <= limited and needed_static <= static

    def toolkits(self, value: Mapping[str, Any], own: str) -> dict[str, list[Any]]:
        """Return the toolkit that stands for each server of which the client shows only some tools."""
        kits = _section(value, "toolkits")
        found: dict[str, list[Any]] = {}
        for one in self._filters_by_name:
            (name,) = one
            free = name if kits.get(name) is None or _members(kits[name]) == [one] else f"{name}-{own}"
            found[free] = [one]
        return found

    def lists(self, value: Mapping[str, Any], own: str, profile: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Return the lists of an agent with this in them."""
        wanted = {
            "discoverable": self._plain_members,
            "allowed_toolkits": list(self.toolkits(value, own)),
            "tools": self._static,
        }
        found: dict[str, list[Any]] = {}
        for key, items in wanted.items():
            there = _list(profile.get(key))
            if joined := [*there, *(one for one in items if one not in there)]:
                found[key] = joined
        return found

    @property
    def _plain_members(self) -> list[str]:
        return [self.names[name] for name in plain_names(self.taken)]

    @property
    def _filters_by_name(self) -> list[dict[str, Any]]:
        return [{self.names[name]: dict(rule)} for name, rule in self.taken.filters.items() if name in self.names]

    @property
    def _static(self) -> list[Any]:
        rules = self.taken.filters
        names = ((name, self.names[name]) for name in self.taken.in_view if name in self.names)
        return [{own: dict(rules[name])} if name in rules else own for name, own in names]


def _members(kit: Any) -> list[Any]:
    return _list(kit.get("tools")) if is_mapping(kit) else []


def _key(member: Any) -> str:
    return json.dumps(member, sort_keys=True, default=str)


def _section(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return _as_mapping(value.get(name))


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if is_mapping(value) else EMPTY


def _list(value: Any) -> list[Any]:
    return list(value) if is_list(value) else []


# -- one server ------------------------------------------------------------------------------------


def with_server(text: str, name: str, entry: Mapping[str, Any], *, agent: str | None, file: str) -> str:
    """Return the text of a configuration with a server that its agents may load.

    Args:
        text: what is in it, nothing where there is none.
        name: the name of the server.
        entry: the server as it is to be written.
        agent: the only agent that gets it, or None for every one.
        file: the name of the configuration.

    Raises:
        UsageError: there is a server or plugin of this name, or no such agent.
        ConfigError: it cannot be written without changing something else.
    """
    if not text:
        if agent not in (None, DEFAULT):
            raise UsageError(f"There is no agent '{agent}': there is no configuration yet.", code="unknown_agent")
        return client_text(ServersToTake(servers={name: entry}), "", discoverable=[name])
    value: Mapping[str, Any] = value_at(text, (), file=file) or EMPTY
    if name in _section(value, "servers") or name in _section(value, "plugins"):
        hint = f"Remove that one first (`pegboard remove {name}`), or choose another name."
        raise UsageError(f"{file} already has a server or plugin '{name}'.", code="server_exists", hint=hint)
    agents = _section(value, "agents")
    if agent is not None and agent not in (agents or (DEFAULT,)):
        hint = f"There are: {', '.join(agents or (DEFAULT,))}."
        raise UsageError(f"There is no agent '{agent}' in {file}.", code="unknown_agent", hint=hint)
    text = with_value(text, ("servers", name), dict(entry), file=file)
    for one, profile in agents.items():
        if agent in (None, one) and (patterns := discoverable_with(_as_mapping(profile), name)) is not None:
            text = with_value(text, ("agents", one, "discoverable"), patterns, file=file)
    return text


def may_load(value: Mapping[str, Any], name: str) -> list[str]:
    """Return the agents of a configuration that name a server, or a pattern or toolkit that has it."""
    agents, kits = _section(value, "agents"), _section(value, "toolkits")
    if not agents:
        return [DEFAULT]
    found: list[str] = []
    for agent, said in agents.items():
        profile = _as_mapping(said)
        members = [one for kit in _list(profile.get("allowed_toolkits")) for one in _members(kits.get(kit))]
        named = [*_list(profile.get("tools")), *_list(profile.get("essential")), *members]
        if discoverable_with(profile, name) is None or any(_member_name(one) == name for one in named):
            found.append(agent)
    return found


# -- out of it -------------------------------------------------------------------------------------


def without_server(text: str, name: str, *, file: str) -> str:
    """Return the text of a configuration without a server, and without what grants it alone or switches it.

    Raises:
        ConfigError: it cannot be written without changing something else.
    """
    value: Mapping[str, Any] = value_at(text, (), file=file) or EMPTY
    kits = _section(value, "toolkits")
    gone = {kit for kit, said in kits.items() if _has_only(_members(said), name)}
    for kit, said in kits.items():
        if kit not in gone and (rest := _without_members(_members(said), {name})) != _members(said):
            text = with_value(text, ("toolkits", kit, "tools"), rest, file=file)
    for agent, profile in _section(value, "agents").items():
        for key, names in (("discoverable", {name}), ("tools", {name}), ("allowed_toolkits", gone)):
            items = _list(_as_mapping(profile).get(key))
            if (rest := _without_members(items, names)) != items:
                path = ("agents", agent, key)
                text = with_value(text, path, rest, file=file) if rest else without_value(text, path, file=file)
        switches = _as_mapping(_as_mapping(profile).get("permissions"))
        off = [one for one in switches if _switches(str(one), name) or str(one).removeprefix("toolkit:") in gone]
        for one in off if len(off) < len(switches) else ():
            text = without_value(text, ("agents", agent, "permissions", str(one)), file=file)
        if off and len(off) == len(switches):
            text = without_value(text, ("agents", agent, "permissions"), file=file)
    for kit in gone:
        text = without_value(text, ("toolkits", kit), file=file)
    return without_value(text, ("servers", name), file=file)


def _switches(switch: str, name: str) -> bool:
    """Return whether a switch is of a server or of one of its tools.

    >>> _switches("plugin:git", "git"), _switches("git/log", "git"), _switches("gitlab", "git")
    (True, True, False)
    """
    bare = switch.partition(":")[2] if switch.startswith(("plugin:", "tool:")) else switch
    return bare == name or bare.startswith((f"{name}/", f"{name}__"))


def _has_only(members: Sequence[Any], name: str) -> bool:
    return bool(members) and all(_member_name(one) == name for one in members)


def _without_members(items: Sequence[Any], names: Collection[str]) -> list[Any]:
    return [one for one in items if _member_name(one) not in names]


def _member_name(member: Any) -> str:
    return str(next(iter(member), "")) if is_mapping(member) else str(member)
