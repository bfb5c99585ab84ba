"""The run of a framework that is under way, for sources whose tools its context decides."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, kw_only=True)
class FrameworkResult:
    """What a framework does with a call of its own tool beside its result.

    Attributes:
        update: what changes the state of the run, in the framework's own types; None where nothing does.
        ends: whether the result ends the run.
        shown: whether the user is shown the result.
        raised: what the tool's code raised.
        artifact: an object of the program that goes along with the result and reaches no model; None where it is JSON.
    """

    update: list[Any] | None = None
    ends: bool = False
    shown: bool = False
    raised: BaseException | None = None
    artifact: object = None


@dataclass(slots=True, kw_only=True, eq=False)
class FrameworkRun:
    """One moment of a run of a framework; what was decided for it counts for no other moment and no other run.

    Attributes:
        context: what the framework hands to functions of the run; None once the moment is over.
        moment: tells this moment from others; it may be kept, the context must not.
        decided: what sources have decided for this moment, by what they know it by.
        returned: by the id of a tool that was called, what the framework does with it beside its result.
        raised: what the code of tools has raised.
        given: arguments that the host's own code has added to a call and that its model has no place for.
    """

    context: object
    moment: object = field(default_factory=object)
    decided: dict[object, Any] = field(default_factory=dict[object, Any])
    returned: dict[str, FrameworkResult] = field(default_factory=dict[str, "FrameworkResult"])
    raised: list[BaseException] = field(default_factory=list[BaseException])
    given: dict[str, Any] = field(default_factory=dict[str, Any])


FRAMEWORK_RUN: ContextVar[FrameworkRun | None] = ContextVar("pegboard_framework_run", default=None)
"""Set by a framework's adapter while it uses a session for a run."""
