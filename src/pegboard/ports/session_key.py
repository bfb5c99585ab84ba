"""The name of a session."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKey:
    """The name of one session's state (S1)."""

    principal: str
    agent: str
    session: str
