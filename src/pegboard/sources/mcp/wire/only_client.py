"""The client of a connection, or those of one user, who answer what its server asks outside of any call (G7, G9)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from pegboard.core.access.extensions import told_servers
from pegboard.core.model.tools import EMPTY, JsonObject
from pegboard.ports import AskRefusedError, Client

ROOTS_CHANGED: Final = "notifications/roots/list_changed"
DIFFERENT_ROOTS: Final = "Several clients share this server, and their roots are not the same."
_OF_ALL: Final = frozenset({"roots/list", ROOTS_CHANGED})


class ProcessClient:
    """The client that has started this process, or the one whose connections are its own: their servers mean it.

    It may still be to come: what is asked waits for it. ``watchers`` take the notifications that it makes to servers,
    ``declares`` is what a server is told of it when its connection begins.
    """

    def __init__(self) -> None:
        self.watchers: set[Callable[[str, JsonObject], None]] = set()
        self.declares: JsonObject = EMPTY
        self._client: Client | None = None
        self._other: ProcessClient | None = None
        self._met = asyncio.Event()

    def introduce(self, capabilities: Mapping[str, Any], *, modern: bool) -> None:
        """Note what it can do, as it stands on the wire; ``modern`` is its era."""
        self.declares = told_servers(capabilities, modern=modern)

    def meet(self, client: Client | None) -> None:
        """Let this client answer from now on; None where it can be asked during calls alone."""
        self._client = client
        self._met.set()

    def means(self, method: str) -> bool:  # noqa: ARG002
        """Return whether a request outside of calls, or a notification, is about this client."""
        return True

    @property
    def is_connected(self) -> bool:
        """Return whether it is there."""
        return self._met.is_set()

    @property
    def says_roots(self) -> bool:
        """Return whether it says what its roots are whichever calls are under way."""
        return self._client is not None or (self._other is not None and self._other.says_roots)

    def become(self, other: ProcessClient | None) -> None:
        """Be this one from now on, also for what was asked before it was known who that is; None is no one."""
        self._other = other
        self._met.set()

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Return what it answers; raises ``AskRefusedError``."""
        await self._met.wait()
        if self._other is not None:
            return await self._other.ask(method, params)
        if self._client is None:
            raise AskRefusedError("The client uses the newer protocol, in which it can be asked only during calls.")
        return await self._client.ask(method, params)

    def tell_servers(self, method: str, params: JsonObject) -> None:
        """Pass a notification of it on to the servers that run."""
        for told in tuple(self.watchers):
            told(method, params)


class ClientsOfUser(ProcessClient):
    """The clients of one user that share servers (G12): one alone is meant, several for their roots if these are equal.

    ``clients`` are those that are connected, by name; what is asked before the first of them waits for it.
    """

    def __init__(self, clients: Mapping[str, ProcessClient]) -> None:
        super().__init__()
        self._clients = clients
        self._connected = asyncio.Event()
        self.declares = {"roots": {"listChanged": True}}

    @property
    def is_connected(self) -> bool:
        """Return whether any of them is there."""
        return bool(self._clients)

    @property
    def says_roots(self) -> bool:
        """Return whether the roots are those of all: always with several, who are to see the folders of none alone."""
        return len(self._clients) > 1 or any(client.says_roots for client in self._clients.values())

    def changed(self) -> None:
        """Note that a client has come or gone: servers that run are to ask again what the roots are."""
        if self._clients:
            self._connected.set()
        else:
            self._connected.clear()
        self.tell_servers(ROOTS_CHANGED, EMPTY)

    def means(self, method: str) -> bool:
        """Return whether a request or a notification is about all of them."""
        return method in _OF_ALL or len(self._clients) <= 1

    def become(self, other: ProcessClient | None) -> None:
        """Stay what they are: a connection that becomes one client's has asked all of them so far."""

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Return what all of them answer; raises ``AskRefusedError``."""
        await self._connected.wait()
        clients = tuple(self._clients.values())
        answers = await asyncio.gather(*(client.ask(method, params) for client in clients))
        if not answers or any(answer != answers[0] for answer in answers):
            raise AskRefusedError(DIFFERENT_ROOTS)
        return answers[0]
