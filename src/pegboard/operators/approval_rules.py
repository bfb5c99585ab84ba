"""A rule from a card: which calls of a tool a person is asked about from then on, as the configuration says it (A1)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from glob import escape
from typing import Any, Final, cast

from pegboard.board.services import Services
from pegboard.core.access.approvals.approval import Approval
from pegboard.core.access.approvals.demands import names_tool
from pegboard.core.access.guards import known_arguments
from pegboard.core.model.specs import ApproveRule, PluginSpec, ServerSpec
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.errors import UsageError
from pegboard.operators.masked import Name

_POWERS: Final = range(1, 7)
"""The limits that are offered for numbers: patterns can count digits, and no more."""
_LONGEST: Final = 200
_MAGIC: Final = frozenset("*?[")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleChoice:
    """One way to ask about some calls only: about those whose argument matches the pattern.

    ``text`` is the rule in words. ``argument`` and ``pattern`` are what it stands for in the configuration.
    """

    argument: Name
    pattern: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleChoices:
    """What can be made of the rule that asked about a call.

    Attributes:
        tool: the tool.
        choices: what fits the arguments of the call.
        arguments: the arguments of the tool, for a pattern of one's own.
        why: why the rule cannot be changed from here; nothing where it can.
    """

    tool: Name
    choices: tuple[RuleChoice, ...] = ()
    arguments: tuple[Name, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedRule:
    """A rule as the configuration would say it.

    Attributes:
        section: where its plugin is written.
        plugin: the plugin.
        keys: the keys that lead to it from there.
        value: what it says.
        text: what it means in words.
    """

    section: str
    plugin: str
    keys: tuple[str, ...]
    value: Mapping[str, list[str]]
    text: str


def rule_choices(services: Services, approval: Approval) -> RuleChoices:
    """Return what can be made of the rule that asked about a call."""
    tool = services.world.catalog.by_id(approval.binding.tool)
    if tool is None:
        return RuleChoices(tool=approval.tool, why="The tool is not known now.")
    _, why = _place_of_rule(services, tool)
    if why:
        return RuleChoices(tool=tool.wire, why=why)
    schemas = known_arguments(tool)
    choices = [
        choice
        for name, value in approval.arguments.items()
        if name in schemas
        for choice in _choices(name, value, schemas[name])
    ]
    return RuleChoices(tool=tool.wire, choices=tuple(choices), arguments=tuple(schemas))


def proposed_rule(services: Services, approval: Approval, argument: str, pattern: str) -> ProposedRule:
    """Return the rule by which calls of the tool are asked about whose argument matches a pattern, and no others.

    Raises:
        UsageError: the rule cannot be changed from here, the tool has no such argument, or the pattern is none.
    """
    tool = services.world.catalog.by_id(approval.binding.tool)
    keys, why = _place_of_rule(services, tool) if tool is not None else ((), "The tool is not known now.")
    if tool is None or why:
        raise UsageError(why, hint="Change it in the configuration.")
    if argument not in known_arguments(tool):
        raise UsageError(f"'{tool.wire}' has no argument of this name.", hint="Choose one of the list.")
    if not pattern or len(pattern) > _LONGEST or not pattern.isprintable():
        raise UsageError(
            "This is not a pattern.", hint=f"Write one line of at most {_LONGEST} characters: * is any text."
        )
    spec = services.loader.specs[tool.plugin]
    return ProposedRule(
        section="servers" if isinstance(spec, ServerSpec) else "plugins",
        plugin=tool.plugin,
        keys=keys,
        value={argument: [pattern]},
        text=f"Ask about '{tool.wire}' only where '{argument}' matches '{pattern}'",
    )


def _place_of_rule(services: Services, tool: Tool) -> tuple[tuple[str, ...], str]:
    """Return the keys that lead to the rule of a tool in its plugin, or why there is none that can be changed."""
    spec: PluginSpec | None = services.loader.specs.get(tool.plugin)
    named = [(name, rule) for name, rule in spec.approve.items() if names_tool(name, tool)] if spec is not None else []
    if spec is None or not named or tool.confirmation is not None:
        return (), "No rule of the configuration asks for approval of it; the source of the tool does."
    if len(named) > 1:
        return (), "Several rules of the configuration ask about it."
    ((name, rule),) = named
    if _MAGIC & set(name):
        return (), f"The rule `{name}` is about more tools than this one."
    inner: ApproveRule = rule["when"] if isinstance(rule, Mapping) and isinstance(rule.get("by"), str) else rule
    if not isinstance(inner, str):
        return (), "Its rule is about arguments already."
    keys = ("approve", name)
    return (keys if inner is rule else (*keys, "when")), ""


def _choices(name: str, value: Any, schema: Any) -> Iterator[RuleChoice]:
    """Yield what fits a value: limits of numbers, a text itself, and what texts begin or end with."""
    kind: object = cast("JsonObject", schema).get("type") if isinstance(schema, Mapping) else None
    if kind in ("integer", "number") and isinstance(value, int | float):
        for power in _POWERS:
            more = "" if kind == "integer" else f", or has {power + 1} characters or more, such as 0.{'5' * power}"
            yield RuleChoice(
                argument=name,
                pattern="?" * (power + 1) + "*",
                text=f"{name} is {10**power:,} or more, or {-(10 ** (power - 1)):,} or less{more}",
            )
        return
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST // 2 or not value.isprintable():
        if isinstance(value, bool):
            yield RuleChoice(argument=name, pattern=json.dumps(value), text=f"{name} is {json.dumps(value)}")
        return
    yield RuleChoice(argument=name, pattern=escape(value), text=f"{name} is exactly “{value}”")
    head, slash, tail = value.rpartition("/")
    if slash and head and tail:
        yield RuleChoice(argument=name, pattern=f"{escape(head)}/*", text=f"{name} begins with “{head}/”")
    _, at, domain = value.rpartition("@")
    if at and domain:
        yield RuleChoice(argument=name, pattern=f"*@{escape(domain)}", text=f"{name} ends with “@{domain}”")
