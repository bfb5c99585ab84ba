"""The calls that wait until somebody has logged in to their server, so that they can be gone on with (G11)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

from pegboard.core.model.tools import JsonObject
from pegboard.ports import SessionKey

_MOST: Final = 256


class AwaitingCall(NamedTuple):
    """A call that waits: whose, of which tool, with which arguments."""

    key: SessionKey
    name: str
    arguments: JsonObject


class CallsAwaitingLogin:
    """The calls of this process by the login that they wait for: the last of each, the newest ``_MOST`` of them.

    ``by_command`` is set where this process ends with its call: no login is begun in it, one is made by a command.
    """

    def __init__(self) -> None:
        self.by_command = False
        self._by_login: OrderedDict[str, AwaitingCall] = OrderedDict()

    def put(self, login_id: str, call: AwaitingCall) -> None:
        """Keep a call."""
        self._by_login[login_id] = call
        self._by_login.move_to_end(login_id)
        while len(self._by_login) > _MOST:
            self._by_login.popitem(last=False)

    def of(self, login_id: str, key: SessionKey) -> AwaitingCall | None:
        """Return the call that waits for a login, if it is of this session."""
        found = self._by_login.get(login_id)
        return found if found is not None and found.key == key else None
