"""What outlives a process: sessions, switches, manifests, pins, the audit trail, remembered use."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, Protocol

from pegboard.core.access.pins import Pin, ServerPins
from pegboard.core.model.tools import Manifest
from pegboard.ports.approvals import ApprovalStore
from pegboard.ports.audit_trail import AuditLog, AuditRecord, NumberedRecord
from pegboard.ports.past_uses import UseStore
from pegboard.ports.replicas import ReplicaStore
from pegboard.ports.sealed import SealedStore
from pegboard.ports.tokens import BillStore
from pegboard.ports.usage import UsageStore


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKey:
    """The name of one session's state (S1)."""

    principal: str
    agent: str
    session: str


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
    """The states of sessions; writers compare and swap (S2)."""

    def known_state(self, key: SessionKey) -> StoredState | Unread | None:
        """Return what :meth:`load` would, where nothing has to be read for it: it waits for nothing.

        Args:
            key: Whose state it is.

        Returns:
            The state, None where none is stored; ``UNREAD`` where it has to be read.
        """
        ...

    async def load(self, key: SessionKey) -> StoredState | None:
        """Return the state of a session.

        Args:
            key: Whose state it is.

        Returns:
            The state with its version, or None where none is stored.

        Raises:
            StoreError: It cannot be read.
        """
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
        """Store several states and their audit records in one transaction, if all are of the expected versions.

        Args:
            changes: Those of different sessions.
            audit: Records of these changes, stored in the same transaction or not at all.

        Returns:
            The new versions, in order, as of ``save``; None if another writer was first anywhere: then nothing is
            stored.

        Raises:
            StoreError: It cannot be written; ``StoreBusyError`` where others kept the store locked.
        """
        ...

    async def sessions(
        self, *, principal: str | None = None, agent: str | None = None
    ) -> Sequence[tuple[SessionKey, StoredState]]:
        """Return what is stored, newest change first.

        Args:
            principal: Only the sessions of this one.
            agent: Only the sessions of this one.

        Returns:
            Keys and states.

        Raises:
            StoreError: It cannot be read.
        """
        ...


class SessionDataStore(Protocol):
    """What plugins keep for a session, as JSON texts by name; the newest value of each name counts."""

    async def session_data(self, key: SessionKey) -> Mapping[str, str]:
        """Return what is kept for a session.

        Args:
            key: The session.

        Returns:
            The texts, by name.

        Raises:
            StoreError: It cannot be read.
        """
        ...

    async def keep_session_data(self, key: SessionKey, changes: Mapping[str, str | None]) -> None:
        """Keep some names for a session; the others stay as they are.

        Args:
            key: The session.
            changes: The new texts, by name; None removes a name.

        Raises:
            StoreError: It cannot be written.
        """
        ...

    async def forget_session_data(self, key: SessionKey) -> bool:
        """Remove everything that is kept for a session.

        Args:
            key: The session.

        Returns:
            Whether there was anything.

        Raises:
            StoreError: It cannot be written.
        """
        ...


class Unchecked(Enum):
    """The value that says that whatever is stored is replaced."""

    UNCHECKED = "unchecked"


UNCHECKED: Final = Unchecked.UNCHECKED
ACTIONS_KEPT: Final = 200
"""How many of the newest actions are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchChange:
    """One stored switch of an agent and what becomes of it: the boolean, None to remove it, and that of before."""

    agent: str
    name: str
    value: bool | None
    expected: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchAction:
    """Switches that were set together: the mark of their records, what it was about, when, by whom, and the changes.

    ``subject`` is the switch that was set for every agent of it, or the mark of an action that it took back.
    """

    mark: str
    subject: str
    at: float
    by: str
    changes: Sequence[SwitchChange]


class PermissionStore(Protocol):
    """The switches that were set at run time (P2)."""

    async def set_together(self, action: SwitchAction, *, audit: Sequence[AuditRecord] = ()) -> bool:
        """Store switches of any number of agents with the action and what is recorded of it, in one transaction.

        Args:
            action: What is set, and what each was before.
            audit: The records.

        Returns:
            Whether it is stored: every switch was still as expected; else nothing is.

        Raises:
            StoreError: It cannot be written.
        """
        ...

    async def switch_actions(self) -> Sequence[SwitchAction]:
        """Return the newest 200 actions, the newest first.

        Raises:
            StoreError: They cannot be read.
        """
        ...

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
            principal: For whom alone it counts; None is everybody.
            audit: The records of the change.

        Returns:
            Whether it is stored: what is stored is still as expected; else nothing is.

        Raises:
            StoreError: It cannot be written.
        """
        ...

    async def all_switches(self) -> Mapping[str, Mapping[str, bool]]:
        """Return the stored switches.

        Returns:
            Booleans by agent and name.

        Raises:
            StoreError: It cannot be read.
        """
        ...

    async def principal_switches(self) -> Mapping[str, Mapping[str, Mapping[str, bool]]]:
        """Return the stored switches that count for one principal alone.

        Returns:
            Booleans by agent, principal and name.

        Raises:
            StoreError: It cannot be read.
        """
        ...


