"""What was answered on stdio before the SDK's server took over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.ports import SessionKey


@dataclass(slots=True, kw_only=True)
class EarlyAnswers:
    """The state of a conversation at the moment of the handover; empty where nothing was answered early.

    ``rest`` are the lines for the SDK, in order. ``answered`` are ids of requests among them that were
    answered already: the SDK is to read them, and its answers to be dropped. ``modern`` is the era that
    the first request decided, ``listed`` the session whose list a client of the handshake era has, and
    the digest of that list.
    """

    rest: list[bytes | None] = field(default_factory=list["bytes | None"])
    answered: set[str | int] = field(default_factory=set["str | int"])
    modern: bool | None = None
    listed: tuple[SessionKey, str] | None = None
