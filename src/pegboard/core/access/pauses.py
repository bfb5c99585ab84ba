"""Agents and plugins that an operator has paused, as they stand among the stored switches (P4).

A pause is a row of its own beside the switches: it denies, and taking it away leaves every switch as it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

PAUSE: Final = "pause:"
PAUSED_AGENT: Final = "pause:agent"
_PLUGIN: Final = "pause:plugin:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """What is paused for one agent: all of it, or some plugins."""

    agent: bool = False
    plugins: frozenset[str] = frozenset()


def pauses_of(stored: Iterable[str]) -> Pauses:
    """Return what is paused, by the names of an agent's stored switches."""
    names = [name for name in stored if name.startswith(PAUSE)]
    plugins = (name.removeprefix(_PLUGIN) for name in names if name.startswith(_PLUGIN))
    return Pauses(agent=PAUSED_AGENT in names, plugins=frozenset(plugins))


def pause_name(plugin: str | None) -> str:
    """Return the name under which a pause is stored: of a plugin, or of the whole agent."""
    return PAUSED_AGENT if plugin is None else f"{_PLUGIN}{plugin}"


def paused_plugin(name: str) -> str | None:
    """Return the plugin that a pause is about, None for the whole agent."""
    return name.removeprefix(_PLUGIN) if name.startswith(_PLUGIN) else None
