"""What was answered on stdio before the SDK's server took over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.gateway.protocol.board_port import Caller
    from pegboard.ports import SessionKey


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyList:
    """A list of tools that was given early: to whom, in which session, and its digest."""

    caller: Caller
    key: SessionKey
    digest: str


@dataclass(slots=True, kw_only=True)
class EarlyAnswers:
    """The state of a conversation at the moment of the handover; empty where nothing was answered early.

    ``rest`` are the lines for the SDK, in order. ``answered`` are ids of requests among them that were
    answered already: the SDK is to read them, and its answers to be dropped. ``modern`` is the era that
    the first request decided, ``listed`` the newest list that the client was given.
    """

    rest: list[bytes | None] = field(default_factory=list["bytes | None"])
    answered: set[str | int] = field(default_factory=set["str | int"])
    modern: bool | None = None
    listed: EarlyList | None = None
