"""The run of a framework that is under way, for sources whose tools its context decides."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrameworkRun:
    """One moment of a run of a framework; what was decided for it counts for no other moment and no other run.

    Attributes:
        context: what the framework hands to functions of the run.
        moment: tells this moment from others; it may be kept, the context must not.
        decided: what sources have decided for this moment, by what they know it by.
    """

    context: object
    moment: object = field(default_factory=object)
    decided: dict[object, Any] = field(default_factory=dict[object, Any])


FRAMEWORK_RUN: ContextVar[FrameworkRun | None] = ContextVar("pegboard_framework_run", default=None)
"""Set by a framework's adapter while it uses a session for a run."""
