"""Named, granted and switched as one: toolkits (seeds 000, 001, 004)."""

from __future__ import annotations

from dataclasses import dataclass

from pegboard.core.model.catalog import Catalog
from pegboard.core.model.selectors import Entry, Member, entries, find
from pegboard.core.model.tools import JsonObject
from pegboard.problems import Place

HOST_DUTIES = frozenset({"delegate", "self_config"})
"""Tools that Pegboard itself carries out, for agents that list them among their tools."""

RESERVED = HOST_DUTIES | {"dynamic_tools"}
"""Names that may not stand in a toolkit (T3, seed 001)."""

SHARED_ONLY = frozenset({"spotify", "homeassistant"})
"""Plugins that work only where they are shared (P5, seed 001)."""

ISOLATING_SCOPES = frozenset({"user", "user_agent"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """A selector with a name, and what models and people are shown of it (T1, T6).

    ``policy_hook`` names what writes the policy text in place of ``policy``: ``module:function``.
    ``share_with`` are agents for which its loads and unloads count together (S1).
    """

    name: str
    description: str = ""
    members: tuple[Member, ...] = ()
    policy: str = ""
    policy_hook: str = ""
    focus: tuple[JsonObject, ...] = ()
    label: str = ""
    icon: str = ""
    share_with: tuple[str, ...] = ()
    place: Place | None = None

    def sharing(self, agent: str) -> tuple[str, ...]:
        """Return the other agents for which a load by this one counts too: none where it is not named itself (S1)."""
        return tuple(name for name in self.share_with if name != agent) if agent in self.share_with else ()

    def entries(self, catalog: Catalog) -> tuple[Entry, ...]:
        """Return what the members stand for, in their order."""
        return tuple(entries(self.members, catalog))

    def complete(self, catalog: Catalog) -> bool:
        """Return whether every member means something known: else it may be a tool of a plugin that was not asked."""
        return all(find(member.name, catalog) is not None for member in self.members)
