"""What servers offer besides tools: resources, templates, prompts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from pegboard.core.access.listed_items import ListKind
from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import JsonObject
from pegboard.ports.calls import CallContext


class ResourceSource(Protocol):
    """Ask servers for what they offer besides tools; ``scope`` names the pool of the connection (G9)."""

    def cached(self, spec: PluginSpec, scope: str, kind: ListKind) -> Sequence[JsonObject] | None:
        """Return a list that was read already and cannot have changed since, or None."""
        ...

    async def offers(self, spec: PluginSpec, scope: str, kind: ListKind) -> Sequence[JsonObject]:
        """Return a list as it stands on the wire; items that are not valid are left out and reported.

        A server that declares none has an empty one. Raises ``ToolUnavailableError``, ``UpstreamError``.
        """
        ...

    async def ask(self, spec: PluginSpec, method: str, params: JsonObject, context: CallContext) -> JsonObject:
        """Return the result of ``resources/read``, ``prompts/get`` or ``completion/complete``, unchanged (G7).

        Raises ``ToolUnavailableError``, ``UpstreamError``; where the server refused, with its ``answer``.
        """
        ...

    async def subscribe(
        self, spec: PluginSpec, uri: str, scope: str, updated: Callable[[str], None]
    ) -> Callable[[], None] | None:
        """Call back with the URI when a resource, or one beneath it, is updated; returns what ends that.

        A restart of the server counts as an update.

        None where the server takes no subscriptions. Raises as :meth:`ask` does.
        """
        ...

    def is_up(self, spec: PluginSpec, scope: str) -> bool:
        """Return whether the connection of a scope stands."""
        ...

    def matches(self, template: str, uri: str) -> bool:
        """Return whether a template (RFC 6570) gives a URI."""
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
