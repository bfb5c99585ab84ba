"""What demands that a person approves a call: a rule, a mark of the tool's source, a hook (A1, T13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final, cast

from pegboard.core.access.approvals.approval import ApprovalKind
from pegboard.core.access.guards import known_arguments, matched
from pegboard.core.access.read_only import reads_only
from pegboard.core.model.specs import ApproveRule, PluginSpec
from pegboard.core.model.tools import EMPTY, JsonObject, Plugin, Tool

ALWAYS: Final = "always"
DESTRUCTIVE: Final = "destructive"

_BY_KIND: Final[Mapping[ApprovalKind, str]] = {
    "confirm": "its source says that a person confirms it",
    "user_input": "its source says that a person fills in {fields}",
    "external": "its source says that it is run elsewhere, and its result handed in",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What a call needs of a person, and why; ``fields`` is the JSON schema of what they fill in."""

    kind: ApprovalKind = "confirm"
    reason: str
    fields: JsonObject = field(default=EMPTY)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRules:
    """What may demand that a person approves a call of one tool, whatever the arguments are or because of them.

    ``hook`` is whether the tool's source is asked for each call. ``in_force`` is all of it as JSON, guards included:
    what an approval is bound to beside the call (A2).
    """

    demand: Demand | None = None
    patterns: Mapping[str, tuple[str, ...]] = field(default=EMPTY)
    hook: bool = False
    in_force: JsonObject = field(default=EMPTY)


def rules_of(plugin: Plugin, spec: PluginSpec, tool: Tool, counted: frozenset[str]) -> ToolRules | None:
    """Return what may demand an approval of calls of a tool, or None where nothing does (A1).

    Args:
        plugin: the plugin of the tool.
        spec: where it comes from, with its rules.
        tool: the tool.
        counted: the own names of the plugin's tools that count as read-only, where it is a server (G6).
    """
    named = [(name, rule) for name, rule in spec.approve.items() if names_tool(name, tool)]
    marked = _marked(tool)
    reason = next(_reasons(named, plugin, tool, counted), "")
    demand = marked if marked is not None else Demand(reason=reason) if reason else None
    patterns = {key: value for _, rule in named if not isinstance(rule, str) for key, value in rule.items()}
    hook = tool.confirmation is not None and tool.confirmation.hook
    if demand is None and not patterns and not hook:
        return None
    guards = spec.guards.get(tool.name) or spec.guards.get(tool.wire)
    in_force = {"approve": dict(named), "guards": guards}
    return ToolRules(demand=demand, patterns=patterns, hook=hook, in_force=in_force)


def names_tool(name: str, tool: Tool) -> bool:
    """Return whether a key of the rules, a name or a pattern, means the tool."""
    return any(fnmatchcase(own, name) for own in (tool.name, tool.wire))


def _marked(tool: Tool) -> Demand | None:
    """Return what the source demands for every call of the tool (T13)."""
    found = tool.confirmation
    if found is None or found.hook:
        return None
    reason = _BY_KIND[found.kind].format(fields=", ".join(found.fields))
    return Demand(kind=found.kind, reason=reason, fields=found.schema)


def _reasons(
    named: list[tuple[str, ApproveRule]], plugin: Plugin, tool: Tool, counted: frozenset[str]
) -> Iterator[str]:
    for name, rule in named:
        if rule == ALWAYS:
            yield f"approve.{name} is {ALWAYS}"
        elif rule == DESTRUCTIVE:
            why = _destructive(plugin, tool, counted)
            if why:
                yield f"approve.{name} is {DESTRUCTIVE}, and {why}"


def _destructive(plugin: Plugin, tool: Tool, counted: frozenset[str]) -> str:
    """Return why a tool may destroy something, or nothing: as a believed source says, or where none is believed."""
    if plugin.kind != "server" or plugin.trusted:
        return "it says that it may destroy something" if tool.annotations.get("destructiveHint") is True else ""
    return "" if reads_only(plugin, tool, counted) else "it is not proven to be read-only"


def demanded(rules: ToolRules, tool: Tool, arguments: JsonObject) -> Demand | None:
    """Return what a call needs of a person by the rules and the marks, or None; a hook is not asked here.

    An argument that the call does not give counts with its default. A rule about an argument that the tool does
    not have demands it of every call: one that is misspelt must not let anything through.
    """
    if rules.demand is not None:
        return rules.demand
    properties = known_arguments(tool)
    for argument, patterns in rules.patterns.items():
        where = f"approve.{tool.name}.{argument}"
        if argument not in properties:
            return Demand(reason=f"{where} names an argument that it does not have")
        value = arguments.get(argument, _default(properties[argument]))
        pattern = matched(patterns, value)
        if pattern is not None:
            return Demand(reason=f"its argument '{argument}' matches '{pattern}' ({where})")
    return None


def _default(schema: Any) -> Any:
    return cast("JsonObject", schema).get("default", "") if isinstance(schema, Mapping) else ""
