"""What an agent has set for itself through ``self_config``, as it stands among the stored switches.

Each setting is a switch whose name begins with ``self:``: ``self:off:NAME`` takes a toolkit, plugin or tool away,
``self:initial_toolkits:[…]`` and ``self:lease:{…}`` hold their value as JSON. None of them grants anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from pegboard.core.access.pauses import PAUSE
from pegboard.core.access.switches import other_spellings
from pegboard.core.model.agents import Agent, World
from pegboard.core.model.leases import TURN, UNLOAD, LeaseTerm
from pegboard.core.model.tools import EMPTY

SELF: Final = "self:"
OFF: Final = "self:off:"
MOST_TURNS: Final = 10_000
VALUES: Final = ("initial_toolkits", "lease")
"""The settings that hold a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSettings:
    """The settings of one agent: what it has taken away from itself, and its values by their names."""

    off: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])


def own_settings(stored: Mapping[str, bool]) -> OwnSettings:
    """Return the settings among the stored switches of an agent; what cannot be read is as if it were not there."""
    off = tuple(name.removeprefix(OFF) for name in stored if name.startswith(OFF))
    return OwnSettings(off=off, values=dict(_values(stored)))


def _values(stored: Mapping[str, bool]) -> Iterator[tuple[str, Any]]:
    for name in stored:
        key, colon, text = name.removeprefix(SELF).partition(":")
        if name.startswith(SELF) and key in VALUES and colon:
            try:
                yield key, json.loads(text)
            except (ValueError, RecursionError):
                continue


def stored_value(name: str, value: object) -> str:
    """Return the name under which a value is stored."""
    return f"{SELF}{name}:{json.dumps(value, sort_keys=True)}"


def switches_of(stored: Mapping[str, bool]) -> Mapping[str, bool]:
    """Return the switches that are in force: those of operators, and off whatever the agent took from itself."""
    if not any(name.startswith((SELF, PAUSE)) for name in stored):
        return stored
    operators = {name: on for name, on in stored.items() if not name.startswith((SELF, PAUSE))}
    return {**operators, **dict.fromkeys(own_settings(stored).off, False)}


def replaced_by(name: str, world: World, stored: Iterable[str]) -> tuple[str, ...]:
    """Return the stored names that go when an operator sets a switch: the agent's own setting, other spellings."""
    others = other_spellings(world, name, stored)
    return (*others, *(f"{OFF}{each}" for each in (name, *others)))


def with_switch(stored: Mapping[str, bool], name: str, value: bool | None, world: World) -> Mapping[str, bool]:
    """Return the stored switches of an agent as they are once an operator has set this one; None removes it."""
    gone = (name, *replaced_by(name, world, stored))
    rest = {other: on for other, on in stored.items() if other not in gone}
    return rest if value is None else {**rest, name: value}


def self_denied(stored: Mapping[str, bool]) -> frozenset[str]:
    """Return what the agent has taken from itself for every principal, as stores of before have it (P10)."""
    return frozenset(own_settings(stored).off)


def joined(*layers: Mapping[str, bool]) -> Mapping[str, bool]:
    """Return switches that count beside each other: false of any denies."""
    found: dict[str, bool] = {}
    for layer in layers:
        for name, on in switches_of(layer).items():
            found[name] = on and found.get(name, True)
    return found


def with_own(agent: Agent, stored: Mapping[str, bool]) -> Agent:
    """Return the profile with the values that the agent has set, as far as its file still allows them."""
    values: Mapping[str, Any] = own_settings(stored).values if "self_config" in agent.host_tools else EMPTY
    initial, term = values.get("initial_toolkits"), lease_of(values.get("lease"))
    if isinstance(initial, list) and "initial_toolkits" in agent.self_config:
        names = [name for name in cast("list[Any]", initial) if name in agent.allowed_toolkits]
        agent = replace(agent, initial_toolkits=tuple(names))
    return replace(agent, lease=term) if term is not None and "lease" in agent.self_config else agent


def lease_of(value: Any) -> LeaseTerm | None:
    """Return the lease that a value means, ``{kind, turns}``; None where it means none."""
    if value == {"kind": "turn"}:
        return TURN
    if value == {"kind": "unload"}:
        return UNLOAD
    match value:
        case {"kind": "idle", "turns": int() as turns} if (
            value == {"kind": "idle", "turns": turns} and turns is not True
        ):
            return LeaseTerm("idle", turns) if 0 < turns <= MOST_TURNS else None
        case _:
            return None
