"""Narrow one step to some of the visible tools: an overlay, never an edit of the list (F3, seed 004)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.catalog import Ref, split_kind
from pegboard.core.model.leases import LeaseReason
from pegboard.core.model.selectors import find
from pegboard.core.model.tools import JsonObject
from pegboard.core.surface.surfaces import Focus, Surface

Choice = Literal["auto", "required"]
MESSAGE: Final = 10_000
"""How many characters of a message rules are matched against."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """What one rule asks for: ids of tools, and whether the model must call one of them."""

    tools: frozenset[str]
    choice: Choice = "auto"


def rules(permissions: CompiledPermissions) -> Iterator[tuple[str, JsonObject]]:
    """Yield the focus rules of the toolkits that the agent may load, each with its toolkit."""
    for name in permissions.entries.loadable_toolkits:
        yield from ((name, rule) for rule in permissions.world.toolkits[name].focus)


def members(permissions: CompiledPermissions, toolkit: str) -> frozenset[str]:
    """Return the ids of the tools of a toolkit."""
    return frozenset[str]().union(*(entry.ids for entry in permissions.entries.toolkits.get(toolkit, ())))


def directive(permissions: CompiledPermissions, toolkit: str, names: Sequence[str], choice: Choice) -> Directive:
    """Return what a rule asks for: the tools that it names, members first, or all of its toolkit."""
    own = members(permissions, toolkit)
    if not names:
        return Directive(tools=own, choice=choice)
    return Directive(tools=frozenset(i for name in names for i in _tools_meant(permissions, own, name)), choice=choice)


def _tools_meant(permissions: CompiledPermissions, own: frozenset[str], name: str) -> Iterable[str]:
    catalog = permissions.world.catalog
    bare = split_kind(name)[1]
    same = [tool.id for tool in catalog.named(bare) if tool.id in own]
    if same:
        return same
    match find(name, catalog):
        case Ref("tool", tool_id):
            return (tool_id,)
        case Ref("plugin", plugin):
            return (tool.id for tool in catalog.plugins[plugin].tools)
        case _:
            return ()


def parse_answer(answer: object) -> tuple[tuple[str, ...], Choice] | None:
    """Return what a hook asks for: names and a choice; None where it asks for nothing.

    A hook answers None, a list of names, or ``{"tools": [names], "choice": "auto" or "required"}``.
    Raises ``ValueError`` for anything else.
    """
    part, choice = answer, "auto"
    if isinstance(answer, Mapping):
        fields = cast("Mapping[str, object]", answer)
        part, choice = fields.get("tools", ()), fields.get("choice", "auto")
    if part is None:
        return None
    if choice != "auto" and choice != "required":
        raise ValueError("its choice is neither auto nor required")
    if not isinstance(part, list | tuple):
        raise ValueError("it answers neither None, a list of names, nor {tools, choice}")
    names = tuple(str(name) for name in cast("Sequence[object]", part))
    return (names, "required" if choice == "required" else "auto") if names else None


def overlay(surface: Surface, asked: Iterable[Directive]) -> Focus | None:
    """Return the focus of a step: the union of what is visible, with the meta-tools; required beats auto.

    None where no rule asks for anything that is visible. What asks for nothing visible does not
    make a choice required either.
    """
    ids = {loaded.tool.id for loaded in surface.tools}
    counted = [one for one in asked if not ids.isdisjoint(one.tools)]
    if not counted:
        return None
    wanted = frozenset[str]().union(*(one.tools for one in counted))
    allowed = [one.tool.wire for one in surface.tools if one.tool.id in wanted or LeaseReason.META in one.because]
    choice = "required" if any(one.choice == "required" for one in counted) else "auto"
    return {"allowed_tools": allowed, "tool_choice": choice}
