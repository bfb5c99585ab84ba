"""Agents: their tools, toolkits, switches and scope (T2, P2, P5, T5); and the prices of models."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any, Final, cast

from pegboard.config.check.member_names import ESSENTIAL, TOOLS, MemberNames, NameMeaning, check_members, may_be_equal
from pegboard.config.compile import UncheckedConfig, boolean
from pegboard.config.problem_codes import error, warning_problem
from pegboard.config.schema.sections import AgentSection
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.agents import Agent
from pegboard.core.model.catalog import split_kind
from pegboard.core.model.loadouts import BUILT_IN, Loadout, matches_any, merge
from pegboard.core.model.masking import Masker, mask_overrides
from pegboard.core.model.naming import did_you_mean, one_line
from pegboard.core.model.prices import KINDS, millionths
from pegboard.core.model.selectors import Member
from pegboard.core.model.specs import PluginSpec, RegisteredSpec
from pegboard.core.model.toolkits import HOST_TOOLS
from pegboard.core.model.tools import Plugin
from pegboard.problems import Place, Problem


def check_agent(agent: Agent, config: UncheckedConfig, names: MemberNames, masker: Masker) -> Iterator[Problem]:
    """Yield what is wrong with an agent of the file."""
    part = (config.validated.section.agents or {}).get(agent.name)
    if part is None:
        return
    yield from _tools(agent, part, config, names)
    if "/" in agent.name:
        message = "the name of an agent is part of a URL and cannot contain '/'."
        yield error("bad_value", message, agent.place)
    yield from _toolkit_names(agent, config)
    yield from _switches(agent, part.permissions, config, names)
    yield from _shared_only_problems(agent, config, names)
    yield from _conflicts(agent, config, names, masker)
    yield from _model(agent, config)
    yield from _delegates(agent, part, config)
    yield from _sub_apps(agent, part, config)


def _sub_apps(agent: Agent, part: AgentSection, config: UncheckedConfig) -> Iterator[Problem]:
    """Yield the sub-apps that clients could not open, because they are not defined (T9)."""
    declared = config.validated.declared_names("sub_apps")
    for index, name in enumerate(part.sub_apps):
        if name not in declared:
            message = f"sub-app '{one_line(name, limit=80)}' is not defined."
            place = config.validated.place("agents", agent.name, "sub_apps", index)
            yield error("unknown_sub_app", message, place, did_you_mean(name, declared))


def _delegates(agent: Agent, part: AgentSection, config: UncheckedConfig) -> Iterator[Problem]:
    """Yield agents that are to work for this one and that there are not (P8)."""
    declared = config.validated.declared_names("agents")
    for index, name in enumerate(part.may_delegate):
        if name not in declared:
            message = f"agent '{one_line(name, limit=80)}' is not defined."
            place = config.validated.place("agents", agent.name, "may_delegate", index)
            yield error("unknown_agent", message, place, did_you_mean(name, declared))


def _tools(agent: Agent, part: AgentSection, config: UncheckedConfig, names: MemberNames) -> Iterator[Problem]:
    """Yield what is wrong with the agent's own tools: static and essential ones."""
    place = config.validated.place
    own, essential = (
        [
            Member(name=name, overrides=overrides, place=place("agents", agent.name, key, index))
            for index, (name, overrides) in enumerate(written)
        ]
        for key, written in ((TOOLS, part.tools), (ESSENTIAL, part.essential))
    )
    yield from check_members(own, names, TOOLS)
    yield from check_members(essential, names, ESSENTIAL)
    always = {names.meaning_of(item.name).identity for item in agent.essential if _is_sure(names.meaning_of(item.name))}
    for item in own:
        if names.meaning_of(item.name).identity in always:
            message = f"'{item.name}' is in both essential and tools."
            hint = "Essential tools are always loaded: remove it here."
            yield warning_problem("duplicate_name", message, item.place, hint)


def _model(agent: Agent, config: UncheckedConfig) -> Iterator[Problem]:
    models = config.validated.section.models
    if agent.model and models and agent.model not in config.validated.declared_names("models"):
        message = f"model '{agent.model}' is not defined."
        place = config.validated.place("agents", agent.name, "model")
        yield warning_problem("unknown_model", message, place, did_you_mean(agent.model, models))


def _is_sure(meaning: NameMeaning) -> bool:
    return meaning.kind not in ("unknown", "unsure")


