"""Which tools of servers count as read-only, or as destroying nothing: as first seen, or as accepted since (G6, A4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pegboard.core.model.tools import Plugin, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustChange:
    """What a list of tools changes: ``retracted`` counted so far and is not claimed any more.

    ``pending`` is claimed now, in the order of the list, and counts only once it is accepted.
    """

    retracted: frozenset[str] = frozenset()
    pending: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What counts of what a server says: own names of the tools that only read, and of those that destroy nothing."""

    read_only: frozenset[str] = frozenset()
    harmless: frozenset[str] = frozenset()


def claimed_read_only(tools: Iterable[Tool]) -> tuple[str, ...]:
    """Return the names of the tools that say that they only read; one that says both does not."""
    claims: dict[str, bool] = {}
    for tool in tools:
        claims[tool.name] = tool.read_only and claims.get(tool.name, True)
    return tuple(name for name, read_only in claims.items() if read_only)


def claimed_harmless(tools: Iterable[Tool]) -> tuple[str, ...]:
    """Return the names of the tools that say that they destroy nothing; one that also says otherwise does not."""
    claims: dict[str, bool] = {}
    for tool in tools:
        claims[tool.name] = tool.annotations.get("destructiveHint") is False and claims.get(tool.name, True)
    return tuple(name for name, harmless in claims.items() if harmless)


Claimed = Callable[[Iterable[Tool]], tuple[str, ...]]


def compare_claims(counted: frozenset[str], tools: Iterable[Tool], claimed: Claimed = claimed_read_only) -> TrustChange:
    """Return what a later list of a known server changes (G6).

    A tool that is new counts as little as one that has changed its mind. What is only missing
    from the list keeps its standing: servers take tools away and bring them back.

    >>> log, wipe = Tool(plugin="git", name="log"), Tool(plugin="git", name="wipe", annotations={"readOnlyHint": True})
    >>> compare_claims(frozenset({"log", "diff"}), [log, wipe])
    TrustChange(retracted=frozenset({'log'}), pending=('wipe',))
    """
    listed = tuple(tools)
    now = claimed(listed)
    named = {tool.name for tool in listed}
    return TrustChange(
        retracted=counted & (named - set(now)),
        pending=tuple(name for name in now if name not in counted),
    )


def reads_only(plugin: Plugin, tool: Tool, counted: frozenset[str]) -> bool:
    """Return whether a tool may run where only reading is allowed (G6).

    Own plugins are believed. A server is believed with ``trust: annotations``, and only for the
    tools of which it said so when it was first seen, or which an operator has accepted since.
    """
    if not tool.read_only:
        return False
    return plugin.kind != "server" or (plugin.trusted and tool.name in counted)
