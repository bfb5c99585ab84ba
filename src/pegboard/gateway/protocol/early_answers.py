"""What was answered on stdio before the SDK's server took over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.core.access.listed_items import ListKind
    from pegboard.gateway.protocol.board_port import Caller
    from pegboard.ports import SessionKey


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyList:
    """A list that was given early: of which kind (None: tools), to whom, in which session, and its digest."""

    kind: ListKind | None
    caller: Caller
    key: SessionKey
    digest: str


@dataclass(slots=True, kw_only=True)
class EarlyAnswers:
    """The state of a conversation at the moment of the handover; empty where nothing was answered early.

    ``rest`` are the lines for the SDK, in order. ``answered`` are ids of requests among them that were
    answered already: the SDK is to read them, and its answers to be dropped. ``modern`` is the era that
    the first request decided, ``listed`` by their methods the newest lists that the client was given.
    """

    rest: list[bytes | None] = field(default_factory=list["bytes | None"])
    answered: set[str | int] = field(default_factory=set["str | int"])
    modern: bool | None = None
    listed: dict[str, EarlyList] = field(default_factory=dict[str, EarlyList])