def _toolkit_names(agent: Agent, config: UncheckedConfig) -> Iterator[Problem]:
    """Yield what T2 forbids: toolkits that are not defined, initial ones that are not allowed."""
    validated = config.validated
    part = (validated.section.agents or {})[agent.name]
    declared = validated.declared_names("toolkits") | config.toolkits.keys()
    allowed = {*part.allowed_toolkits}
    for key, listed in (("allowed_toolkits", part.allowed_toolkits), ("initial_toolkits", part.initial_toolkits)):
        seen: set[str] = set()
        for index, name in enumerate(listed):
            place = validated.place("agents", agent.name, key, index)
            if name in seen:
                message = f"toolkit '{name}' is listed twice."
                yield warning_problem("duplicate_name", message, place, "Leave one of them out.")
            elif name not in declared:
                message = f"toolkit '{name}' is not defined."
                yield error("unknown_toolkit", message, place, did_you_mean(name, declared))
            elif name not in allowed:
                message = f"toolkit '{name}' is initial but not allowed."
                yield error("initial_not_allowed", message, place, "Add it to allowed_toolkits.")
            seen.add(name)


def _switches(
    agent: Agent, written: Mapping[str, Any], config: UncheckedConfig, names: MemberNames
) -> Iterator[Problem]:
    """Yield switches that are not boolean, and those that name nothing (P2)."""
    validated = config.validated
    declared = validated.declared_names("toolkits")
    for name, value in written.items():
        if boolean(value) is None:
            message = "expected true or false; the switch is ignored."
            place = validated.place("agents", agent.name, "permissions", name)
            yield warning_problem("bad_switch", message, place, "Write true or false without quotes.")
        stated, bare = split_kind(name)
        is_toolkit = stated in (None, "toolkit") and (bare in declared or bare in config.toolkits)
        if bare in HOST_TOOLS:
            continue
        if not is_toolkit and (stated == "toolkit" or not names.means_something(name)):
            message = f"no toolkit, plugin or tool is known as '{one_line(name, limit=80)}'."
            hint = did_you_mean(bare, [*declared, *names.possible_names()])
            place = validated.place("agents", agent.name, "permissions", name, key=True)
            yield warning_problem("unknown_switch", message, place, hint)


def _shared_only_problems(agent: Agent, config: UncheckedConfig, names: MemberNames) -> Iterator[Problem]:
    """Yield plugins that work only where they are shared, for an agent that works apart (P5)."""
    if not agent.isolating:
        return
    why = f"private.per: {agent.private_per}" if agent.private_per else f"worker_scope: {agent.worker_scope}"
    validated = config.validated

    def shared_only_problem(item: Member, place: Place | None, hint: str) -> Iterator[Problem]:
        plugin = names.meaning_of(item.name).plugin
        if plugin and names.is_shared_only(plugin):
            message = f"'{plugin}' works only where it is shared, but agent '{agent.name}' works apart ({why})."
            yield error("shared_only", message, place, hint)

    for item in (*agent.static, *agent.essential):
        yield from shared_only_problem(item, item.place, "Remove it, or share the agent.")
    part = (validated.section.agents or {})[agent.name]
    for key, listed in (("allowed_toolkits", part.allowed_toolkits), ("initial_toolkits", part.initial_toolkits)):
        for index, name in enumerate(listed):
            if name in config.toolkits and (key == "allowed_toolkits" or name not in part.allowed_toolkits):
                for item in config.toolkits[name].members:
                    place = validated.place("agents", agent.name, key, index)
                    yield from shared_only_problem(item, place, f"Remove it from toolkit '{name}', or share the agent.")


def _conflicts(agent: Agent, config: UncheckedConfig, names: MemberNames, masker: Masker) -> Iterator[Problem]:
    """Yield what is loaded from the start under two different settings (T5)."""
    initial = [m for name in agent.initial_toolkits if name in config.toolkits for m in config.toolkits[name].members]
    seen: dict[tuple[str, str], Member] = {}
    for item in (*agent.essential, *agent.static, *initial):
        meaning = names.meaning_of(item.name)
        if meaning.kind not in ("plugin", "tool") or item.filtered:
            continue
        tool = meaning.tool if meaning.kind == "tool" else ""
        spots = [(meaning.plugin, tool), (meaning.plugin, "")]
        if not tool:
            spots = [spot for spot in seen if spot[0] == meaning.plugin]
        before = [seen[spot] for spot in spots if spot in seen]
        other = next((one for one in before if not may_be_equal(one.overrides, item.overrides)), None)
        if other is not None:
            yield _conflict(agent, other, item, masker)
        seen.setdefault((meaning.plugin, tool), item)


def _conflict(agent: Agent, first: Member, second: Member, masker: Masker) -> Problem:
    line = (first.place or Place(file="")).line
    where = f" (line {line})" if line is not None else ""
    message = (
        f"'{second.name}' is loaded from the start of agent '{agent.name}' with two different settings: "
        f"{_overrides_text(first, masker)}{where} and {_overrides_text(second, masker)}."
    )
    return error("conflict", message, second.place, "Make them equal, or remove one.")


