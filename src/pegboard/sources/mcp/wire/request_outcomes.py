"""How a request to a server ends when it has no result, and what is known of one under way."""

from __future__ import annotations

import itertools
from contextvars import ContextVar
from typing import Any, Final

from pegboard.ports import Client

NO_MESSAGE: Final = "its answer is not a message of the protocol"
TOO_DEEP: Final = "its answer is nested too deeply to be read"
FIRST_OWN_ID: Final = 1_000_000_000
"""The first id that is not the SDK's: it counts from 1; every server takes integers of 31 bits."""


class InFlight:
    """A request under way: whether it left, and the answer as it stood on the wire.

    ``number`` is the id that the SDK has given it. ``unread``: the server ended before it had read the
    whole of it. ``refused``: the answer was an error. ``client`` is on whose behalf it is made, where that is known.
    """

    __slots__ = ("client", "listing", "number", "raw", "refused", "sent", "unread")

    def __init__(self, *, listing: bool = False, client: Client | None = None) -> None:
        self.listing = listing
        self.client = client
        self.number: int | str | None = None
        self.sent = False
        self.unread = False
        self.refused = False
        self.raw: dict[str, Any] | None = None


IN_FLIGHT: ContextVar[InFlight | None] = ContextVar("pegboard_in_flight", default=None)
"""The request that the current task sends through the SDK."""


class RequestNumbers:
    """The ids of the requests over one connection that the SDK does not make."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers = itertools.count(FIRST_OWN_ID)

    def begin_request(self) -> int:
        """Return the id of a new request."""
        return next(self._numbers)

    def end_request(self, number: int) -> None:
        """Note that a request is answered, or that its answer is not waited for."""


class ConnectionEndedError(Exception):
    """The end of a connection; ``dead``: it answers nothing any longer, as far as is known."""

    def __init__(self, reason: str, in_flight: InFlight, *, dead: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.dead = dead
        self._in_flight = in_flight

    @property
    def sent(self) -> bool:
        """Return whether the server may have seen the request; certain once the connection has ended."""
        return self._in_flight.sent and not self._in_flight.unread


class ListUnreadError(Exception):
    """A call that was not sent: the list of the tools has to be read again before it."""


class InvalidAnswerError(Exception):
    """An answer that is not what the protocol allows."""


class TooLargeError(Exception):
    """A message that is larger than the server's ``message_limit``."""


class UseSdkError(Exception):
    """A call of which nothing was sent, or which was surely not run: it goes by the SDK."""


def size(count: int) -> str:
    """Return a number of bytes as the configuration writes it.

    >>> size(32 * 1024 * 1024), size(1536), size(1000)
    ('32MiB', '1536B', '1000B')
    """
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count and count % factor == 0:
            return f"{count // factor}{unit}"
    return f"{count}B"


def too_large_clause(limit: int) -> str:
    """Return what is reported of a message over the limit, as a clause."""
    return f"it sent a message of more than {size(limit)}"
