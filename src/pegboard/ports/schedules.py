"""What agents planned, and what of it is due."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from pegboard.core.model.specs import PluginSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class DueSchedule:
    """A schedule whose time has come.

    Attributes:
        id: its id.
        name: what its owner calls it.
        description: what it is for.
        payload: what its owner wrote for the user who runs it, such as ``{"message": "…"}``.
        plugin: the plugin through which it was made.
        principal: whose it is; empty where no one knows.
        agent: the agent that made it; empty where no one knows.
        session: the session in which it was made.
    """

    id: str
    name: str
    description: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict[str, Any])
    plugin: str = ""
    principal: str = ""
    agent: str = ""
    session: str = ""


@runtime_checkable
class ScheduleSource(Protocol):
    """A source with a plugin that keeps schedules."""

    async def claim_due(self, spec: PluginSpec) -> DueSchedule | None:
        """Take a schedule that is due, and set when it is due next: no other process takes it for this time.

        None is returned where none is due or the plugin keeps none.
        """
        ...

    async def note_run(self, due: DueSchedule, error: str) -> None:
        """Keep in the history of a schedule that it was run, and the error where that failed, else nothing."""
        ...