def _overrides_text(item: Member, masker: Masker) -> str:
    parts = mask_overrides(item.overrides, masker, frozenset())
    return "{" + ", ".join(f"{key}: {value}" for key, value in parts.items()) + "}"


def check_reach(config: UncheckedConfig, specs: Mapping[str, PluginSpec]) -> Iterator[Problem]:
    """Yield the written agents that neither have a tool nor may load one, of those that ask for some."""
    known: Mapping[str, Loadout] = {**BUILT_IN, **config.loadouts}
    for agent in (one for name, one in config.agents.items() if name in (config.validated.section.agents or {})):
        if _denied_whole(agent, config, specs):
            message = f"agent '{agent.name}' has no tool and may load none: everything that it lists is off."
            hint = "Switch something on, or have a loadout that does not disable it."
            yield warning_problem("nothing_granted", message, agent.place, hint)
            continue
        if (agent.loadout is not None or agent.discoverable) and not _has_something(agent, config, known, specs):
            message = (
                f"agent '{agent.name}' has no tool and may load none: there is no plugin for the names that it lists."
            )
            hint = "Define plugins or servers, or list registered plugins by name."
            yield warning_problem("nothing_granted", message, agent.place, hint)


def _denied_whole(agent: Agent, config: UncheckedConfig, specs: Mapping[str, PluginSpec]) -> bool:
    """Return whether an agent that names plugins, and nothing but whole ones, is denied every one of them."""
    kits = (config.toolkits[name].members for name in agent.allowed_toolkits if name in config.toolkits)
    named = [split_kind(item.name)[1] for item in chain(agent.essential, agent.static, *kits)]
    if not named or agent.host_tools or not all(name in specs for name in named):
        return False
    plugins = [
        Plugin(name=spec.name, category=spec.category, default_on=spec.default_on, shared_only=spec.shared_only)
        for spec in specs.values()
    ]
    permissions = CompiledPermissions(config.world(plugins), agent)
    return not any(map(permissions.grants_unseen, plugins))


def _has_something(
    agent: Agent, config: UncheckedConfig, known: Mapping[str, Loadout], specs: Mapping[str, PluginSpec]
) -> bool:
    if agent.static or agent.essential or agent.host_tools or any(agent.switches.values()):
        return True
    if any(config.toolkits[name].members for name in agent.allowed_toolkits if name in config.toolkits):
        return True
    return any(_grants_plugin(agent, spec, known) for spec in specs.values())


def _grants_plugin(agent: Agent, spec: PluginSpec, known: Mapping[str, Loadout]) -> bool:
    """Return whether the agent's loadout or its patterns grant the plugin."""
    by_category = isinstance(spec, RegisteredSpec) and spec.by_category
    patterns: Collection[str] = () if by_category else agent.discoverable
    if matches_any(patterns, spec.name) is not None:
        return True
    if agent.loadout is None:
        return False
    loadout = merge(agent.loadout, known)
    discovered = None if by_category else loadout.discovers(spec.name, spec.category)
    return loadout.includes(spec.name, spec.category) is not None or discovered is not None


_KEYS: Final = (*KINDS, "currency")
_LONGEST: Final = 12
"""How many characters a currency has at most."""
_EXAMPLE: Final = "Write {input: 3.00, cached: 0.30, written: 3.75, output: 15.00, currency: USD}."


def check_models(config: UncheckedConfig) -> Iterator[Problem]:
    """Yield what is wrong with the prices of models; the other keys of a model are free."""
    for name, model in config.validated.section.models.items():
        if "prices" not in model:
            continue
        prices = model["prices"]
        if not isinstance(prices, Mapping):
            place = config.validated.place("models", name, "prices")
            yield error("bad_price", "prices are a mapping of numbers.", place, _EXAMPLE)
            continue
        yield from _prices(config, name, cast("Mapping[str, Any]", prices))


def _prices(config: UncheckedConfig, name: str, prices: Mapping[str, Any]) -> Iterator[Problem]:
    place = config.validated.place
    for key, value in prices.items():
        if key not in _KEYS:
            message = f"'{key}' is not a price."
            yield error("bad_price", message, place("models", name, "prices", key, key=True), did_you_mean(key, _KEYS))
        elif key == "currency":
            if not isinstance(value, str) or not 0 < len(value.strip()) <= _LONGEST or not value.isprintable():
                message = f"a currency is a text of 1 to {_LONGEST} characters."
                yield error("bad_price", message, place("models", name, "prices", key), "Write a code such as USD.")
        else:
            try:
                millionths(value)
            except ValueError as problem:
                hint = "It is what a million tokens cost."
                yield error("bad_price", str(problem), place("models", name, "prices", key), hint)
    for key in ("input", "output"):
        if key not in prices:
            message = f"the price of '{key}' is missing."
            yield error("bad_price", message, place("models", name, "prices"), _EXAMPLE)
