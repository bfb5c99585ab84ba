"""Which records of the audit trail are wanted (X4)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which records of the trail are wanted; None is any.

    ``text`` is in the subject, the reason or who did it, upper and lower case being equal. ``since`` counts, ``until``
    does not. With ``agents`` records of others, and those that are about no agent, are not among them.
    """

    principal: str | None = None
    agent: str | None = None
    agents: frozenset[str] | None = None
    session: str | None = None
    kind: str | None = None
    decision: str | None = None
    outcome: str | None = None
    text: str | None = None
    since: datetime | None = None
    until: datetime | None = None
