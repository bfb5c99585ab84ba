"""The calls that wait until somebody has logged in to their server, so that they can be gone on with (G11)."""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Final, NamedTuple

from pegboard.core.model.tools import JsonObject
from pegboard.ports import SessionKey

_MOST_SESSIONS: Final = 128
_MOST_OF_SESSION: Final = 32


class AwaitingCall(NamedTuple):
    """A waiting call: its id, of which tool, with which arguments, which way it came, and whether it has been resumed.

    The id is its own, not that of the pending login: any number of calls wait for one login.
    """

    id: str
    name: str
    arguments: JsonObject
    passed_on: bool = False
    read_only: bool = False
    resumed: bool = False


class CallsAwaitingLogin:
    """The waiting calls of this process: the newest of each session, of the sessions that waited last.

    Where there are too many sessions, one of the principal gives way who has the most.

    Those that were resumed are known still, without their arguments. ``by_command`` is set where this process ends
    with its call: no login is begun in it, one is made by a command.
    """

    def __init__(self) -> None:
        self.by_command = False
        self._of_session: OrderedDict[SessionKey, OrderedDict[str, AwaitingCall]] = OrderedDict()

    def put(self, key: SessionKey, call: AwaitingCall) -> None:
        """Keep a call of a session, in place of what is known under its id."""
        calls = self._of_session.setdefault(key, OrderedDict())
        calls[call.id] = call
        calls.move_to_end(call.id)
        self._of_session.move_to_end(key)
        if len(calls) > _MOST_OF_SESSION:
            calls.popitem(last=False)
        if len(self._of_session) > _MOST_SESSIONS:
            counts = Counter(one.principal for one in self._of_session)
            most = max(counts, key=counts.__getitem__)
            del self._of_session[next(one for one in self._of_session if one.principal == most)]

    def of(self, key: SessionKey, call_id: str) -> AwaitingCall | None:
        """Return a call of this session that waits, or has been resumed."""
        calls = self._of_session.get(key)
        return None if calls is None else calls.get(call_id)
