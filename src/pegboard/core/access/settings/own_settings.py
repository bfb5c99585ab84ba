"""What an agent has set for itself through ``self_config``, for one principal. None of it grants anything."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, cast

from pegboard.core.access.switches import other_spellings
from pegboard.core.model.agents import Agent, World
from pegboard.core.model.leases import TURN, UNLOAD, LeaseTerm

MOST_TURNS: Final = 10_000
VALUES: Final = ("initial_toolkits", "lease")
"""The settings that hold a value."""


class OwnSetting(NamedTuple):
    """One setting: a toolkit, plugin or tool that the agent has switched off, or one of :data:`VALUES`."""

    kind: Literal["off", "value"]
    name: str


OwnSettings = Mapping[OwnSetting, str]
"""Settings with their values as JSON."""
NO_SETTINGS: Final[OwnSettings] = MappingProxyType({})
OFF: Final = json.dumps(False)
"""The value of what is switched off."""


def names_off(settings: OwnSettings) -> tuple[str, ...]:
    """Return what the agent has switched off."""
    return tuple(one.name for one in settings if one.kind == "off")


def values_of(settings: OwnSettings) -> Mapping[str, Any]:
    """Return the values that the agent has set, by their names; one that cannot be read is left out."""
    return dict(_values(settings))


def _values(settings: OwnSettings) -> Iterator[tuple[str, Any]]:
    for (kind, name), text in settings.items():
        if kind == "value" and name in VALUES:
            try:
                yield name, json.loads(text)
            except (ValueError, RecursionError):
                continue


def with_switch(stored: Mapping[str, bool], name: str, value: bool | None, world: World) -> Mapping[str, bool]:
    """Return the stored switches of an agent as they are once an operator has set this one; None removes it."""
    gone = (name, *other_spellings(world, name, stored))
    rest = {other: on for other, on in stored.items() if other not in gone}
    return rest if value is None else {**rest, name: value}


def without_off(settings: OwnSettings, name: str, world: World) -> OwnSettings:
    """Return settings without what the agent has switched off under this name, or another name of the same."""
    gone = (name, *other_spellings(world, name, names_off(settings)))
    return {one: value for one, value in settings.items() if one.kind != "off" or one.name not in gone}


def with_own_off(switches: Mapping[str, bool], *settings: OwnSettings) -> Mapping[str, bool]:
    """Return switches, with what the agent has switched off itself."""
    off = [name for each in settings for name in names_off(each)]
    return {**switches, **dict.fromkeys(off, False)} if off else switches


def with_own_values(agent: Agent, settings: OwnSettings) -> Agent:
    """Return the profile with the values that the agent has set, as far as its file still allows them."""
    if not settings or "self_config" not in agent.host_tools:
        return agent
    values = values_of(settings)
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
