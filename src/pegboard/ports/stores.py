"""What outlives a process: sessions, switches, manifests, pins, the audit trail, remembered use."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, NamedTuple, Protocol

from pegboard.core.access.pins import Pin, PinName, ServerPins
from pegboard.core.access.settings.own_settings import OwnSetting, OwnSettings
from pegboard.core.access.switches import Pauses
from pegboard.core.model.tools import Manifest
from pegboard.ports.approvals import ApprovalStore
from pegboard.ports.ranking import UseStore
from pegboard.ports.replicas import ReplicaStore
from pegboard.ports.requests import AuditRecord, RequestStore, SessionKey
from pegboard.ports.sealed import SealedStore
from pegboard.ports.store_health import PendingCount


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredState:
    """A stored state: JSON text, a version that is never used twice, seconds since the epoch."""

    text: str
    version: int
    updated_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """A change of one session's state: the new text, None to remove it, and the version that was read, 0 for none."""

    key: SessionKey
    text: str | None
    expected: int


class Unread(Enum):
    """The value that says that something has to be read."""

    UNREAD = "unread"


UNREAD: Final = Unread.UNREAD


class SessionStore(Protocol):
    """The states of sessions; writers compare and swap (S2). Reading and writing raise ``StoreError``."""

    def known_state(self, key: SessionKey) -> StoredState | Unread | None:
        """Return what :meth:`load` would, ``UNREAD`` where something has to be read for it; it waits for nothing."""
        ...

    async def load(self, key: SessionKey) -> StoredState | None:
        """Return the state of a session, None where none is stored."""
        ...

    async def save(
        self, key: SessionKey, text: str | None, *, expected: int, audit: Sequence[AuditRecord] = ()
    ) -> int | None:
        """Store the text and its audit records, if the stored version is still ``expected``.

        Args:
            key: Whose state it is.
            text: The state; None removes it.
            expected: The version that was read; 0 where none was stored.
            audit: Records of this change, stored in the same transaction or not at all.

        Returns:
            The new version (0 after a removal), or None if another writer was first: then nothing is stored.
            The change survives kill -9 once this returns (S2).

        Raises:
            StoreError: It cannot be written; ``StoreBusyError`` where others kept the store locked.
        """
        ...

    async def save_together(
        self, changes: Sequence[StateChange], *, audit: Sequence[AuditRecord] = ()
    ) -> Sequence[int] | None:
        """Store states of different sessions in one transaction, as ``save`` does: all of them or none."""
        ...

    async def sessions(
        self, *, principal: str | None = None, agent: str | None = None
    ) -> Sequence[tuple[SessionKey, StoredState]]:
        """Return what is stored, newest change first."""
        ...


class SessionDataStore(Protocol):
    """What plugins keep for a session, as JSON texts by name; the newest value of each name counts."""

    async def session_data(self, key: SessionKey) -> Mapping[str, str]:
        """Return what is kept for a session."""
        ...

    async def keep_session_data(self, key: SessionKey, changes: Mapping[str, str | None]) -> None:
        """Keep some names for a session, None removes one; the others stay."""
        ...

    async def forget_session_data(self, key: SessionKey) -> bool:
        """Remove all that is kept for a session; return whether there was anything."""
        ...


class Unchecked(Enum):
    """The value that says that any stored value is replaced."""

    UNCHECKED = "unchecked"


UNCHECKED: Final = Unchecked.UNCHECKED
ACTIONS_KEPT: Final = 200
"""How many of the newest actions are kept."""


