"""What a configuration grants, entry by entry; none of it holds a secret (P10, X5)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final, cast

from pegboard.config.code_and_secrets import effect_of, goes_further_than
from pegboard.config.schema.configuration import Configuration
from pegboard.core.access.grants import REGISTERED, RELOAD, Grant, GrantChange, GrantKey, Grants
from pegboard.core.model.agents import Agent
from pegboard.core.model.hooks import Hook
from pegboard.core.model.loadouts import BUILT_IN, Loadout, category_of
from pegboard.core.model.selectors import Member
from pegboard.core.model.specs import Confinement, PluginSpec, PythonSpec, RegisteredSpec, ServerSpec
from pegboard.core.model.toolkits import Toolkit
from pegboard.core.principals.bearer_tokens import Token
from pegboard.problems import Place

Digest = Callable[[str], str]
"""A keyed digest of a text: what holds a secret can be compared, and not be read."""
_GrantRow = tuple[GrantKey, Grant]
EVERY: Final = "*"
_HOST: Final = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^/?#]*@)?([^/?#]+)", re.IGNORECASE)


def grants_of(configuration: Configuration, digest: Digest) -> dict[GrantKey, Grant]:
    """Return what a configuration grants and denies; what code and packages give is not its own."""
    found: dict[GrantKey, Grant] = {}
    for agent in configuration.agents.values():
        found.update(_agent(agent, digest))
    for kit in configuration.toolkits.values():
        found.update(_toolkit(kit, digest) if is_in_configuration(kit.place) else ())
    for name, loadout in configuration.loadouts.items():
        found.update(
            _loadout(name, loadout) if is_in_configuration(loadout.place) and BUILT_IN.get(name) is not loadout else ()
        )
    for name, members in configuration.sub_apps.items():
        found.update(_members(("sub_apps", name, "tool_names"), members, digest))
    for spec in configuration.specs.values():
        found.update(_plugin(spec, digest))
    for token in configuration.tokens:
        found.update(_token(token, digest))
    for key, hook in labelled_hooks(configuration.notify, digest):
        found[key] = Grant(value={"shape": hook.shape, "events": sorted(hook.events), "arguments": hook.arguments})
    if configuration.tokens:
        found["tokens",] = Grant(value="a token is required to connect", denies=True)
    if configuration.reload != "live":
        found[RELOAD] = Grant(value=configuration.reload, denies=configuration.reload == "ask")
    return found


def is_waiting(change: GrantChange, before: Grants, after: Grants) -> bool:
    """Return whether a change waits for a person, by the stricter of ``reload:`` before and after it.

    Under ``ask`` what widens waits, under ``live`` what would run code, hand over a secret that it did not before,
    or let in someone else; under ``all`` nothing does.
    """
    stated = {granted[RELOAD].value if RELOAD in granted else "live" for granted in (before, after)}
    if not change.widens or stated == {"all"}:
        return False
    return "ask" in stated or change.key == RELOAD or _runs_or_sends(change)


def _runs_or_sends(change: GrantChange) -> bool:
    """Return whether other code would run after a change, or another place or person would get a secret or rights."""
    if change.key[0] == "plugins" and change.key[2:] == ("confine",):  # the same code could do more
        return True
    if change.after is None:
        return False
    match change.key:
        case ("plugins", _):
            return goes_further_than(_effect(change.before), _effect(change.after))
        case ("toolkits", _, "hooks") | ("plugins", _, "when", _) | ("notify", *_):
            return True
        case ("tokens", _, *_):  # who has it accepts what would run
            return True
        case _:
            before, after = (_settings(grant) for grant in (change.before, change.after))
            return "secret" in after and after.get("settings") != before.get("settings")


def _effect(grant: Grant | None) -> str:
    """Return what a plugin runs and is handed: behind the digest of all that it is."""
    return "" if grant is None else str(grant.value).partition(" ")[2]


def _settings(grant: Grant | None) -> Mapping[str, Any]:
    """Return what an entry of a list of tools says; nothing of any other entry."""
    value: object = None if grant is None else grant.value
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _toolkit(kit: Toolkit, digest: Digest) -> Iterator[_GrantRow]:
    key = ("toolkits", kit.name)
    yield key, Grant()
    hooks = [kit.policy_hook, *(str(rule["python"]) for rule in kit.focus if "python" in rule)]
    if any(hooks):
        yield (*key, "hooks"), Grant(value=[hook for hook in hooks if hook])
    yield from _members((*key, "tools"), kit.members, digest)


def _loadout(name: str, loadout: Loadout) -> Iterator[_GrantRow]:
    key = ("loadouts", name)
    if name in BUILT_IN:
        yield (*key, "shadows"), Grant(value=BUILT_IN[name].name)
    for part in ("plugins", "categories", "discoverable"):
        yield from _names((*key, part), getattr(loadout, part))
    yield from _names((*key, "disabled"), loadout.disabled, denies=True)
    if loadout.parent is not None:
        yield (*key, "extends"), Grant(value=loadout.parent)


def is_in_configuration(place: Place | None) -> bool:
    """Return whether something is in the configuration: else code or a package gives it."""
    if place is None or place.file == "code":
        return False
    return not place.file.startswith("package ") or place.file.endswith((".yaml", ".yml", ".json"))


def _agent(agent: Agent, digest: Digest) -> Iterator[_GrantRow]:
    key = ("agents", agent.name)
    yield key, Grant()
    yield from _members((*key, "tools"), agent.static, digest)
    yield from _members((*key, "essential"), agent.essential, digest)
    for part in ("host_tools", "allowed_toolkits", "discoverable", "sub_apps", "may_delegate", "self_config"):
        yield from _names((*key, part), getattr(agent, part))
    if agent.loadout is not None:
        yield (*key, "loadout"), Grant(value=agent.loadout)
    for name, on in agent.switches.items():
        yield (*key, "permissions", name), Grant(value=on, denies=not on)
    if agent.private_per is not None:
        yield (*key, "private"), Grant(value=agent.private_per, denies=True)
    if agent.approvals_by == "operator":
        yield (*key, "approvals_by"), Grant(value=agent.approvals_by, denies=True)
    if agent.worker_scope != "shared":
        yield (*key, "worker_scope"), Grant(value=agent.worker_scope, denies=True)


def _names(key: GrantKey, names: Iterable[str], *, denies: bool = False) -> Iterator[_GrantRow]:
    for name in names:
        yield (*key, name), Grant(denies=denies)


def _members(key: GrantKey, members: Iterable[Member], digest: Digest) -> Iterator[_GrantRow]:
    for label, member in label_members(members):
        yield (*key, *label), Grant(value=member_value(member, digest))


def label_members(members: Iterable[Member]) -> Iterator[tuple[GrantKey, Member]]:
    """Yield the entries of a list of tools with what tells them apart: one may stand there twice, and each counts."""
    seen: Counter[str] = Counter()
    for member in members:
        seen[member.name] += 1
        number = seen[member.name]
        yield (member.name,) if number == 1 else (member.name, str(number)), member


def labelled_hooks(hooks: Iterable[Hook], digest: Digest) -> Iterator[tuple[GrantKey, Hook]]:
    """Yield the addresses that are sent messages with their keys: the host, and a digest of what is written."""
    seen: Counter[GrantKey] = Counter()
    for hook in hooks:
        text = hook.written or hook.url
        host = _HOST.match(text)
        key = ("notify", host[1] if host is not None else "${…}", digest(text))
        seen[key] += 1
        yield key if seen[key] == 1 else (*key, str(seen[key])), hook


def member_value(member: Member, digest: Digest) -> Any:
    """Return what an entry lets through, and a digest of its settings; True where it says nothing of either."""
    value: dict[str, Any] = {}
    if member.overrides:
        value["settings"] = digest(member.written or json.dumps(member.overrides, sort_keys=True, default=str))
    if member.written:
        value["secret"] = True
    if member.include is not None:
        value["include"] = sorted(member.include)
    if member.exclude:
        value["exclude"] = sorted(member.exclude)
    return value


def _plugin(spec: PluginSpec, digest: Digest) -> Iterator[_GrantRow]:
    key = ("plugins", spec.name)
    runs = _runs(spec)
    kept = digest(json.dumps(runs, sort_keys=True, default=str)) if runs is not None else REGISTERED
    yield key, Grant(value=f"{kept} {effect_of(spec, digest)}".strip())
    if spec.category != category_of(spec.name):
        yield (*key, "category"), Grant(value=spec.category)
    if spec.prefix is not None:
        yield (*key, "prefix"), Grant(value=spec.prefix)
    if spec.instance is not None:
        yield (*key, "instance"), Grant(value=spec.instance)
    if isinstance(spec, ServerSpec):
        yield from _rows_of_believed_claims(key, spec)
    if spec.confine is not None:
        yield (*key, "confine"), Grant(value=_confinement_json(spec.confine), denies=True)
    if not spec.default_on:
        yield (*key, "default_on"), Grant(value=False, denies=True)
    if spec.shared_only:
        yield (*key, "shared_only"), Grant(denies=True)
    for tool, rules in spec.guards.items():
        for argument, rule in rules.items():
            yield (*key, "guards", tool, argument), Grant(value=json.loads(json.dumps(rule)), denies=True)
    for tool, rule in spec.approve.items():
        yield (*key, "approve", tool), Grant(value=json.loads(json.dumps(rule)), denies=True)
    for tool, predicate in spec.when.items():
        yield (*key, "when", tool), Grant(value=predicate, denies=True)


def _rows_of_believed_claims(key: GrantKey, server: ServerSpec) -> Iterator[_GrantRow]:
    """Yield what a server is believed of what it says."""
    if server.trust_annotations:
        yield (*key, "trust"), Grant(value="annotations")
    if server.pins != "additions":
        yield (*key, "pins"), Grant(value=server.pins, denies=server.pins == "ask")


def _confinement_json(to: Confinement) -> dict[str, Any]:
    """Return what a plugin is confined to as plain JSON, and nothing of what is not said."""
    value: dict[str, Any] = {"folder": to.folder, "write": sorted(set(to.write))}
    if to.read:
        value["read"] = sorted(set(to.read))
    if to.network is not None:
        value["network"] = sorted(set(to.network))
    if to.if_possible:
        value["if_possible"] = True
    if to.scripts:
        value["scripts"] = True
    return value


def confinement_of(value: Mapping[str, Any]) -> Confinement:
    """Return the confinement that plain JSON of :func:`grants_of` stands for."""
    network = value.get("network")
    return Confinement(
        folder=value["folder"],
        write=tuple(value["write"]),
        read=tuple(value.get("read", ())),
        network=None if network is None else tuple(network),
        if_possible=value.get("if_possible", False),
        scripts=value.get("scripts", False),
    )


def _runs(spec: PluginSpec) -> object:
    """Return what a plugin of the file runs; None for what is registered."""
    match spec:
        case ServerSpec() if spec.written:
            return [spec.written]
        case ServerSpec():
            read_later = [repr((one.part, one.key, one.pieces)) for one in spec.references]
            runs = [spec.command, spec.args, dict(spec.env), spec.cwd, spec.url, dict(spec.headers), spec.transport]
            login = [asdict(spec.auth)] if spec.auth is not None else []
            return [*runs, *([sorted(read_later)] if read_later else []), *login]
        case PythonSpec():
            return [spec.target, spec.folder]
        case RegisteredSpec():
            return None


def _token(token: Token, digest: Digest) -> Iterator[_GrantRow]:
    key = ("tokens", token.principal)
    yield key, Grant(value=digest(token.written or token.value))
    yield from _names((*key, "agents"), (EVERY,) if token.agents is None else token.agents)
    yield from _names((*key, "console"), sorted(token.rights))
