"""What demands that a person approves a call: a rule, a mark of the tool's source, a hook (A1, T13)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Final, cast

from pegboard.core.access.approvals.approval import ApprovalKind, Decider
from pegboard.core.access.guards import first_match, guards_in_force, known_arguments
from pegboard.core.access.read_only import CountedClaims, reads_only
from pegboard.core.model.specs import ApproveRule, PluginSpec
from pegboard.core.model.tools import EMPTY, JsonObject, Plugin, Tool

ALWAYS: Final = "always"
DESTRUCTIVE: Final = "destructive"

_BY_KIND: Final[Mapping[ApprovalKind, str]] = {
    "confirm": "its source says that a person confirms it",
    "user_input": "its source says that a person fills in {fields}",
    "external": "its source says that the host program runs it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What a call needs of a person, and why; ``fields`` is the JSON schema of what they fill in.

    ``decider`` is who may answer, None as the configuration says of every call.
    """

    kind: ApprovalKind = "confirm"
    reason: str
    decider: Decider | None = None
    fields: JsonObject = field(default=EMPTY)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRules:
    """What may demand that a person approves a call of one tool, whatever the arguments are or because of them.

    ``names`` are the keys of the rules that mean it. ``hook`` is whether the tool's source is asked for each call.
    ``deciders`` has who answers where a rule about an argument says it. ``in_force`` is all of it as JSON, guards
    included: what an approval is bound to beside the call (A2).
    """

    demand: Demand | None = None
    patterns: Mapping[str, tuple[str, ...]] = field(default=EMPTY)
    deciders: Mapping[str, Decider] = field(default=EMPTY)
    names: tuple[str, ...] = ()
    hook: bool = False
    in_force: JsonObject = field(default=EMPTY)


def rules_of(plugin: Plugin, spec: PluginSpec, tool: Tool, claims: CountedClaims) -> ToolRules | None:
    """Return what may demand an approval of calls of a tool, or None where nothing does (A1).

    ``claims`` is what counts of what the plugin says of its tools, where it is a server (G6).
    """
    named = [(name, rule) for name, rule in spec.approve.items() if names_tool(name, tool)]
    written = [(name, *_parts(rule)) for name, rule in named]
    marked, demands = _demand_of_marks(tool), list(_demands_of_rules(written, plugin, tool, claims))
    decider = _strictest(one.decider for one in demands)
    demand = marked or next(iter(demands), None)
    if demand is not None and demands:
        demand = replace(demand, decider=decider)
    patterns: dict[str, tuple[str, ...]] = {}
    deciders: dict[str, Decider] = {}
    for _, rule, who in written:
        for argument, texts in () if isinstance(rule, str) else rule.items():
            patterns[argument] = (*patterns.get(argument, ()), *texts)
            if (strictest := _strictest((deciders.get(argument), who))) is not None:
                deciders[argument] = strictest
    hook = tool.confirmation is not None and tool.confirmation.hook
    if demand is None and not patterns and not hook:
        return None
    in_force = {"approve": dict(named), "guards": guards_in_force(spec.guards, tool)}
    return ToolRules(
        demand=demand,
        patterns=patterns,
        deciders=deciders,
        names=tuple(name for name, _ in named),
        hook=hook,
        in_force=in_force,
    )


def _parts(rule: ApproveRule) -> tuple[ApproveRule, Decider | None]:
    """Return when a rule demands an approval, and who may answer where it says so."""
    if isinstance(rule, str) or not isinstance(rule.get("by"), str):
        return rule, None
    return rule["when"], "operator" if rule["by"] == "operator" else "client"


def _strictest(deciders: Iterable[Decider | None]) -> Decider | None:
    """Return who may answer where several rules say it: an operator, if one of them says so."""
    said = frozenset(deciders)
    return "operator" if "operator" in said else "client" if "client" in said else None


def asks_for_destructive(spec: PluginSpec, tool: Tool) -> bool:
    """Return whether a rule asks a person where a tool may destroy something."""
    return any(_parts(rule)[0] == DESTRUCTIVE and names_tool(name, tool) for name, rule in spec.approve.items())


def names_tool(name: str, tool: Tool) -> bool:
    """Return whether a key of the rules, a name or a pattern, means the tool."""
    return any(fnmatchcase(own, name) for own in (tool.name, tool.wire))


def _demand_of_marks(tool: Tool) -> Demand | None:
    """Return what the source demands for every call of the tool (T13)."""
    found = tool.confirmation
    if found is None or found.hook:
        return None
    reason = _BY_KIND[found.kind].format(fields=", ".join(found.fields))
    return Demand(kind=found.kind, reason=reason, fields=found.schema)


def _demands_of_rules(
    written: list[tuple[str, ApproveRule, Decider | None]], plugin: Plugin, tool: Tool, claims: CountedClaims
) -> Iterator[Demand]:
    """Yield what the rules demand of every call of the tool."""
    for name, rule, decider in written:
        if rule == ALWAYS:
            yield Demand(reason=f"approve.{name} is {ALWAYS}", decider=decider)
        elif rule == DESTRUCTIVE:
            why = _destructive(plugin, tool, claims)
            if why:
                yield Demand(reason=f"approve.{name} is {DESTRUCTIVE}, and {why}", decider=decider)


def _destructive(plugin: Plugin, tool: Tool, claims: CountedClaims) -> str:
    """Return why a tool may destroy something, or nothing; a believed server counts as it was first seen (A1, A4)."""
    said = tool.annotations.get("destructiveHint")
    if said is True and (plugin.kind != "server" or plugin.trusted):
        return "it is marked as destructive"
    if plugin.kind != "server" or reads_only(plugin, tool, claims.read_only):
        return ""
    if not plugin.trusted:
        return "it is not proven to be read-only"
    if said is False:
        later = "it said something else, or nothing, when it was first seen"
        return "" if tool.name in claims.harmless else f"its claim to be non-destructive is not trusted: {later}"
    return "it is not marked as non-destructive"


def demand_of(rules: ToolRules, tool: Tool, arguments: JsonObject) -> Demand | None:
    """Return what a call needs of a person by the rules and the marks, or None; a hook is not asked here.

    An argument that the call does not give counts with its default. A rule about an argument that the tool does
    not have demands it of every call: one that is misspelt must not let anything through.
    """
    if rules.demand is not None:
        return rules.demand
    properties = known_arguments(tool)
    for argument, patterns in rules.patterns.items():
        where, decider = f"approve.{tool.name}.{argument}", rules.deciders.get(argument)
        if argument not in properties:
            return Demand(reason=f"{where} names an argument that it does not have", decider=decider)
        value = arguments.get(argument, _default(properties[argument]))
        pattern = first_match(patterns, value)
        if pattern is not None:
            return Demand(reason=f"its argument '{argument}' matches '{pattern}' ({where})", decider=decider)
    return None


def _default(schema: Any) -> Any:
    return cast("JsonObject", schema).get("default", "") if isinstance(schema, Mapping) else ""
