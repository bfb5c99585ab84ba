"""What of an edited configuration counts before a person accepts the rest: nothing that widens (P10)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from pegboard.config.grants import EVERY, Digest, confinement_of, label_members, labelled_hooks
from pegboard.config.schema.configuration import Configuration
from pegboard.core.access.grants import Grant, GrantChange, GrantKey
from pegboard.core.model.agents import Agent
from pegboard.core.model.hooks import Hook
from pegboard.core.model.loadouts import Loadout, category_of
from pegboard.core.model.selectors import Member
from pegboard.core.model.specs import NAME_ONLY, PluginSpec, PythonSpec, RegisteredSpec, ServerSpec
from pegboard.core.model.toolkits import Toolkit
from pegboard.core.model.tools import EMPTY, Frozen
from pegboard.core.principals.bearer_tokens import Token

T = TypeVar("T")
WAITS = "its settings were changed, and the change waits for a person."
"""Why a plugin of which other code would run is not available."""


class _WaitingChanges:
    """The changes that wait, by where they stand."""

    def __init__(self, waiting: Iterable[GrantChange]) -> None:
        self._by_key: Mapping[GrantKey, GrantChange] = {change.key: change for change in waiting}

    def __contains__(self, key: GrantKey) -> bool:
        return key in self._by_key

    def without(self, key: GrantKey, items: Iterable[T], name: Callable[[T], str]) -> tuple[T, ...]:
        """Return the items of a list whose entries do not wait."""
        return tuple(item for item in items if (*key, name(item)) not in self._by_key)

    def names(self, key: GrantKey, items: Iterable[str]) -> tuple[str, ...]:
        """Return the names of a list whose entries do not wait, and those whose going waits."""
        gone = (at[-1] for at, was in self._removed_below(key) if len(at) == len(key) + 1 and not was.denies)
        return (*self.without(key, items, str), *gone)

    def without_place(self, section: str, known: Container[str]) -> tuple[str, ...]:
        """Return the names in a section of which something waits to go, and that are no longer there."""
        return tuple(dict.fromkeys(at[1] for at, _ in self._removed_below((section,)) if at[1] not in known))

    def members(self, key: GrantKey, members: Iterable[Member]) -> tuple[Member, ...]:
        """Return the entries of a list of tools that do not wait, and as they were those that widened or wait to go."""
        found = (self._member((*key, *label), member) for label, member in label_members(members))
        gone = (_member_of(at[len(key)], was.value) for at, was in self._removed_below(key))
        return (*(member for member in found if member is not None), *gone)

    def _removed_below(self, key: GrantKey) -> Iterator[tuple[GrantKey, Grant]]:
        """Yield what is no longer there below a place, and waits to go."""
        for at, change in self._by_key.items():
            if at[: len(key)] == key and len(at) > len(key) and change.after is None and change.before is not None:
                yield at, change.before

    def _member(self, key: GrantKey, member: Member) -> Member | None:
        change = self._by_key.get(key)
        if change is None:
            return member
        if change.before is None or change.after is None or settings_of(change.before) != settings_of(change.after):
            return None
        was = _member_of(member.name, change.before.value)
        return replace(member, include=was.include, exclude=was.exclude)

    def lost_denials(self, *key: str) -> dict[GrantKey, Any]:
        """Return what was denied below a place and is to be denied on, by the rest of its keys."""
        return {
            change.key[len(key) :]: change.before.value
            for change in self._by_key.values()
            if change.key[: len(key)] == key and change.before is not None and change.before.denies
        }

    def adds(self, *key: str) -> bool:
        """Return whether an entry that waits is new."""
        return key in self and self._by_key[key].before is None

    def value_before(self, *key: str) -> Any:
        """Return what an entry said that was changed; None where there was none."""
        change = self._by_key.get(key)
        return change.before.value if change is not None and change.before is not None else None

    def values_before(self, key: GrantKey, **fields: str) -> dict[str, Any]:
        """Return what was said, by field, of those of these entries that were changed."""
        return {field: self.value_before(*key, entry) for field, entry in fields.items() if (*key, entry) in self}


def apply_waiting(edited: Configuration, waiting: Iterable[GrantChange], digest: Digest) -> Configuration:
    """Return a configuration without what waits: entries that are new do not count, denials that are gone do."""
    found = _WaitingChanges(waiting)
    kits = {**edited.toolkits, **{n: Toolkit(name=n) for n in found.without_place("toolkits", edited.toolkits)}}
    loadouts = {**edited.loadouts, **{n: Loadout(name=n) for n in found.without_place("loadouts", edited.loadouts)}}
    toolkits = {n: _toolkit(kit, found) for n, kit in kits.items() if not found.adds("toolkits", n)}
    agents = {
        name: _agent(one, found, toolkits) for name, one in edited.agents.items() if ("agents", name) not in found
    }
    return replace(
        edited,
        agents=Frozen(agents),
        toolkits=Frozen(toolkits),
        loadouts=Frozen({name: _loadout(name, one, found) for name, one in loadouts.items()}),
        sub_apps=Frozen(
            {
                name: found.members(("sub_apps", name, "tool_names"), members)
                for name, members in edited.sub_apps.items()
            }
        ),
        specs=Frozen(
            {name: _spec(spec, found) for name, spec in edited.specs.items() if not found.adds("plugins", name)}
        ),
        tokens=_tokens(edited.tokens, found),
        notify=tuple(_notify(edited.notify, found, digest)),
        reload=found.value_before("reload") or "live" if ("reload",) in found else edited.reload,
    )


def _notify(hooks: Iterable[Hook], waiting: _WaitingChanges, digest: Digest) -> Iterator[Hook]:
    for key, hook in labelled_hooks(hooks, digest):
        if not waiting.adds(*key):
            was: Mapping[str, Any] = waiting.value_before(*key) or {}
            settings: dict[str, Any] = {**was, "events": tuple(was["events"])} if was else {}
            yield replace(hook, **settings)


def settings_of(grant: Grant) -> object:
    """Return the digest of the settings of an entry of a list of tools."""
    return grant.value.get("settings")


def _member_of(name: str, value: Mapping[str, Any]) -> Member:
    """Return an entry of a list of tools of what is kept of it; no plugin takes the digest that stands for settings."""
    include, settings = value.get("include"), value.get("settings")
    return Member(
        name=name,
        overrides=Frozen({"": settings}) if settings is not None else EMPTY,
        include=None if include is None else frozenset(include),
        exclude=frozenset(value.get("exclude", ())),
    )


def _agent(agent: Agent, waiting: _WaitingChanges, toolkits: Container[str]) -> Agent:
    key = ("agents", agent.name)
    allowed = tuple(n for n in waiting.names((*key, "allowed_toolkits"), agent.allowed_toolkits) if n in toolkits)
    switches = {name: on for name, on in agent.switches.items() if (*key, "permissions", name) not in waiting}
    switches |= {rest[0]: False for rest in waiting.lost_denials(*key, "permissions")}
    return replace(
        agent,
        static=waiting.members((*key, "tools"), agent.static),
        essential=waiting.members((*key, "essential"), agent.essential),
        host_tools=waiting.names((*key, "host_tools"), agent.host_tools),
        allowed_toolkits=allowed,
        initial_toolkits=tuple(name for name in agent.initial_toolkits if name in allowed),
        discoverable=waiting.names((*key, "discoverable"), agent.discoverable),
        sub_apps=waiting.names((*key, "sub_apps"), agent.sub_apps),
        may_delegate=waiting.names((*key, "may_delegate"), agent.may_delegate),
        self_config=waiting.names((*key, "self_config"), agent.self_config),
        switches=Frozen(switches),
        **waiting.values_before(
            key, loadout="loadout", private_per="private", approvals_by="approvals_by", worker_scope="worker_scope"
        ),
    )


def _toolkit(kit: Toolkit, waiting: _WaitingChanges) -> Toolkit:
    key = ("toolkits", kit.name)
    kit = replace(kit, members=waiting.members((*key, "tools"), kit.members))
    if (*key, "hooks") not in waiting:
        return kit
    return replace(kit, policy_hook="", focus=tuple(rule for rule in kit.focus if "python" not in rule))


def _loadout(name: str, loadout: Loadout, waiting: _WaitingChanges) -> Loadout:
    key = ("loadouts", name)
    disabled = (*loadout.disabled, *(rest[0] for rest in waiting.lost_denials(*key, "disabled")))
    parent = waiting.value_before(*key, "extends") if (*key, "extends") in waiting else loadout.parent
    if (*key, "shadows") in waiting:
        return Loadout(name=loadout.name, parent=parent, disabled=disabled)
    return replace(
        loadout,
        parent=parent,
        plugins=waiting.names((*key, "plugins"), loadout.plugins),
        categories=waiting.names((*key, "categories"), loadout.categories),
        discoverable=waiting.names((*key, "discoverable"), loadout.discoverable),
        disabled=disabled,
    )


def _spec(spec: PluginSpec, waiting: _WaitingChanges) -> PluginSpec:
    key = ("plugins", spec.name)
    guards = {tool: dict(rules) for tool, rules in spec.guards.items()}
    for (tool, argument), rule in waiting.lost_denials(*key, "guards").items():
        guards.setdefault(tool, {})[argument] = rule
    approve = {**spec.approve, **{rest[0]: _rule(rule) for rest, rule in waiting.lost_denials(*key, "approve").items()}}
    when = {tool: predicate for tool, predicate in spec.when.items() if (*key, "when", tool) not in waiting}
    when |= {rest[0]: predicate for rest, predicate in waiting.lost_denials(*key, "when").items()}
    if (*key, "category") in waiting:
        spec = replace(spec, category=waiting.value_before(*key, "category") or category_of(spec.name))
    spec = replace(
        spec,
        guards=Frozen(guards),
        approve=Frozen(approve),
        when=Frozen(when),
        default_on=spec.default_on and (*key, "default_on") not in waiting,
        shared_only=spec.shared_only or (*key, "shared_only") in waiting,
        **waiting.values_before(key, instance="instance", prefix="prefix"),
    )
    if (was := waiting.value_before(*key, "confine")) is not None:
        spec = replace(spec, confine=confinement_of(was))
    if isinstance(spec, ServerSpec):
        spec = replace(spec, trust_annotations=spec.trust_annotations and (*key, "trust") not in waiting)
        if (*key, "pins") in waiting:
            spec = replace(spec, pins=waiting.value_before(*key, "pins") or "additions")
    return make_unavailable(spec) if key in waiting else spec


def _rule(rule: Any) -> Any:
    if not isinstance(rule, dict):
        return rule
    return Frozen({name: _rule(value) for name, value in cast("dict[str, Any]", rule).items()})


def make_unavailable(spec: PluginSpec, why: str = WAITS) -> Any:
    """Return a plugin that runs nothing before a person has seen what it would run now."""
    match spec:
        case ServerSpec():
            return replace(spec, command=None, url=None, env=Frozen(), unavailable=why)
        case PythonSpec():
            return RegisteredSpec(
                name=spec.name, category=spec.category, description=spec.description, place=spec.place,
                loader=f"{NAME_ONLY}{why}", default_on=spec.default_on, shared_only=spec.shared_only,
            )  # fmt: skip
        case RegisteredSpec():  # it took the name of what ran other code
            return replace(spec, loader=f"{NAME_ONLY}{why}", by_category=False)


def _tokens(tokens: Iterable[Token], waiting: _WaitingChanges) -> tuple[Token, ...]:
    kept: list[Token] = []
    for token in tokens:
        key = ("tokens", token.principal)
        if key in waiting:
            continue
        agents = token.agents
        if agents is not None or (*key, "agents", EVERY) in waiting:
            agents = waiting.names((*key, "agents"), agents or ())
            agents = None if EVERY in agents else agents
        rights = frozenset(waiting.without((*key, "console"), token.rights, str))
        kept.append(replace(token, agents=agents, rights=rights))
    if not kept and (tokens or ("tokens",) in waiting):
        kept.append(Token(principal="", value=secrets.token_urlsafe(32)))  # no one has it, so that no one enters
    return tuple(kept)
