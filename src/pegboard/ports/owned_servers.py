"""Servers of which there is one over all replicas: who runs one, and what the others ask it for (G9, G14)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from pegboard.core.access.listed_items import ListKind
from pegboard.core.model.tools import CallResult, JsonObject, Manifest, Tool
from pegboard.ports.calls import CallContext


class OwnedServer(NamedTuple):
    """A server as it is configured, for one scope of ``pool_scope``: of each there is one."""

    name: str
    fingerprint: str
    scope: str


class OtherOwnerError(Exception):
    """Raised where a request came to a replica that does not run the server any longer: nothing has run."""


class ServerElsewhere(Protocol):
    """A server that another replica runs. Each method raises what its source raises, and ``OtherOwnerError``."""

    async def describe(self) -> Manifest:
        """Return what the server offers."""
        ...

    async def call(self, tool: Tool, arguments: JsonObject, context: CallContext) -> CallResult:
        """Run one tool, by its own name; the arguments are valid already under its schema."""
        ...

    async def offers(self, kind: ListKind) -> Sequence[JsonObject]:
        """Return the items of a list as they stand on the wire."""
        ...

    async def ask(self, method: str, params: JsonObject, context: CallContext) -> JsonObject:
        """Return the result of a request as it stood on the wire; the method is one of ``ResourceSource.ask``."""
        ...

    async def restart(self) -> None:
        """Stop the server, and start it again if it was in use."""
        ...


class ServerOwners(Protocol):
    """Who runs which server."""

    async def elsewhere(self, server: OwnedServer) -> ServerElsewhere | None:
        """Return the way to a server that another replica runs; None where this one does, from now on.

        Raises:
            StoreError: It cannot be known.
            ToolUnavailableError: Its owner does not answer, and no one may take its place yet.
        """
        ...


@runtime_checkable
class SingleOwnerSource(Protocol):
    """A source whose servers may have one owner over all replicas (``instance: store``)."""

    def own_by(self, owners: ServerOwners | None) -> None:
        """Ask from now on who runs a server of which there is one; None is this process, for itself."""
        ...

    async def stop_owned(self, server: OwnedServer) -> None:
        """Stop a server: it is not this process's any longer."""
        ...

    def runs(self, server: OwnedServer) -> bool:
        """Return whether a server is up in this process, or starts."""
        ...

    def tools_changed(self, name: str) -> None:
        """Note that another replica says that the tools of a server that it runs have changed."""
        ...

    def on_changed(self, callback: Callable[[str], None]) -> None:
        """Call back with the name of a server whose tools have changed by themselves."""
        ...
