"""A store that ends with the process: for tests, for one-shot commands and for `store: memory:`."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, cast

from pegboard.core.access.pins import ServerPins
from pegboard.core.model.tools import Manifest
from pegboard.ports import (
    ACTIONS_KEPT,
    BILL_DAYS,
    UNCHECKED,
    UNREAD,
    USE_LIFETIME,
    USES_KEPT,
    AuditRecord,
    BillCounts,
    BillPage,
    BillRecord,
    BillSums,
    ChangeToken,
    PinChange,
    SessionKey,
    StateChange,
    StoredState,
    SwitchAction,
    Unchecked,
    Unread,
    UsageRecord,
    UsageSums,
    UsageUnit,
    UseRecord,
)
from pegboard.ports.tokens import greatest_of, summed
from pegboard.stores.memory.memory_approvals import MemoryApprovals
from pegboard.stores.memory.memory_replicas import MemoryReplicas
from pegboard.stores.memory.memory_sealed import MemorySealed
from pegboard.stores.memory.memory_usage import MemoryUsage

if TYPE_CHECKING:
    from pegboard.ports import BillName, SealedKind, SealedText
    from pegboard.ports.replicas import Replica
    from pegboard.ports.usage import UsageName


class MemoryStore(MemoryApprovals):
    """A store in the memory of this process: nothing is shared and nothing survives it.

    ``audit_keep`` is how many of the newest audit entries are kept.
    """

    __slots__ = (
        "_accepted", "_actions", "_bill", "_changes", "_data", "_definitions", "_digest_key", "_manifests", "_personal",
        "_pin_changes", "_pins", "_replicas", "_revision", "_sealed", "_states", "_switches", "_usage", "_uses",
        "_version",
    )  # fmt: skip

    def __init__(self, *, audit_keep: int = 100_000) -> None:
        super().__init__(audit_keep=audit_keep)
        self._states: dict[SessionKey, StoredState] = {}
        self._data: dict[SessionKey, dict[str, str]] = {}
        self._switches: dict[str, dict[str, bool]] = {}
        self._actions: tuple[SwitchAction, ...] = ()
        self._personal: dict[str, dict[str, dict[str, bool]]] = {}
        self._manifests: dict[tuple[str, str], Manifest] = {}
        self._accepted: dict[str, str] = {}
        self._pins: dict[str, ServerPins] = {}
        self._definitions: dict[str, dict[str, str]] = {}
        self._pin_changes = 0
        self._bill: dict[tuple[str, str, str, str], BillCounts] = {}
        self._usage = MemoryUsage()
        self._sealed = MemorySealed()
        self._replicas = MemoryReplicas()
        self._uses: dict[tuple[str, str], tuple[UseRecord, ...]] = {}
        self._digest_key = secrets.token_bytes(32)
        self._version = 0
        self._revision = 0
        self._changes = 0

    async def open(self) -> None:
        """Do nothing: memory is always ready."""

    async def aclose(self) -> None:
        """Do nothing: there is nothing to write."""

    async def sealed(self, kind: SealedKind, key: str) -> SealedText | None:
        """Return a secret, or None."""
        return self._sealed.get(kind, key)

    async def all_sealed(self, kind: SealedKind) -> Sequence[SealedText]:
        """Return every secret of a kind that has not expired."""
        return self._sealed.all(kind)

    async def seal(
        self,
        kind: SealedKind,
        key: str,
        text: str | None,
        *,
        expected: int | None,
        expires_at: float | None = None,
        audit: Sequence[AuditRecord] = (),
    ) -> int | None:
        """Store a secret, or remove it, if its version is still the expected one; return the new one or None."""
        version = self._sealed.put(kind, key, text, expected=expected, expires_at=expires_at)
        if version is not None:
            self._append(audit)
        return version

    async def take_lease(self, name: str, holder: str, *, seconds: float) -> bool:
        """Take a lease that nobody else has; return whether the holder has it."""
        return self._sealed.take_lease(name, holder, seconds=seconds)

    async def end_lease(self, name: str, holder: str) -> None:
        """Give a lease back, if it is still this holder's."""
        self._sealed.end_lease(name, holder)

    async def lease_holder(self, name: str) -> str | None:
        """Return who has a lease now, or None."""
        return self._sealed.lease_holder(name)

    async def announce(self, replica: Replica, *, seconds: float) -> None:
        """Note that a replica lives, for some seconds."""
        self._replicas.announce(replica, seconds=seconds)

    async def withdraw(self, replica_id: str) -> None:
        """Remove what a replica announced."""
        self._replicas.withdraw(replica_id)

    async def replicas(self) -> Sequence[Replica]:
        """Return the replicas whose announcement counts still, by id."""
        return self._replicas.all()

    async def now(self) -> float:
        """Return the time of this process."""
        return time.time()

    def clock(self) -> float:
        """Return the time of this machine."""
        return time.time()

    async def replica_key(self) -> bytes:
        """Return the secret of the replicas."""
        return self._replicas.key

    async def session_data(self, key: SessionKey) -> Mapping[str, str]:
        """Return what plugins keep for a session."""
        return dict(self._data.get(key, {}))

    async def keep_session_data(self, key: SessionKey, changes: Mapping[str, str | None]) -> None:
        """Keep some names for a session; None removes one."""
        kept = {**self._data.get(key, {}), **changes}
        self._data[key] = {name: text for name, text in kept.items() if text is not None}

    async def forget_session_data(self, key: SessionKey) -> bool:
        """Remove what plugins keep for a session; return whether there was anything."""
        return bool(self._data.pop(key, None))

    def known_state(self, key: SessionKey) -> Unread:  # noqa: ARG002 - reading it waits for nothing
        """Return that it has to be read."""
        return UNREAD

    async def load(self, key: SessionKey) -> StoredState | None:
        """Return the stored state, or None where there is none."""
        return self._states.get(key)

    async def save(
        self, key: SessionKey, text: str | None, *, expected: int, audit: Sequence[AuditRecord] = ()
    ) -> int | None:
        """Store the text if the stored version is still ``expected``; return the new version or None (S2)."""
        stored = self._states.get(key)
        if (stored.version if stored else 0) != expected:
            return None
        self._changes += 1
        self._append(audit)
        if text is None:
            self._states.pop(key, None)
            return 0
        self._version += 1
        self._states[key] = StoredState(text=text, version=self._version, updated_at=time.time())
        return self._version

    async def save_together(
        self, changes: Sequence[StateChange], *, audit: Sequence[AuditRecord] = ()
    ) -> Sequence[int] | None:
        """Store several states if all are of the expected versions; return the new ones or None (S2)."""
        stored = (self._states.get(one.key) for one in changes)
        if any((state.version if state else 0) != one.expected for one, state in zip(changes, stored, strict=True)):
            return None
        versions = [await self.save(one.key, one.text, expected=one.expected) for one in changes]
        self._append(audit)
        return [version or 0 for version in versions]

    async def sessions(
        self, *, principal: str | None = None, agent: str | None = None
    ) -> Sequence[tuple[SessionKey, StoredState]]:
        """Return what is stored, newest change first."""
        found = [
            (key, state)
            for key, state in self._states.items()
            if principal in (None, key.principal) and agent in (None, key.agent)
        ]
        return sorted(found, key=lambda item: item[1].version, reverse=True)

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
        """Store a boolean, or remove it (None), with its records, if what is stored is as expected; return whether."""
        every = self._switches if principal is None else self._personal.setdefault(principal, {})
        if expected is not UNCHECKED and every.get(agent, {}).get(name) is not expected:
            return False
        self._append(audit)
        switches = every.setdefault(agent, {})
        for other in replaces:
            switches.pop(other, None)
        if value is None:
            switches.pop(name, None)
        else:
            switches[name] = value
        if not switches:
            del every[agent]
        self._revision += 1
        self._changes += 1
        return True

    async def set_together(self, action: SwitchAction, *, audit: Sequence[AuditRecord] = ()) -> bool:
        """Store switches with their action and records, if all are as expected; return whether."""
        stored = (self._switches.get(one.agent, {}).get(one.name) for one in action.changes)
        if any(value is not one.expected for value, one in zip(stored, action.changes, strict=True)):
            return False
        for one in action.changes:
            await self.set_switch(one.agent, one.name, one.value)
        self._append(audit)
        self._actions = (action, *self._actions)[:ACTIONS_KEPT]
        return True

    async def switch_actions(self) -> Sequence[SwitchAction]:
        """Return the newest actions first."""
        return self._actions

    async def all_switches(self) -> Mapping[str, Mapping[str, bool]]:
        """Return the stored booleans of every agent."""
        return {agent: dict(switches) for agent, switches in self._switches.items()}

    async def principal_switches(self) -> Mapping[str, Mapping[str, Mapping[str, bool]]]:
        """Return the stored booleans that count for one principal alone, by agent, principal and name."""
        found: dict[str, dict[str, dict[str, bool]]] = {}
        for principal, agents in self._personal.items():
            for agent, switches in agents.items():
                found.setdefault(agent, {})[principal] = dict(switches)
        return found

    async def change_token(self, since: float | None = None) -> ChangeToken:  # noqa: ARG002 - nobody else has this store
        """Return how often anything was changed, and how often a switch or pin was."""
        return ChangeToken(states=self._changes, permissions=self._revision)

    async def changed(self, token: ChangeToken, timeout: float) -> None:  # noqa: ARG002 - nobody else has this store
        """Wait: no other process changes anything."""
        await asyncio.sleep(timeout)

    async def catch_up(self) -> bool:
        """Return that nothing was taken up: no other process changes anything."""
        return False

    def known_token(self, since: float) -> ChangeToken:  # noqa: ARG002 - as above
        """Return the same: nothing has to be read."""
        return ChangeToken(states=self._changes, permissions=self._revision)

    async def manifest(self, plugin: str, fingerprint: str) -> Manifest | None:
        """Return the stored manifest of a plugin whose specification has this fingerprint."""
        return self._manifests.get((plugin, fingerprint))

    async def newest_manifest(self, plugin: str, beginning: str) -> Manifest | None:
        """Return the manifest of a plugin that was stored last under a fingerprint that begins like this."""
        found = (of for of in reversed(self._manifests) if of[0] == plugin and of[1].startswith(beginning))
        return next((self._manifests[of] for of in found), None)

    async def keep_manifest(self, plugin: str, fingerprint: str, manifest: Manifest) -> None:
        """Store a manifest in place of an older one."""
        self._manifests.pop((plugin, fingerprint), None)
        self._manifests[plugin, fingerprint] = manifest

    async def pins_revision(self) -> int:
        """Return how often a pin was changed."""
        return self._pin_changes

    async def pins(self) -> Mapping[str, ServerPins]:
        """Return the pins of every server that has been seen, without the definitions (A4)."""
        return dict(self._pins)

    async def pinned_definitions(self, plugin: str, tools: Collection[str]) -> Mapping[str, str]:
        """Return the definitions that count, as canonical JSON."""
        kept = self._definitions.get(plugin, {})
        return {name: kept[name] for name in tools if name in kept}

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
        """Store pins of a server, with their records, if they are as expected; return the new revision or None."""
        known = self._pins.get(plugin)
        if (known.revision if known is not None else None) != expected:
            return None
        self._append(audit)
        pins = {} if anew or known is None else dict(known.pins)
        texts = {} if anew else self._definitions.setdefault(plugin, {})
        for pin, definition in changes:
            pins[pin.tool] = pin
            if definition is not None:
                texts[pin.tool] = definition
        for name in forget:
            pins.pop(name, None)
            texts.pop(name, None)
        self._pin_changes += 1
        self._definitions[plugin] = texts
        self._pins[plugin] = ServerPins(version, self._pin_changes, pins)
        self._revision += 1
        self._changes += 1
        return self._pin_changes

    async def accepted(self, configuration: str) -> str | None:
        """Return what a configuration grants, as it was accepted last (P10)."""
        return self._accepted.get(configuration)

    async def accept(
        self, configuration: str, text: str, *, expected: str | None, audit: Sequence[AuditRecord] = ()
    ) -> bool:
        """Store what a configuration grants, with its records, if what is stored is as expected; return whether."""
        if self._accepted.get(configuration) != expected:
            return False
        self._append(audit)
        self._accepted[configuration] = text
        self._revision += 1
        self._changes += 1
        return True

    @property
    def lasts(self) -> bool:
        """Return that it ends with the process."""
        return False

    def fetch_counts(self, hand_over: Callable[[], object]) -> bool:  # noqa: ARG002 - no other process serves on
        """Return that counts are not fetched."""
        return False

    def bill_later(self, *records: BillRecord) -> None:
        """Add to the bill; in memory, later is now."""
        for record in records:
            key = record.day, record.principal, record.agent, record.session
            self._bill[key] = self._bill.get(key, BillCounts()).plus(record.counts)
        newest = max((record.day for record in records), default="")
        oldest = (date.fromisoformat(newest) - timedelta(days=BILL_DAYS)).isoformat() if newest else ""
        for key in [key for key in self._bill if key[0] < oldest]:
            del self._bill[key]

    async def bill(
        self,
        *,
        since: str | None = None,
        until: str | None = None,
        principal: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        after: Hashable = None,
        limit: int = 2000,
    ) -> BillPage:
        """Return a part of the bill, the oldest day first."""
        found = sorted(
            BillRecord(*key, counts)
            for key, counts in self._bill.items()
            if (since is None or key[0] >= since)
            and (until is None or key[0] <= until)
            and principal in (None, key[1])
            and agent in (None, key[2])
            and session in (None, key[3])
            and (after is None or key > cast("tuple[str, ...]", after))
        )
        return BillPage(found[:limit], found[limit - 1][:4] if len(found) > limit else None)

    async def bill_sums(
        self,
        *,
        by: Sequence[BillName],
        since: str | None = None,
        until: str | None = None,
        principal: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        agents: Collection[str] | None = None,
        greatest: int | None = None,
    ) -> BillSums:
        """Return sums of the bill."""
        page = await self.bill(
            since=since, until=until, principal=principal, agent=agent, session=session, limit=len(self._bill) + 1
        )
        return greatest_of(summed(by, page.records, agents), greatest)

    def usage_later(self, *records: UsageRecord) -> None:
        """Add to the counts by time; in memory, later is now."""
        self._usage.add(records)

    async def usage(
        self, unit: UsageUnit, *, since: int, until: int, by: Sequence[UsageName], agents: Collection[str] | None = None
    ) -> UsageSums:
        """Return sums over a time."""
        return self._usage.sums(unit, since, until, by, agents)

    async def digest_key(self) -> bytes:
        """Return the secret with which arguments are digested; it ends with the process."""
        return self._digest_key

    def remember_later(self, *uses: UseRecord) -> None:
        """Store uses; in memory, later is now."""
        for use in uses:
            key = use.principal, use.agent
            others = (old for old in self._uses.get(key, ()) if (old.need, old.tool) != (use.need, use.tool))
            self._uses[key] = (*others, use)[-USES_KEPT:]
        oldest = max((use.at for use in uses), default=0.0) - USE_LIFETIME
        for key, kept in tuple(self._uses.items()):
            if any(use.at < oldest for use in kept):
                self._uses[key] = tuple(use for use in kept if use.at >= oldest)

    async def uses(self, principal: str, agent: str) -> Sequence[UseRecord]:
        """Return what is remembered, the newest last."""
        return self._uses.get((principal, agent), ())

    async def forget_uses(self, *, principal: str | None = None, agent: str | None = None) -> int:
        """Remove what is remembered; return how many there were."""
        gone = [key for key in self._uses if principal in (None, key[0]) and agent in (None, key[1])]
        return sum(len(self._uses.pop(key)) for key in gone)
