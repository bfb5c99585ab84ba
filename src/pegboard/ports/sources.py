"""Where plugins come from, and what runs their tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import CallResult, JsonObject, Manifest, Tool
from pegboard.ports.calls import CallContext, Client


class Source(Protocol):
    """A source of plugins of one kind, which runs their tools."""

    def handles(self, spec: PluginSpec) -> bool:
        """Return whether this source brings a plugin in; of several sources the first has it."""
        ...

    def fingerprint(self, spec: PluginSpec) -> str:
        """Return a text that changes when a stored manifest no longer counts; "" where none is to be stored."""
        ...

    async def describe(self, spec: PluginSpec, overrides: JsonObject) -> Manifest:
        """Start or construct the plugin and return its tools, the overrides that it takes, and its instructions (P6).

        ``overrides`` is what the configuration sets inline; it is empty for the plugin as it is.

        Raises:
            ToolUnavailableError: It cannot run now; the hint says what to do.
            UpstreamError: A server failed or went away meanwhile.
        """
        ...

    def call(
        self,
        spec: PluginSpec,
        overrides: JsonObject,
        tool: Tool,
        arguments: JsonObject,
        context: CallContext,
    ) -> Coroutine[Any, Any, CallResult]:
        """Run one tool; a failure of the tool itself is a result with ``is_error``.

        Args:
            spec: The plugin.
            overrides: Those of the variant that is called.
            tool: The tool, by its own name.
            arguments: Valid already under its schema.
            context: On whose behalf, and the ways back.

        Raises:
            ToolUnavailableError: Nothing could run.
            UpstreamError: Nothing came back.
        """
        ...

    def on_changed(self, callback: Callable[[str], None]) -> None:
        """Call back with the name of a plugin whose tools have changed by themselves."""
        ...

    async def aclose(self) -> None:
        """Stop whatever was started."""
        ...


class OtherDefinitionError(Exception):
    """Raised for a call whose server does not list the definition with which it was decided: nothing has run (A4)."""


TakeList = Callable[[str, Manifest, bool], Awaitable[None]]
"""Takes the name of a server, the list of a new connection to it, and whether that list is all that the server has.

Once it returns, what the list changes counts for every call.
"""


@runtime_checkable
class ListReader(Protocol):
    """A source that reads the list of a server on each new connection, before the first call runs there (A4).

    Its ``call`` raises ``OtherDefinitionError`` where that list has not just the definition of the tool.
    """

    def on_read(self, take: TakeList) -> None:
        """Hand over each list that is read because a connection is new."""
        ...

    def note_compared(self, spec: PluginSpec, manifest: Manifest) -> None:
        """Let calls run on the connection on which ``describe`` has read this list: it was compared with the pins."""
        ...

    def note_stored(self, spec: PluginSpec, manifest: Manifest) -> None:
        """Take what an earlier process learnt of how a server is reached, before its first start in this one (G8)."""
        ...


@runtime_checkable
class SourceWithTurns(Protocol):
    """A source of which only so many plugins begin to start at once."""

    def need(self, plugin: str) -> None:
        """Let a plugin of this name begin to start before those that no request waits for."""
        ...


@runtime_checkable
class ImportingSource(Protocol):
    """A source that brings in plugins by running their code."""

    def under_way(self, spec: PluginSpec, overrides: JsonObject) -> str:
        """Return which line of its code runs while a plugin is brought in; empty where that is unknown."""
        ...


@runtime_checkable
class AskingSource(Protocol):
    """A source whose servers ask clients something, also outside of any call."""

    def expect_client(self) -> None:
        """Let what servers ask outside of calls wait for the only client of this process (G9)."""
        ...

    def expect_clients_of_user(self) -> None:
        """Let servers mean all clients together, which are one user's, where nothing says which of them (G12)."""
        ...

    def introduce_client(self, name: str, capabilities: Mapping[str, Any], *, modern: bool) -> None:
        """Note what a client can do before it is there: servers are told, where they have it for their only client.

        Args:
            name: Its connection, as ``PoolUser.client`` has it; of a process with one client it is no matter which.
            capabilities: As they stand on the wire.
            modern: Whether it is of the era without a handshake.
        """
        ...

    def meet_client(self, name: str, client: Client | None) -> None:
        """Let that client answer outside of calls; None where it can be asked during calls alone."""
        ...

    def forget_client(self, name: str) -> None:
        """Note that the connection of a client has ended."""
        ...

    def tell_servers(self, name: str, method: str, params: JsonObject) -> None:
        """Pass a notification of that client on to those of its servers that run."""
        ...


@runtime_checkable
class ScopedSource(Protocol):
    """A source that keeps objects or connections for each scope of calls (G9)."""

    async def end_scope(self, scope: str) -> None:
        """Close what a scope has, once nothing uses it any longer; a call under the same scope begins again."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What the manifest of a plugin that is code of this process is stored under (X1).

    Attributes:
        subject: A digest of what the configuration says of the plugin, overrides included.
        code: A digest of its files and its package's version; a manifest of other code counts until it answers.
    """

    subject: str
    code: str

    @property
    def text(self) -> str:
        """Return the text under which the manifest is stored."""
        return f"{self.subject}:{self.code}"


@runtime_checkable
class CodeSource(Protocol):
    """A source whose plugins are code of this process: what it looks like shows whether a manifest still counts."""

    def code_fingerprint(self, spec: PluginSpec, overrides: JsonObject) -> Fingerprint | None:
        """Return under which fingerprint the manifest of a plugin is stored; nothing is imported for it.

        It is that of the code as it was imported, else as it is now; None where no manifest is to be stored.
        """
        ...
