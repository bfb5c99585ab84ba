"""What the engine needs from the outside, as Protocols; adapters implement them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol, runtime_checkable

from pegboard.core.access.listed_items import ListKind
from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import CallResult, JsonObject, Manifest, Tool
from pegboard.ports.clients import LOG_LEVELS, AskRefusedError, CallContext, Client, Listener, Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKey:
    """Name one session's state (S1)."""

    principal: str
    agent: str
    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredState:
    """Hold a stored state: JSON text, a version that is never used twice, seconds since the epoch."""

    text: str
    version: int
    updated_at: float = 0.0


class SessionStore(Protocol):
    """Keep the state of sessions; writers compare and swap (S2)."""

    async def load(self, key: SessionKey) -> StoredState | None:
        """Return the stored state, or None where there is none."""
        ...

    async def save(
        self, key: SessionKey, text: str | None, *, expected: int, audit: Sequence[AuditRecord] = ()
    ) -> int | None:
        """Store the text, and what the audit trail says of it, if the stored version is still ``expected``.

        Args:
            key: whose state it is.
            text: the state; None removes it.
            expected: the version that was read; 0 where none was stored.
            audit: records of this change, stored in the same transaction or not at all.

        Returns:
            The new version (0 after a removal), or None if another writer was first: then nothing is stored.
            The change survives kill -9 once this returns (S2).
        """
        ...

    async def sessions(
        self, *, principal: str | None = None, agent: str | None = None
    ) -> Sequence[tuple[SessionKey, StoredState]]:
        """Return what is stored, newest change first."""
        ...


class PermissionStore(Protocol):
    """Keep the switches that were set at run time (P2)."""

    async def set_switch(self, agent: str, name: str, value: bool | None) -> None:
        """Store a boolean, or remove it (None)."""
        ...

    async def all_switches(self) -> Mapping[str, Mapping[str, bool]]:
        """Return the stored booleans of every agent."""
        ...


class ManifestStore(Protocol):
    """Keep what servers and plugins said of themselves, so that lists need nothing started (G8)."""

    async def manifest(self, plugin: str, fingerprint: str) -> Manifest | None:
        """Return the stored manifest of a plugin whose specification has this fingerprint."""
        ...

    async def keep_manifest(self, plugin: str, fingerprint: str, manifest: Manifest) -> None:
        """Store a manifest in place of an older one."""
        ...


class ReadOnlyTrustStore(Protocol):
    """Keep which tools of a server count as read-only, under the server's name alone (G6).

    A changed command line, token or address is still the same name: it brings no trust of its own.
    Every change counts in ``ChangeToken.permissions``.
    """

    async def claims(self) -> Mapping[str, frozenset[str]]:
        """Return the tools that count, of every server that has been seen."""
        ...

    async def keep_first_claims(self, plugin: str, tools: Iterable[str]) -> None:
        """Store what counts for a server of which nothing is stored; change nothing where something is."""
        ...

    async def change_claims(self, plugin: str, *, accept: Iterable[str] = (), retract: Iterable[str] = ()) -> None:
        """Add tools to those that count, and take others away."""
        ...


class AuditRecord(NamedTuple):
    """Hold one line of the audit trail (X4); ``arguments`` is a keyed digest, never the arguments.

    ``kind`` is load, unload, evict, deny, call, read, prompt, permission …; ``duration`` is in milliseconds.
    """

    at: datetime
    kind: str
    principal: str
    agent: str
    session: str
    turn: int
    subject: str
    decision: str
    reason: str = ""
    duration: float | None = None
    outcome: str = ""
    arguments: str = ""


class AuditLog(Protocol):
    """Keep the audit trail: decisions at once, calls within 50 ms (S2)."""

    async def record(self, *entries: AuditRecord) -> None:
        """Store decisions, in order, before returning."""
        ...

    def record_later(self, entry: AuditRecord) -> None:
        """Store a call within 50 ms, in a batch."""
        ...

    async def entries(
        self,
        *,
        principal: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        kind: str | None = None,
        limit: int = 100,
    ) -> Sequence[AuditRecord]:
        """Return the newest entries first."""
        ...

    async def digest_key(self) -> bytes:
        """Return the secret with which arguments are digested; made once, kept in the store."""
        ...


class ChangeToken(NamedTuple):
    """What a store stood at: equal tokens mean that nothing was changed between them.

    ``states`` differs after every change of a state, switch or read-only claim by any process, ``permissions``
    only after one of a switch or claim.
    """

    states: Hashable
    permissions: Hashable


