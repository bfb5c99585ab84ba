"""What a file must keep to besides its shape: references, toolkits, agents, tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pegboard.config.check.member_names import Meaning, Names
from pegboard.config.check.text_checks import check_texts
from pegboard.config.compile import COMES_BY_ITSELF, UncheckedConfig, boolean
from pegboard.config.documents.document import is_list, is_mapping
from pegboard.core.model.agents import Agent
from pegboard.core.model.catalog import split_kind
from pegboard.core.model.masking import Masker, masked
from pegboard.core.model.naming import did_you_mean, one_line
from pegboard.core.model.selectors import Member
from pegboard.core.model.specs import PythonSpec, ServerSpec
from pegboard.core.model.toolkits import RESERVED
from pegboard.core.surface.policy import LIMIT
from pegboard.problems import Place, Problem, Severity


def problem(severity: Severity, code: str, message: str, place: Place | None, hint: str = "") -> Problem:
    """Return a problem."""
    return Problem(severity=severity, code=code, message=message, hint=hint, place=place)


def check(plan: UncheckedConfig, names: Names, masker: Masker) -> Iterator[Problem]:
    """Yield every problem of a file that has the right shape."""
    yield from _plugins(plan, names)
    for name, toolkit in plan.toolkits.items():
        if not plan.generated:
            yield from _toolkit(toolkit.members, names)
            yield from _ambiguous(name, plan, names)
            yield from _focus(name, plan, names)
    for name, items in plan.sub_apps.items():
        yield from _known(items, names, f"sub-app '{name}'")
    defaults = plan.sheet.section.defaults.tools
    places = [plan.sheet.place("defaults", "tools", index) for index in range(len(defaults))]
    yield from _known([Member(name=n, place=p) for (n, _), p in zip(defaults, places, strict=True)], names, "defaults")
    for agent in plan.agents.values():
        yield from _agent(agent, plan, names, masker)
    yield from _policies(plan)
    yield from _tokens(plan)
    yield from check_texts(plan, names)


def _plugins(plan: UncheckedConfig, names: Names) -> Iterator[Problem]:
    sheet = plan.sheet
    prefixes: dict[str, str] = {}
    for name, part in sheet.section.servers.items():
        if name in sheet.section.plugins:
            place = sheet.place("plugins", name, key=True)
            message = f"'{name}' is a server and a plugin."
            yield problem("error", "duplicate_plugin", message, place, "Rename one of them.")
        if part.disabled:
            continue
        spec = plan.written[name]
        lost = {"command", "url"} & sheet.wrote("servers", name) - part.model_fields_set
        if isinstance(spec, ServerSpec) and not spec.unavailable and not lost:
            yield from _server(part.command, part.url, sheet.place("servers", name, key=True))
    for name, spec in plan.written.items():
        section = "servers" if isinstance(spec, ServerSpec) else "plugins"
        prefix = name if spec.prefix is None and section == "servers" else spec.prefix or ""
        first = prefixes.setdefault(prefix, name)
        if prefix and first != name:
            message = f"the tools of '{first}' and '{name}' both begin with '{prefix}__'."
            hint = "Give one of them another prefix: two tools of one name cannot both be listed."
            yield problem("warning", "shared_prefix", message, sheet.place(section, name, "prefix"), hint)
        if isinstance(spec, PythonSpec):
            for tool, others in spec.requires.items():
                at = [sheet.place("plugins", name, "requires", tool, i) for i in range(len(others))]
                items = [Member(name=_beside(n, name, names), place=p) for n, p in zip(others, at, strict=True)]
                yield from _known(items, names, f"requires of '{tool}'")


def _focus(toolkit: str, plan: UncheckedConfig, names: Names) -> Iterator[Problem]:
    """Yield what focus rules name that is known as nothing (F3); tools of servers have their own names too."""
    members, rules = plan.toolkits[toolkit].members, plan.sheet.section.toolkits[toolkit].focus
    if not rules or any(isinstance(names.plugins.get(names.meaning(item.name).plugin), ServerSpec) for item in members):
        return
    raw: Any = plan.sheet.raw["toolkits"]
    several = is_list(raw[toolkit].get("focus"))
    for index, rule in enumerate(rules):
        for position, name in enumerate(rule.tools):
            if names.meaning(name).kind in ("unknown", "category", "toolkit"):
                spot = ("focus", index) if several else ("focus",)
                place = plan.sheet.place("toolkits", toolkit, *spot, "tools", position)
                message = f"no plugin or tool is known as '{one_line(name, limit=80)}'."
                yield problem("warning", "unknown_focus", message, place, names.question(name))


def _policies(plan: UncheckedConfig) -> Iterator[Problem]:
    """Yield policy texts that are longer than what is said to a model (T6)."""
    sheet = plan.sheet
    texts: list[tuple[str, tuple[str, ...]]] = [
        (kit.policy, ("toolkits", name, "policy")) for name, kit in plan.toolkits.items() if not plan.generated
    ]
    for name, part in sheet.section.plugins.items():
        texts += [(text, ("plugins", name, "policy", tool)) for tool, text in part.policy.items()]
    for text, path in texts:
        if len(text) > LIMIT:
            message = f"the policy has {len(text):,} characters; at most {LIMIT:,} go to a model."
            yield problem(
                "error", "bad_value", message, sheet.place(*path), "Say less, or split it over several toolkits."
            )


def _beside(name: str, plugin: str, names: Names) -> str:
    """Return the name of a tool of the same plugin in full."""
    return f"{plugin}/{name}" if names.meaning(name).kind in ("unknown", "unsure") else name


def _server(command: str | None, url: str | None, place: Place) -> Iterator[Problem]:
    if command is None and url is None:
        hint = "Write `command:` for a program to start, or `url:` for a remote server."
        yield problem("error", "server_target", "has neither a command nor a url.", place, hint)
    elif command is not None and url is not None:
        yield problem("error", "server_target", "has both a command and a url.", place, "Leave one of them out.")
    elif command == "":
        yield problem("error", "server_target", "its command is empty.", place)
    elif url is not None and not url.startswith(("http://", "https://")):
        yield problem("error", "server_target", "its url does not begin with http:// or https://.", place)


def _toolkit(items: Iterable[Member], names: Names) -> Iterator[Problem]:
    """Yield what T3 forbids in a toolkit: reserved names, the same thing twice, unknown names."""
    first: dict[Any, Member] = {}
    for item in items:
        if split_kind(item.name)[1] in RESERVED:
            message = f"'{item.name}' is reserved and may not stand in a toolkit."
            yield problem("error", "reserved", message, item.place, "It comes by itself where it is needed.")
            continue
        meaning = names.meaning(item.name)
        identity = meaning.identity if meaning.kind not in ("unknown", "unsure") else item.name
        if identity in first:
            line = (first[identity].place or Place(file="")).line
            message = f"'{item.name}' stands twice in this toolkit."
            yield problem("error", "duplicate_member", message, item.place, f"The first one is in line {line}.")
            continue
        first[identity] = item
        yield from _unknown(item, meaning, names)


def _known(items: Iterable[Member], names: Names, where: str) -> Iterator[Problem]:
    """Yield the names that mean nothing, and what stands twice."""
    first: dict[Any, Member] = {}
    for item in items:
        if split_kind(item.name)[1] in COMES_BY_ITSELF and names.meaning(item.name).kind in ("unknown", "unsure"):
            message = f"'{item.name}' comes by itself where it is needed."
            yield problem("warning", "reserved", message, item.place, "Leave it out.")
            continue
        meaning = names.meaning(item.name)
        yield from _unknown(item, meaning, names)
        identity = meaning.identity if meaning.kind not in ("unknown", "unsure") else item.name
        if identity in first and _alike(first[identity].overrides, item.overrides):
            message = f"'{item.name}' stands twice in {where}."
            yield problem("warning", "duplicate_name", message, item.place, "The first one counts.")
        first.setdefault(identity, item)


def _unknown(item: Member, meaning: Meaning, names: Names) -> Iterator[Problem]:
    match meaning.kind:
        case "plugin" | "tool" | "category":
            return
        case "toolkit":
            message = f"'{item.name}' is a toolkit; plugins and tools stand here."
            yield problem("error", "unknown_tool", message, item.place, "Write its members.")
        case "unsure":
            message = f"'{item.name}' is not known yet; it may be a tool of {names.nameless}."
            yield problem("warning", "unresolved_tool", message, item.place, names.question(item.name))
        case "unknown":
            message = f"'{one_line(item.name, limit=80)}' is not a known plugin or tool."
            yield problem("error", "unknown_tool", message, item.place, names.question(item.name))


def _ambiguous(name: str, plan: UncheckedConfig, names: Names) -> Iterator[Problem]:
    toolkit = plan.toolkits[name]
    if name not in names.joined or [item.name for item in toolkit.members] == [name]:
        return
    message = f"'{name}' is a toolkit and a plugin; the bare name means the toolkit."
    hint = f"Write 'toolkit:{name}' or 'plugin:{name}', or rename one."
    yield problem("warning", "ambiguous_name", message, toolkit.place, hint)


def _agent(agent: Agent, plan: UncheckedConfig, names: Names, masker: Masker) -> Iterator[Problem]:
    sheet, path = plan.sheet, ("agents", agent.name)
    part = (sheet.section.agents or {}).get(agent.name)
    if part is None:
        return
    own = [Member(name=n, overrides=o, place=sheet.place(*path, "tools", i)) for i, (n, o) in enumerate(part.tools)]
    yield from _known(own, names, "tools")
    yield from _known(agent.essential, names, "essential")
    essential = {names.meaning(item.name).identity for item in agent.essential if _sure(names.meaning(item.name))}
    for item in own:
        if names.meaning(item.name).identity in essential:
            message = f"'{item.name}' stands in essential and in tools."
            hint = "Essential tools are always out: leave it out here."
            yield problem("warning", "duplicate_name", message, item.place, hint)
    if "/" in agent.name:
        message = "the name of an agent stands in an address and cannot hold '/'."
        yield problem("error", "bad_value", message, agent.place)
    yield from _toolkit_names(agent, plan)
    yield from _switches(agent, part.permissions, plan, names)
    yield from _scope(agent, plan, names)
    yield from _conflicts(agent, plan, names, masker)
    if part.model and sheet.section.models and part.model not in sheet.declared("models"):
        message = f"model '{part.model}' is not defined."
        hint = did_you_mean(part.model, sheet.section.models)
        yield problem("warning", "unknown_model", message, sheet.place(*path, "model"), hint)


def _sure(meaning: Meaning) -> bool:
    return meaning.kind not in ("unknown", "unsure")


def _toolkit_names(agent: Agent, plan: UncheckedConfig) -> Iterator[Problem]:
    """Yield what T2 forbids: toolkits that are not defined, initial ones that are not allowed."""
    sheet = plan.sheet
    part = (sheet.section.agents or {})[agent.name]
    declared = sheet.declared("toolkits")
    allowed = {*part.allowed_toolkits}
    for key, listed in (("allowed_toolkits", part.allowed_toolkits), ("initial_toolkits", part.initial_toolkits)):
        seen: set[str] = set()
        for index, name in enumerate(listed):
            place = sheet.place("agents", agent.name, key, index)
            if name in seen:
                message = f"toolkit '{name}' stands twice."
                yield problem("warning", "duplicate_name", message, place, "Leave one of them out.")
            elif name not in declared:
                message = f"toolkit '{name}' is not defined."
                yield problem("error", "unknown_toolkit", message, place, did_you_mean(name, declared))
            elif name not in allowed:
                message = f"toolkit '{name}' is initial but not allowed."
                yield problem("error", "initial_not_allowed", message, place, "Add it to allowed_toolkits.")
            seen.add(name)


def _switches(agent: Agent, written: Mapping[str, Any], plan: UncheckedConfig, names: Names) -> Iterator[Problem]:
    sheet = plan.sheet
    declared = sheet.declared("toolkits")
    for name, value in written.items():
        place = sheet.place("agents", agent.name, "permissions", name)
        stated, bare = split_kind(name)
        if boolean(value) is None:
            message = "expected true or false; the switch counts as absent."
            yield problem("warning", "bad_switch", message, place, "Write true or false without quotes.")
        is_toolkit = stated in (None, "toolkit") and (bare in declared or bare in plan.toolkits)
        if not is_toolkit and (stated == "toolkit" or names.meaning(name).kind in ("unknown", "unsure")):
            message = f"no toolkit, plugin or tool is known as '{one_line(name, limit=80)}'."
            hint = did_you_mean(bare, [*declared, *names.known()])
            place = sheet.place("agents", agent.name, "permissions", name, key=True)
            yield problem("warning", "unknown_switch", message, place, hint)


def _scope(agent: Agent, plan: UncheckedConfig, names: Names) -> Iterator[Problem]:
    """Yield plugins that work only where they are shared, for an agent that works apart (P5)."""
    if not agent.isolating:
        return
    why = f"private.per: {agent.private_per}" if agent.private_per else f"worker_scope: {agent.worker_scope}"
    sheet = plan.sheet

    def bad(item: Member, place: Place | None, hint: str) -> Iterator[Problem]:
        plugin = names.meaning(item.name).plugin
        if plugin and names.is_shared_only(plugin):
            message = f"'{plugin}' works only where it is shared, and agent '{agent.name}' works apart ({why})."
            yield problem("error", "shared_only", message, place, hint)

    for item in (*agent.static, *agent.essential):
        yield from bad(item, item.place, "Take it out, or share the agent.")
    part = (sheet.section.agents or {})[agent.name]
    for key, listed in (("allowed_toolkits", part.allowed_toolkits), ("initial_toolkits", part.initial_toolkits)):
        for index, name in enumerate(listed):
            if name in plan.toolkits and (key == "allowed_toolkits" or name not in part.allowed_toolkits):
                for item in plan.toolkits[name].members:
                    place = sheet.place("agents", agent.name, key, index)
                    yield from bad(item, place, f"Take it out of toolkit '{name}', or share the agent.")


def _conflicts(agent: Agent, plan: UncheckedConfig, names: Names, masker: Masker) -> Iterator[Problem]:
    """Yield what is out from the start under two different settings (T5)."""
    initial = [m for name in agent.initial_toolkits if name in plan.toolkits for m in plan.toolkits[name].members]
    seen: dict[tuple[str, str], Member] = {}
    for item in (*agent.essential, *agent.static, *initial):
        meaning = names.meaning(item.name)
        if meaning.kind not in ("plugin", "tool") or item.filtered:
            continue
        tool = meaning.tool if meaning.kind == "tool" else ""
        spots = [(meaning.plugin, tool), (meaning.plugin, "")]
        if not tool:
            spots = [spot for spot in seen if spot[0] == meaning.plugin]
        before = [seen[spot] for spot in spots if spot in seen]
        other = next((one for one in before if not _alike(one.overrides, item.overrides)), None)
        if other is not None:
            shown = [_shown(one, masker) for one in (other, item)]
            line = (other.place or Place(file="")).line
            message = (
                f"'{item.name}' is out from the start of agent '{agent.name}' with two different settings: "
                f"{shown[0]} (line {line}) and {shown[1]}."
            )
            yield problem("error", "conflict", message, item.place, "Make them equal, or leave one out.")
        seen.setdefault((meaning.plugin, tool), item)


def _shown(item: Member, masker: Masker) -> str:
    parts = masked(item.overrides, masker, frozenset())
    return "{" + ", ".join(f"{key}: {value}" for key, value in parts.items()) + "}"


def _alike(one: Any, other: Any) -> bool:
    """Return whether two settings may turn out equal once their types are known (T5)."""
    if is_mapping(one) and is_mapping(other):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if is_list(one) and is_list(other):
        return len(one) == len(other) and all(map(_alike, one, other))
    return one == other or str(one).strip().lower() == str(other).strip().lower()


def _tokens(plan: UncheckedConfig) -> Iterator[Problem]:
    sheet = plan.sheet
    declared = sheet.declared("agents") | plan.agents.keys()
    owners: dict[str, str] = {}
    for token in plan.tokens:
        if not token.value.strip():
            hint = "An empty token would let anybody in."
            yield problem("error", "empty_token", "the token is empty.", token.place, hint)
        elif owners.setdefault(token.value, token.principal) != token.principal:
            message = f"'{owners[token.value]}' has the same token."
            yield problem("error", "duplicate_token", message, token.place, "Give each principal a token of its own.")
        for index, name in enumerate(token.agents or ()):
            if name not in declared:
                message = f"agent '{name}' is not defined."
                place = sheet.place("tokens", token.principal, "agents", index)
                yield problem("error", "unknown_agent", message, place, did_you_mean(name, declared))
