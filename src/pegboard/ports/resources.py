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
    """What servers offer besides tools; ``scope`` names the pool of the connection (G9)."""

    def cached(
        self, spec: PluginSpec, scope: str, kind: ListKind, owner: LoginOwner = NOBODY
    ) -> Sequence[JsonObject] | None:
        """Return a list without asking for it.

        Args:
            spec: The server.
            scope: The pool of the connection.
            kind: Which list.
            owner: Whose login counts, where the server wants one (G11).

        Returns:
            The list, where it was read already and cannot have changed since, or None.
        """
        ...

    async def offers(
        self, spec: PluginSpec, scope: str, kind: ListKind, owner: LoginOwner = NOBODY
    ) -> Sequence[JsonObject]:
        """Return a list as it stands on the wire.

        Args:
            spec: The server.
            scope: The pool of the connection.
            kind: Which list.
            owner: Whose login counts, where the server wants one (G11).

        Returns:
            Its items; those that are not valid are excluded and reported, and a server that declares
            no such list has an empty one.

        Raises:
            NeedsLoginError: The server wants a login, and the owner has none.
            ToolUnavailableError: The server cannot be started or reached.
            UpstreamError: It failed.
        """
        ...

    async def ask(self, spec: PluginSpec, method: str, params: JsonObject, context: CallContext) -> JsonObject:
        """Return the result of a request, unchanged (G7).

        Args:
            spec: The server.
            method: ``resources/read``, ``prompts/get`` or ``completion/complete``.
            params: Its parameters, with names as the server knows them.
            context: On whose behalf, and the ways back.

        Returns:
            The result as it stood on the wire.

        Raises:
            NeedsLoginError: The server wants a login, and the ``context.owner`` has none.
            ToolUnavailableError: The server cannot be started or reached.
            UpstreamError: It failed; where it refused, with its ``answer``.
        """
        ...

    async def subscribe(
        self, spec: PluginSpec, uri: str, scope: str, updated: Callable[[str], None], owner: LoginOwner = NOBODY
    ) -> Callable[[], None] | None:
        """Call back when a resource, or one beneath it, is updated; a restart of the server counts too.

        Args:
            spec: The server.
            uri: The resource, as the server knows it.
            scope: The pool of the connection.
            updated: Takes the URI of what was updated.
            owner: Whose login counts, where the server wants one (G11).

        Returns:
            What ends it, or None where the server takes no subscriptions.

        Raises:
            NeedsLoginError: The server wants a login, and the owner has none.
            ToolUnavailableError: The server cannot be started or reached.
            UpstreamError: It failed or refused.
        """
        ...

    def by_login(self, spec: PluginSpec) -> bool:
        """Return whether what a server gives may depend on whose login it is shown (G11).

        Args:
            spec: The server.

        Returns:
            False where it is the same for all who share a connection.
        """
        ...

    async def kept_as(self, spec: PluginSpec, scope: str, owner: LoginOwner = NOBODY) -> str | None:
        """Return under which name the lists of a connection are kept (G8, G9).

        Args:
            spec: The server.
            scope: The pool of the connection.
            owner: Whose login counts, where the server wants one (G11).

        Returns:
            A name that no connection has whose lists these must not be, or None where lists are not kept.
        """
        ...

    def may_keep(self, spec: PluginSpec, scope: str, owner: LoginOwner = NOBODY) -> bool:
        """Return whether what a connection lists now may be kept under its name.

        Args:
            spec: The server.
            scope: The pool of the connection.
            owner: Whose login counts, where the server wants one (G11).

        Returns:
            False where it may be what only this session or client is to see.
        """
        ...

    def is_up(self, spec: PluginSpec, scope: str, owner: LoginOwner = NOBODY) -> bool:
        """Return whether the connection of a scope stands.

        Args:
            spec: The server.
            scope: The pool of the connection.
            owner: Whose login counts, where the server wants one (G11).

        Returns:
            Whether it can be asked without being started.
        """
        ...

    def matches(self, template: str, uri: str) -> bool:
        """Return whether a template gives a URI.

        Args:
            template: As RFC 6570 has it.
            uri: The URI.

        Returns:
            Whether it does for some values of its variables.
        """
        ...

    def on_up(self, callback: Callable[[PluginSpec, str, LoginOwner], None]) -> None:
        """Call back whenever a connection to a server has been opened, or has become that of a scope.

        Args:
            callback: Takes the server, the scope of the connection, and whose login it shows.
        """
        ...

    def on_changed(self, callback: Callable[[str, ListKind], None]) -> None:
        """Call back when a list of a server has changed.

        Args:
            callback: Takes the server's name and which list.
        """
        ...


@runtime_checkable
class HasResources(Protocol):
    """A source whose plugins may offer more than tools."""

    @property
    def offering(self) -> ResourceSource:
        """Return what to ask for it."""
        ...