SwitchKind = Literal["switch", "agent_pause", "plugin_pause"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchChange:
    """One stored switch or pause of an agent and what becomes of it.

    Attributes:
        agent: Whose it is.
        name: The name of the switch, or the plugin that is paused; of the pause of an agent nothing.
        value: The boolean, None to remove it; a pause is False, and None resumes.
        expected: The value of before.
        kind: What it is.
    """

    agent: str
    name: str
    value: bool | None
    expected: bool | None
    kind: SwitchKind = "switch"


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchAction:
    """Switches that were set together: the mark of their records, what it was about, when, by whom, and the changes.

    ``subject`` is the switch that was set for every agent of it, the plugin that was paused (nothing for the agents
    themselves), or the mark of an action that it took back.
    """

    mark: str
    subject: str
    at: float
    by: str
    changes: Sequence[SwitchChange]

    @property
    def kind(self) -> SwitchKind:
        """Return what was set: all changes of an action are of one kind."""
        return self.changes[0].kind if self.changes else "switch"


class StoredPermissions(NamedTuple):
    """What was set at run time, by agent; agents without any are excluded.

    ``switches`` are booleans by name, ``principal_switches`` those that count for one principal alone, by principal,
    ``own_settings`` what agents have set for themselves, by principal. ``pins_revision`` is as in ``PinStore``.
    """

    switches: Mapping[str, Mapping[str, bool]]
    principal_switches: Mapping[str, Mapping[str, Mapping[str, bool]]]
    own_settings: Mapping[str, Mapping[str, OwnSettings]]
    pauses: Mapping[str, Pauses]
    pins_revision: Hashable


class PermissionStore(Protocol):
    """Switches and pauses that were set at run time, and what agents have set for themselves (P2, P4, P10)."""

    async def set_switch(
        self,
        agent: str,
        name: str,
        value: bool | None,
        *,
        expected: bool | Unchecked | None = UNCHECKED,
        replaces: Sequence[str] = (),
        principal: str | None = None,
        audit: Sequence[AuditRecord] = (),
    ) -> bool:
        """Store a switch, or remove it, in one transaction with what is recorded of it.

        Args:
            agent: Whose switch it is.
            name: A toolkit, plugin or tool, as the permissions have it.
            value: The boolean; None removes the stored one.
            expected: The boolean that was read, None where none was stored; ``UNCHECKED`` is any.
            replaces: The names of other switches of the same that are removed with it.
            principal: For whom alone it counts; None is everyone. What the agent has switched off for this principal
                under one of these names is removed with it.
            audit: The records of the change.

        Returns:
            Whether it is stored: what was stored was still as expected; else nothing is.
        """
        ...

    async def set_together(self, action: SwitchAction, *, audit: Sequence[AuditRecord] = ()) -> bool:
        """Store switches of any number of agents with their action; return whether every one was as expected."""
        ...

    async def switch_actions(self) -> Sequence[SwitchAction]:
        """Return the newest ``ACTIONS_KEPT`` actions, the newest first."""
        ...

    async def stored_permissions(self) -> StoredPermissions:
        """Return all that was set at run time, of every agent, read at once."""
        ...

    async def set_own(
        self,
        agent: str,
        principal: str,
        changes: Mapping[OwnSetting, str | None],
        *,
        audit: Sequence[AuditRecord] = (),
    ) -> None:
        """Store what an agent sets for itself for one principal, in one transaction with its records.

        Of ``changes`` None removes a setting; other values are JSON.
        """
        ...


class ManifestStore(Protocol):
    """The manifests of servers and plugins, so that lists need nothing started (G8)."""

    async def manifest(self, plugin: str, fingerprint: str, scope: str = "") -> Manifest | None:
        """Return the manifest that was stored under a plugin and the fingerprint of its specification.

        With a scope it is what the connections of that scope list besides tools.
        """
        ...

    async def newest_manifest(self, plugin: str, beginning: str) -> Manifest | None:
        """Return the newest manifest that can be read under a fingerprint with this beginning."""
        ...

    async def keep_manifest(self, plugin: str, fingerprint: str, manifest: Manifest, scope: str = "") -> None:
        """Store a manifest in place of an older one."""
        ...


class PinChange(NamedTuple):
    """A pin to be stored: with the text of the definition that counts, or None to keep the text."""

    pin: Pin
    definition: str | None = None


class PinStore(Protocol):
    """Which definitions of a server's tools count, under the server's name alone (A4, G6).

    A changed command line, token or address is still the same name: it brings no trust of its own.
    Every change counts in ``ChangeToken.permissions``.
    """

    async def pins_revision(self) -> Hashable:
        """Return what differs after every change of a pin by any process."""
        ...

    async def pins(self) -> Mapping[str, ServerPins]:
        """Return the pins of every server that has been seen, without the definitions."""
        ...

    async def pinned_definitions(self, plugin: str, names: Collection[PinName]) -> Mapping[PinName, str]:
        """Return the definitions that count, as canonical JSON."""
        ...

    async def change_pins(
        self,
        plugin: str,
        changes: Sequence[PinChange],
        *,
        expected: int | None,
        version: int,
        anew: bool = False,
        forget: Collection[PinName] = (),
        audit: Sequence[AuditRecord] = (),
    ) -> int | None:
        """Store pins of a server, with their records, in one transaction.

        Args:
            plugin: The server's name.
            changes: The pins.
            expected: The revision of the server's pins that was read; None where nothing was stored.
            version: That of the digests.
            again: Whether these are all pins of the server from now on.
            forget: The pins that are removed.
            audit: The records.

        Returns:
            The new revision; None where what is stored is not as expected, and nothing was changed.
        """
        ...


class GrantStore(Protocol):
    """What each configuration (an absolute path) granted when its last edit was accepted (P10)."""

    async def accepted(self, configuration: str) -> str | None:
        """Return what a configuration grants, as it was accepted last."""
        ...

    async def accept(
        self, configuration: str, text: str, *, expected: str | None, audit: Sequence[AuditRecord] = ()
    ) -> bool:
        """Store what a configuration grants, if the text that is stored is still as expected; return whether.

        It counts in ``ChangeToken.permissions``.
        """
        ...


class ConfigurationText(NamedTuple):
    """A text that a configuration had: since when (seconds since the epoch), who has saved it, and what that did.

    ``digest`` is that of the file; in ``text`` every secret is a mark.
    """

    number: int
    at: float
    by: str
    what: str
    digest: str
    text: str


class ConfigurationTextStore(Protocol):
    """The newest texts of each configuration (an absolute path)."""

    async def note_configuration(
        self, configuration: str, *, at: float, by: str, what: str, digest: str, text: str, keep: int
    ) -> None:
        """Keep a text where it is not the newest, and of the others the newest ``keep``; raises ``StoreError``."""
        ...

    async def configuration_texts(self, configuration: str) -> Sequence[ConfigurationText]:
        """Return the texts of a configuration, the newest first; raises ``StoreError``."""
        ...


class ChangeToken(NamedTuple):
    """What a store is at: equal tokens mean that nothing was changed between them.

    ``states`` differs after every change of a state, switch or pin by any process, ``permissions`` only after
    one of a switch or pin. ``others`` differs after anything else that another process has stored, where a store can
    tell that from a change of a state.
    """

    states: Hashable
    permissions: Hashable
    others: Hashable = None


class Store(
    SessionStore,
    SessionDataStore,
    PermissionStore,
    ApprovalStore,
    ManifestStore,
    PinStore,
    GrantStore,
    ConfigurationTextStore,
    RequestStore,
    UseStore,
    SealedStore,
    ReplicaStore,
    Protocol,
):
    """Everything that outlives a process, in one place."""

    @property
    def pending(self) -> PendingCount:
        """Return how many records and counts are not written yet."""
        ...

    async def remove_old(self) -> None:
        """Remove the records and counts whose time is over, which goes on by itself beside what is written.

        Raises:
            StoreError: Nothing can be written.
        """
        ...

    async def change_token(self, since: float | None = None) -> ChangeToken:
        """Return what the store is at; cheap enough for every call.

        Args:
            since: What other processes had stored by then (``time.monotonic()``) is enough; None is now.
        """
        ...

    def known_token(self, since: float) -> ChangeToken | None:
        """Return what :meth:`change_token` would, where nothing has to be read for it: it waits for nothing."""
        ...

    def certain_until(self) -> float:
        """Return until when it is certain that what :meth:`known_token` says is so (``time.monotonic()``).

        A server that falls silent says nothing of changes either; without a server it is infinite.
        """
        ...

    async def changed(self, token: ChangeToken, timeout: float) -> None:
        """Return as soon as another process may have changed something since a token, at the latest after a while."""
        ...

    async def catch_up(self) -> bool:
        """Take up all that other processes had stored by now, also what was not heard of yet.

        It is called before something is refused, or found to need nothing: what was done elsewhere counts (G14).

        Returns:
            Whether something was taken up; what is read from now on has it.
        """
        ...

    async def open(self) -> None:
        """Make the store ready.

        Raises:
            StoreError: It cannot be opened; ``StoreSchemaError`` where it is damaged, newer or not ours.
        """
        ...

    async def aclose(self) -> None:
        """Write what is still to be written, and close the store."""
        ...