class ManifestStore(Protocol):
    """The manifests of servers and plugins, so that lists need nothing started (G8)."""

    async def manifest(self, plugin: str, fingerprint: str) -> Manifest | None:
        """Return the stored manifest of a plugin.

        Args:
            plugin: Its name.
            fingerprint: That of its specification, from ``Source.fingerprint``.

        Returns:
            The manifest that was stored under both, or None.

        Raises:
            StoreError: It cannot be read.
        """
        ...

    async def newest_manifest(self, plugin: str, beginning: str) -> Manifest | None:
        """Return the manifest of a plugin that was stored last, of those that can be read.

        Args:
            plugin: Its name.
            beginning: How the fingerprint begins.

        Returns:
            The newest one under such a fingerprint, or None.

        Raises:
            StoreError: None can be read.
        """
        ...

    async def keep_manifest(self, plugin: str, fingerprint: str, manifest: Manifest) -> None:
        """Store a manifest in place of an older one.

        Args:
            plugin: Its name.
            fingerprint: That of its specification.
            manifest: What the source described.

        Raises:
            StoreError: It cannot be written.
        """
        ...


class PinChange(NamedTuple):
    """A pin of one tool to be stored: with the text of the definition that counts, or None to keep the text."""

    pin: Pin
    definition: str | None = None


class PinStore(Protocol):
    """Which definitions of a server's tools count, under the server's name alone (A4, G6).

    A changed command line, token or address is still the same name: it brings no trust of its own.
    Every change counts in ``ChangeToken.permissions``.
    """

    async def pins_revision(self) -> Hashable:
        """Return what differs after every change of a pin by any process.

        Raises:
            StoreError: It cannot be read.
        """
        ...

    async def pins(self) -> Mapping[str, ServerPins]:
        """Return the pins of every server that has been seen, without the definitions.

        Raises:
            StoreError: They cannot be read.
        """
        ...

    async def pinned_definitions(self, plugin: str, tools: Collection[str]) -> Mapping[str, str]:
        """Return the definitions that count, as canonical JSON.

        Args:
            plugin: The server's name.
            tools: The own names of its tools.

        Returns:
            The texts by the names of the tools that have one.

        Raises:
            StoreError: They cannot be read.
        """
        ...

    async def change_pins(
        self,
        plugin: str,
        changes: Sequence[PinChange],
        *,
        expected: int | None,
        version: int,
        anew: bool = False,
        forget: Collection[str] = (),
        audit: Sequence[AuditRecord] = (),
    ) -> int | None:
        """Store pins of a server, with their records, in one transaction.

        Args:
            plugin: The server's name.
            changes: The pins.
            expected: The revision of the server's pins that was read; None where nothing was stored.
            version: That of the digests.
            anew: Whether these are all pins of the server from now on.
            forget: The tools whose pins are removed.
            audit: The records.

        Returns:
            The new revision; None where what is stored is not as expected any more, and nothing was changed.

        Raises:
            StoreError: They cannot be written.
        """
        ...


