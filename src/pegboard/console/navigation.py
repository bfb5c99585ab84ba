"""The pages of the console by group: the one list for the navigation, the palette and the keys."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from pegboard.core.principals.bearer_tokens import Right


@dataclass(frozen=True, slots=True, kw_only=True)
class NavigationEntry:
    """One page that is always a click away.

    Attributes:
        address: its path; it is offered where a page has it.
        title: its heading, and what is in the navigation.
        group: the heading above it in the navigation; None where only the palette has it.
        words: what else the palette finds it by.
        key: the key that opens it after ``g``.
        every_agent: whether it is for operators of every agent alone.
        right: the right that it needs.
        within: the beginnings of the addresses of the pages that belong to it.
    """

    address: str
    title: str
    group: str | None = ""
    words: str = ""
    key: str = ""
    every_agent: bool = False
    right: Right = "see"
    within: tuple[str, ...] = ()

    def covers(self, path: str) -> bool:
        """Return whether a page belongs to this entry."""
        return path == self.address or any(path == one or path.startswith(f"{one}/") for one in self.within)


_USE: Final = "Use"
_SET_UP: Final = "Set up"
_MANAGE: Final = "Manage"
ENTRIES: Final = (
    NavigationEntry(address="/console", title="Overview", key="o", words="start attention home usage"),
    NavigationEntry(
        address="/console/approvals",
        title="Approvals",
        key="a",
        words="waiting calls allow deny standing",
        within=("/console/approvals",),
    ),
    NavigationEntry(
        address="/console/activity",
        title="Activity",
        group=_USE,
        key="t",
        words="audit log records trail export calls",
        within=("/console/activity", "/console/call"),
    ),
    NavigationEntry(
        address="/console/sessions",
        title="Sessions",
        group=_USE,
        key="s",
        words="live leases turns",
        within=("/console/session",),
    ),
    NavigationEntry(
        address="/console/cost",
        title="Cost",
        group=_USE,
        key="c",
        words="tokens money bill saved",
        within=("/console/cost",),
    ),
    NavigationEntry(
        address="/console/access",
        title="Access",
        group=_SET_UP,
        key="m",
        words="agents budget every agent toolkit switches pause resume everyone compare",
        within=("/console/access", "/console/agent", "/console/switch"),
    ),
    NavigationEntry(
        address="/console/tools",
        title="Tools",
        group=_SET_UP,
        key="l",
        words="all destructive explain why find",
        within=("/console/tools", "/console/why", "/console/try"),
    ),
    NavigationEntry(
        address="/console/servers",
        title="Servers",
        group=_SET_UP,
        key="v",
        words="failed log restart plugins",
        every_agent=True,
        within=("/console/servers", "/console/server", "/console/changed-tools"),
    ),
    NavigationEntry(
        address="/console/clients",
        title="Clients",
        group=_SET_UP,
        key="i",
        words="connected version principal",
        within=("/console/clients",),
    ),
    NavigationEntry(
        address="/console/settings",
        title="Settings",
        group=_MANAGE,
        key="e",
        words="configuration file problems edits warnings",
        every_agent=True,
        within=("/console/settings", "/console/edit"),
    ),
    NavigationEntry(
        address="/console/people",
        title="People and tokens",
        group=_MANAGE,
        key="p",
        words="user users grant revoke rights principal",
        every_agent=True,
        within=("/console/people",),
    ),
    NavigationEntry(
        address="/console/history",
        title="History",
        group=_MANAGE,
        key="h",
        words="configuration versions diff restore undo changed since",
        within=("/console/history",),
    ),
    NavigationEntry(address="/console/access/matrix", title="Matrix", group=None, key="x", words="every agent toolkit"),
    NavigationEntry(
        address="/console/changed-tools",
        title="Changed tools",
        group=None,
        words="pins accept diff",
        every_agent=True,
    ),
    NavigationEntry(
        address="/console/edit",
        title="Edit",
        group=None,
        words="configuration agents toolkits loadouts change approval rules budget",
        right="configure",
    ),
    NavigationEntry(
        address="/console/servers/add",
        title="Add a server",
        group=None,
        words="new paste import install mcp",
        every_agent=True,
        right="configure",
    ),
    NavigationEntry(address="/console/try", title="Try a tool", group=None, words="call test run", right="configure"),
    NavigationEntry(address="/console/keys", title="Keys", group=None, words="keyboard shortcuts help"),
)
"""All pages, in the order of the navigation; an entry whose page does not exist is not offered."""


def entries_for(pages: Collection[str], rights: Collection[str], *, every_agent: bool) -> list[NavigationEntry]:
    """Return the entries that an operator may open, of the pages that exist."""
    return [
        entry
        for entry in ENTRIES
        if entry.address in pages and entry.right in rights and (every_agent or not entry.every_agent)
    ]
