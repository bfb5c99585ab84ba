"""Toolkits: their members, their focus rules, and policy texts (T3, T6, F3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pegboard.config.check.member_names import MemberNames, check_member
from pegboard.config.compile import UncheckedConfig
from pegboard.config.documents.document import is_list
from pegboard.config.problem_codes import error, warning_problem
from pegboard.core.model.catalog import split_kind
from pegboard.core.model.naming import did_you_mean, one_line
from pegboard.core.model.selectors import Member
from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.toolkits import HOST_TOOLS, RESERVED
from pegboard.core.surface.policy import LIMIT
from pegboard.problems import Place, Problem


def check_toolkits(config: UncheckedConfig, names: MemberNames) -> Iterator[Problem]:
    """Yield what is wrong with the toolkits of a file, and with policy texts."""
    for name, toolkit in config.toolkits.items():
        if not config.generated or name in config.added:
            yield from _members(toolkit.members, names)
            yield from _ambiguity_problems(name, config, names)
            yield from _focus(name, config, names)
            yield from _unusable_toolkit_shares(name, config)
    yield from _policies(config)


def _members(items: Iterable[Member], names: MemberNames) -> Iterator[Problem]:
    """Yield what T3 forbids in a toolkit: reserved names, the same thing twice, unknown names."""
    first: dict[Any, Member] = {}
    for item in items:
        if split_kind(item.name)[1] in RESERVED:
            message = f"'{item.name}' is reserved and cannot be in a toolkit."
            own = split_kind(item.name)[1] in HOST_TOOLS
            hint = "List it among an agent's tools." if own else "It is added automatically where it is needed."
            yield error("reserved", message, item.place, hint)
            continue
        meaning = names.meaning_of(item.name)
        identity = meaning.identity if meaning.kind not in ("unknown", "unsure") else item.name
        if identity in first:
            line = (first[identity].place or Place(file="")).line
            message = f"'{item.name}' is listed twice in this toolkit."
            hint = f"The first one is on line {line}." if line is not None else "Remove one."
            yield error("duplicate_member", message, item.place, hint)
            continue
        first[identity] = item
        yield from check_member(item, meaning, names)


def _ambiguity_problems(name: str, config: UncheckedConfig, names: MemberNames) -> Iterator[Problem]:
    toolkit = config.toolkits[name]
    if name not in names.joined or [item.name for item in toolkit.members] == [name]:
        return
    message = f"'{name}' is a toolkit and a plugin; the bare name means the toolkit."
    hint = f"Write 'toolkit:{name}' or 'plugin:{name}', or rename one."
    yield warning_problem("ambiguous_name", message, toolkit.place, hint)


def _unusable_toolkit_shares(name: str, config: UncheckedConfig) -> Iterator[Problem]:
    """Yield agents that a toolkit names and that are not defined or may not load it, and one that is alone (S1)."""
    written = config.document_of(name).section.toolkits[name].share_with
    known = config.validated.declared_names("agents")
    for index, agent in enumerate(written):
        place = config.document_of(name).place("toolkits", name, "share_with", index)
        if agent in written[:index]:
            yield warning_problem("duplicate_name", f"agent '{agent}' is listed twice.", place, "Remove one of them.")
        elif agent not in known:
            yield error("unknown_agent", f"agent '{agent}' is not defined.", place, did_you_mean(agent, known))
    if len({*written}) == 1:
        place = config.document_of(name).place("toolkits", name, "share_with")
        message = f"only agent '{written[0]}' shares toolkit '{name}': it shares it with no other agent."
        yield warning_problem("shared_with_nobody", message, place, "Name every agent that shares it, two at least.")


def _focus(toolkit: str, config: UncheckedConfig, names: MemberNames) -> Iterator[Problem]:
    """Yield what focus rules name that is known as nothing (F3); tools of servers have their own names too."""
    document = config.document_of(toolkit)
    members, rules = config.toolkits[toolkit].members, document.section.toolkits[toolkit].focus
    if not rules or any(
        isinstance(names.plugins.get(names.meaning_of(item.name).plugin), ServerSpec) for item in members
    ):
        return
    raw: Any = document.raw["toolkits"]
    several = is_list(raw[toolkit].get("focus"))
    for index, rule in enumerate(rules):
        for position, name in enumerate(rule.tools):
            if names.meaning_of(name).kind in ("unknown", "category", "toolkit"):
                spot = ("focus", index) if several else ("focus",)
                place = document.place("toolkits", toolkit, *spot, "tools", position)
                message = f"no plugin or tool is known as '{one_line(name, limit=80)}'."
                yield warning_problem("unknown_focus", message, place, names.question(name))


def _policies(config: UncheckedConfig) -> Iterator[Problem]:
    """Yield policy texts that are longer than what goes to a model (T6)."""
    texts = [
        (kit.policy, config.document_of(name).place("toolkits", name, "policy"))
        for name, kit in config.toolkits.items()
        if not config.generated or name in config.added
    ]
    for name, part in config.validated.section.plugins.items():
        texts += [(text, config.validated.place("plugins", name, "policy", tool)) for tool, text in part.policy.items()]
    for text, place in texts:
        if len(text) > LIMIT:
            message = f"the policy has {len(text):,} characters; at most {LIMIT:,} go to a model."
            yield error("bad_value", message, place, "Say less, or split it over several toolkits.")
