"""What is proposed for an agent, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass

from pegboard.core.proposals.replay import Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToolkit:
    """A toolkit that is not there yet; its members are plugins, and tools as ``plugin/tool``."""

    name: str
    description: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A change of an agent: what joins its lists ``tools`` and ``initial_toolkits``, or a toolkit that it may load.

    It speaks of what ``sessions`` of ``of`` sessions did; ``schema`` are the tokens of what would be
    loaded from the start, or of what a load of the toolkit brings.
    """

    agent: str
    static: tuple[str, ...] = ()
    initial: tuple[str, ...] = ()
    toolkit: NewToolkit | None = None
    sessions: int
    of: int
    schema: int

    @property
    def names(self) -> tuple[str, ...]:
        """Return what it is about."""
        return (*self.static, *self.initial, *((self.toolkit.name,) if self.toolkit else ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A proposal that stands, and what it saves beside those before it."""

    proposal: Proposal
    saved: Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined:
    """What is loaded often and still not proposed, and why."""

    proposal: Proposal
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What the trail of one agent says; ``enough`` is whether there is enough of it to propose anything.

    ``unknown`` are plugins on the trail whose tools are not known, so that nothing that concerns
    them is counted or proposed; ``gone`` are subjects that mean nothing today.
    """

    agent: str
    enough: bool
    sessions: int
    turns: int
    calls: int
    before: Totals
    after: Totals
    accepted: tuple[Accepted, ...] = ()
    declined: tuple[Declined, ...] = ()
    unknown: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