class Store(SessionStore, PermissionStore, ManifestStore, ReadOnlyTrustStore, AuditLog, Protocol):
    """Keep everything that outlives a process in one place."""

    async def change_token(self, since: float | None = None) -> ChangeToken:
        """Return what the store stands at; cheap enough for every call.

        Args:
            since: what other processes had stored by then (``time.monotonic()``) is enough; None is now.
        """
        ...

    async def open(self) -> None:
        """Make the store ready; raises ``StoreError`` where it cannot be."""
        ...

    async def aclose(self) -> None:
        """Write what is still to be written and let go."""
        ...


class Source(Protocol):
    """Bring plugins of one kind in, and run their tools."""

    def handles(self, spec: PluginSpec) -> bool:
        """Return whether this source brings in plugins of this kind."""
        ...

    def fingerprint(self, spec: PluginSpec) -> str:
        """Return a text that changes when a stored manifest no longer counts; "" for never stored."""
        ...

    async def describe(self, spec: PluginSpec, overrides: JsonObject) -> Manifest:
        """Start or construct the plugin and return what it offers.

        Raises ``ToolUnavailableError`` with what to do, or ``UpstreamError`` (P6).
        """
        ...

    async def call(
        self,
        spec: PluginSpec,
        overrides: JsonObject,
        tool: Tool,
        arguments: JsonObject,
        context: CallContext,
    ) -> CallResult:
        """Run one tool; arguments are validated already.

        A failure of the tool itself is a result with ``is_error``; raises ``ToolUnavailableError``
        or ``UpstreamError`` where nothing could run or nothing came back.
        """
        ...

    def on_changed(self, callback: Callable[[str], None]) -> None:
        """Call back with the name of a plugin whose tools have changed by themselves."""
        ...

    async def aclose(self) -> None:
        """Stop whatever was started."""
        ...


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """Hold one answer of a search; ``score`` grows with relevance, between 0 and 1."""

    tool: Tool
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RankContext:
    """Hold what the host knows of the conversation (P3)."""

    messages: tuple[str, ...] = ()
    used: tuple[str, ...] = ()


class Ranker(Protocol):
    """Order tools by how well they answer what is needed."""

    def rank(
        self,
        queries: Sequence[str],
        permitted: Sequence[Tool],
        context: RankContext,
        *,
        limit: int,
    ) -> list[Ranked]:
        """Return the best tools, best first, with statistics of only the permitted ones (P3).

        An exact name comes first. ``permitted`` is the same object as long as nothing changed, so
        that an index over it can be kept.
        """
        ...


class FocusRules(Protocol):
    """Hold messages against focus rules (F3)."""

    def matches(self, pattern: str, message: str) -> bool:
        """Return whether the regular expression is found in the message; takes bounded time."""
        ...

    async def ask(self, hook: str, message: str, tools: Sequence[str]) -> object:
        """Return what the function ``module:function`` answers to the message and the visible tools."""
        ...


class TokenCounter(Protocol):
    """Count tokens with a real tokenizer (F4)."""

    def count(self, text: str) -> int:
        """Return how many tokens the text takes."""
        ...


class ArgumentValidator(Protocol):
    """Check the arguments of a call against the tool's schema (X2)."""

    def problems(self, tool: Tool, arguments: JsonObject) -> list[str]:
        """Return one sentence per problem, naming the argument and what was expected."""
        ...


class EventSink(Protocol):
    """Take what happened: loaded, unloaded, evicted, denied, called, turn_ended."""

    def emit(self, name: str, record: JsonObject) -> None:
        """Take one event; must not raise and must not wait."""
        ...


class Clock(Protocol):
    """Tell the time."""

    def now(self) -> datetime:
        """Return the time of day, aware of its zone."""
        ...

    def monotonic(self) -> float:
        """Return seconds that only grow."""
        ...


__all__ = [
    "LOG_LEVELS",
    "ArgumentValidator",
    "AskRefusedError",
    "AuditLog",
    "AuditRecord",
    "CallContext",
    "ChangeToken",
    "Client",
    "Clock",
    "EventSink",
    "FocusRules",
    "HasResources",
    "Listener",
    "ManifestStore",
    "PermissionStore",
    "Progress",
    "RankContext",
    "Ranked",
    "Ranker",
    "ReadOnlyTrustStore",
    "ResourceSource",
    "SessionKey",
    "SessionStore",
    "Source",
    "Store",
    "StoredState",
    "TokenCounter",
]