class GrantStore(Protocol):
    """What each configuration granted when its last edit was accepted (P10)."""

    async def accepted(self, configuration: str) -> str | None:
        """Return what a configuration grants, as it was accepted last.

        Args:
            configuration: Its absolute path.

        Returns:
            The text that was stored, or None where none was.

        Raises:
            StoreError: It cannot be read.
        """
        ...

    async def accept(
        self, configuration: str, text: str, *, expected: str | None, audit: Sequence[AuditRecord] = ()
    ) -> bool:
        """Store what a configuration grants, with the records of what that changes, in one transaction.

        It counts in ``ChangeToken.permissions``.

        Args:
            configuration: Its absolute path.
            text: What it grants.
            expected: The text that was read; None where none was stored.
            audit: The records.

        Returns:
            Whether it is stored: what is stored was still as expected; else nothing is.

        Raises:
            StoreError: It cannot be written.
        """
        ...


class ChangeToken(NamedTuple):
    """What a store stood at: equal tokens mean that nothing was changed between them.

    ``states`` differs after every change of a state, switch or pin by any process, ``permissions`` only after
    one of a switch or pin. ``others`` differs after anything else that another process has stored, where a store can
    tell that from a change of a state.
    """

    states: Hashable
    permissions: Hashable
    others: Hashable = None


class CallLog(Protocol):
    """What is kept of calls: each under the number of its record, no longer than that is there."""

    async def numbered(self, number: int) -> AuditRecord | None:
        """Return a record of the audit trail.

        Args:
            number: Its number.

        Returns:
            The record, None where there is none, or one that cannot be read.

        Raises:
            StoreError: It cannot be read.
        """
        ...

    async def call_details(self, number: int) -> str | None:
        """Return what is kept of a call beside its record.

        Args:
            number: The number of its record.

        Returns:
            The text, None where nothing is kept, or not any more.

        Raises:
            StoreError: It cannot be read.
        """
        ...

    async def session_trail(
        self,
        key: SessionKey,
        *,
        before: int | None = None,
        after: int | None = None,
        kinds: Collection[str] = (),
        limit: int = 100,
    ) -> Sequence[NumberedRecord]:
        """Return records of one session, found by an index.

        Args:
            key: Whose session it is.
            before: Only those with a smaller number, newest first; None begins with the newest.
            after: Only those with a greater number, oldest first, instead.
            kinds: Only records of these kinds; none is all.
            limit: How many at most.

        Returns:
            The records that can be read.

        Raises:
            StoreError: They cannot be read.
        """
        ...


class Store(
    SessionStore,
    SessionDataStore,
    PermissionStore,
    ApprovalStore,
    ManifestStore,
    PinStore,
    GrantStore,
    AuditLog,
    CallLog,
    UseStore,
    BillStore,
    UsageStore,
    SealedStore,
    ReplicaStore,
    Protocol,
):
    """Everything that outlives a process, in one place."""

    async def change_token(self, since: float | None = None) -> ChangeToken:
        """Return what the store stands at; cheap enough for every call.

        Args:
            since: What other processes had stored by then (``time.monotonic()``) is enough; None is now.

        Returns:
            The token.

        Raises:
            StoreError: It cannot be read.
        """
        ...

    async def changed(self, token: ChangeToken, timeout: float) -> None:
        """Return as soon as another process may have changed something, at the latest after some seconds.

        Args:
            token: What the store was last seen to stand at.
            timeout: For how many seconds it is waited.
        """
        ...

    async def catch_up(self) -> bool:
        """Take up all that other processes had stored by now, also what was not heard of yet.

        Whoever refuses something, or finds nothing to do, asks before: what was done elsewhere counts (G14).

        Returns:
            Whether something was taken up; what is read from now on has it.

        Raises:
            StoreError: It cannot be read.
        """
        ...

    def known_token(self, since: float) -> ChangeToken | None:
        """Return what :meth:`change_token` would, where nothing has to be read for it: it waits for nothing.

        Args:
            since: What other processes had stored by then (``time.monotonic()``) is enough.

        Returns:
            The token; None where it has to be read, or the store is not open.
        """
        ...

    async def open(self) -> None:
        """Make the store ready.

        Raises:
            StoreError: It cannot be opened; ``StoreSchemaError`` where it is damaged or newer.
        """
        ...

    async def aclose(self) -> None:
        """Write what is still to be written, and close the store."""
        ...
