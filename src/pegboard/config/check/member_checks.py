"""Entries of lists of tools: names that mean nothing, and what stands twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pegboard.config.check.member_names import Meaning, MemberNames
from pegboard.config.documents.document import is_list, is_mapping
from pegboard.config.problem_codes import error, warning
from pegboard.core.model.naming import one_line
from pegboard.core.model.selectors import Member
from pegboard.core.model.toolkits import HOST_TOOLS, META_TOOLS
from pegboard.problems import Problem

TOOLS, DEFAULTS, ESSENTIAL = "tools", "defaults", "essential"
"""Lists of an agent's own tools; the host's own tools may stand in the first two."""
_OWN = (TOOLS, DEFAULTS, ESSENTIAL)


def check_members(items: Iterable[Member], names: MemberNames, where: str) -> Iterator[Problem]:
    """Yield the names that mean nothing, and what stands twice."""
    first: dict[Any, Member] = {}
    for item in items:
        if where in _OWN and item.name in META_TOOLS and names.meaning(item.name).kind in ("unknown", "unsure"):
            message = f"'{item.name}' comes by itself where it is needed."
            yield warning("reserved", message, item.place, "Remove it.")
            continue
        meaning = names.meaning(item.name)
        if item.name in HOST_TOOLS:
            yield from _duty(item, where)
        else:
            yield from check_member(item, meaning, names)
        identity = meaning.identity if meaning.kind not in ("unknown", "unsure") else item.name
        if identity in first and alike(first[identity].overrides, item.overrides):
            message = f"'{item.name}' stands twice in {where}."
            yield warning("duplicate_name", message, item.place, "The first one counts.")
        first.setdefault(identity, item)


def _duty(item: Member, where: str) -> Iterator[Problem]:
    """Yield why one of the host's own tools cannot stand where it stands."""
    if where not in (TOOLS, DEFAULTS):
        message = f"'{item.name}' is carried out by Pegboard itself and stands in `tools` only."
        yield error("reserved", message, item.place, "Write it there.")
    elif item.overrides or item.filtered:
        message = f"'{item.name}' takes no settings here."
        yield warning("reserved", message, item.place, f"Write '- {item.name}'.")


def check_member(item: Member, meaning: Meaning, names: MemberNames) -> Iterator[Problem]:
    """Yield why a name cannot stand in a list of tools, if it cannot."""
    match meaning.kind:
        case "plugin" | "tool" | "category":
            return
        case "toolkit":
            message = f"'{item.name}' is a toolkit; plugins and tools stand here."
            yield error("unknown_tool", message, item.place, "Write its members.")
        case "unsure":
            message = f"'{item.name}' is not known yet; it may be a tool of {names.nameless}."
            yield warning("unresolved_tool", message, item.place, names.question(item.name))
        case "unknown":
            message = f"'{one_line(item.name, limit=80)}' is not a known plugin or tool."
            yield error("unknown_tool", message, item.place, names.question(item.name))


def alike(one: Any, other: Any) -> bool:
    """Return whether two settings may turn out equal once their types are known (T5)."""
    if is_mapping(one) and is_mapping(other):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if is_list(one) and is_list(other):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other or str(one).strip().lower() == str(other).strip().lower()
