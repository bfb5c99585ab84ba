"""What servers offer besides tools: resources, templates, prompts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, runtime_checkable

from pegboard.core.access.instances import LoginOwner
from pegboard.core.access.listed_items import ListKind
from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import JsonObject
from pegboard.ports.calls import CallContext

NOBODY: Final = LoginOwner()
"""The owner of no login that a person made."""


class ResourceSource(Protocol):
    """What servers offer besides tools.

    ``spec`` is the server, ``scope`` the pool of the connection (G9), ``owner`` whose login counts where the server
    wants one (G11). What needs a connection raises ``NeedsLoginError`` where the owner has no login,
    ``ToolUnavailableError`` where the server cannot be started or reached, ``UpstreamError`` where it failed.
    """

    def cached(
        self, spec: PluginSpec, scope: str, kind: ListKind, owner: LoginOwner = NOBODY
    ) -> Sequence[JsonObject] | None:
        """Return a list where it was read already and cannot have changed since; None where it has to be asked for."""
        ...

    async def offers(
        self, spec: PluginSpec, scope: str, kind: ListKind, owner: LoginOwner = NOBODY
    ) -> Sequence[JsonObject]:
        """Return the items of a list as they stand on the wire.

        Those that are not valid are excluded and reported; a server that declares no such list has an empty one.
        """
        ...

    async def ask(self, spec: PluginSpec, method: str, params: JsonObject, context: CallContext) -> JsonObject:
        """Return the result of a request, as it stood on the wire (G7).

        Args:
            spec: The server.
            method: ``resources/read``, ``prompts/get`` or ``completion/complete``.
            params: Its parameters, with names as the server knows them.
            context: On whose behalf, and the ways back.

        Raises:
            UpstreamError: It failed; where it refused, with its ``answer``.
        """
        ...

    async def subscribe(
        self, spec: PluginSpec, uri: str, scope: str, updated: Callable[[str], None], owner: LoginOwner = NOBODY
    ) -> Callable[[], None] | None:
        """Call back with the URI when a resource, or one beneath it, is updated; a restart of the server counts too.

        Returns what ends it, or None where the server takes no subscriptions.
        """
        ...

    def by_login(self, spec: PluginSpec) -> bool:
        """Return whether what a server gives may depend on whose login it is shown (G11)."""
        ...

    async def kept_as(self, spec: PluginSpec, scope: str, owner: LoginOwner = NOBODY) -> str | None:
        """Return under which name the lists of a connection are kept, or None where they are not (G8, G9).

        No connection has the name whose lists these must not be.
        """
        ...

    def may_keep(self, spec: PluginSpec, scope: str, owner: LoginOwner = NOBODY) -> bool:
        """Return whether what a connection lists now may be kept under its name.

        It may not where it may be what only this session or client is to see.
        """
        ...

    def is_up(self, spec: PluginSpec, scope: str, owner: LoginOwner = NOBODY) -> bool:
        """Return whether the connection of a scope can be asked without being started."""
        ...

    def matches(self, template: str, uri: str) -> bool:
        """Return whether a template, as RFC 6570 has it, gives a URI for some values of its variables."""
        ...

    def on_up(self, callback: Callable[[PluginSpec, str, LoginOwner], None]) -> None:
        """Call back with server, scope and owner when a connection has been opened, or has become that of a scope."""
        ...

    def on_changed(self, callback: Callable[[str, ListKind], None]) -> None:
        """Call back with the name of a server, and which of its lists has changed."""
        ...


@runtime_checkable
class HasResources(Protocol):
    """A source whose plugins may offer more than tools."""

    @property
    def offering(self) -> ResourceSource:
        """Return what to ask for it."""
        ...
