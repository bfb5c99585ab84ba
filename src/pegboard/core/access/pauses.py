"""Agents and plugins that an operator has paused (P4): a pause denies, and leaves every switch as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """What is paused for one agent: all of it, or some plugins."""

    agent: bool = False
    plugins: frozenset[str] = frozenset()


NOTHING_PAUSED: Final = Pauses()


def is_paused(pauses: Pauses, plugin: str | None) -> bool:
    """Return whether a plugin, or with None the whole agent, is paused."""
    return pauses.agent if plugin is None else plugin in pauses.plugins


def with_pause(pauses: Pauses, plugin: str | None, *, on: bool) -> Pauses:
    """Return pauses once a plugin, or with None the whole agent, is paused or resumed."""
    if plugin is None:
        return Pauses(agent=on, plugins=pauses.plugins)
    return Pauses(agent=pauses.agent, plugins=pauses.plugins | {plugin} if on else pauses.plugins - {plugin})
