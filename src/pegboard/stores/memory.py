"""A store that ends with the process: for tests, for one-shot commands and for `store: memory:`."""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from itertools import islice
from typing import cast

from pegboard.core.access.approvals.approval import Approval, ApprovalStatus, Binding
from pegboard.core.model.tools import Manifest
from pegboard.ports import (
    BILL_DAYS,
    PART,
    UNCHECKED,
    USE_LIFETIME,
    USES_KEPT,
    AuditFilter,
    AuditPart,
    AuditRecord,
    BillCounts,
    BillPage,
    BillRecord,
    ChangeToken,
    NumberedRecord,
    SessionKey,
    StateChange,
    StoredState,
    TrailPage,
    Unchecked,
    UseRecord,
)

KEPT = 24 * 3600.0
"""How long an approval is kept after it has expired, in seconds."""


class MemoryApprovals:
    """The part of a store that keeps approvals."""

    __slots__ = ("_approvals",)

    def __init__(self) -> None:
        self._approvals: dict[str, Approval] = {}

    def _append(self, entries: Sequence[AuditRecord]) -> None:
        raise NotImplementedError

    async def add_approval(self, approval: Approval, *, audit: Sequence[AuditRecord] = ()) -> None:
        """Store an approval that somebody is asked for, and remove what expired long before it."""
        oldest = approval.asked_at - KEPT
        for known in tuple(self._approvals.values()):
            if known.expires_at is not None and known.expires_at < oldest:
                del self._approvals[known.id]
        self._approvals[approval.id] = approval
        self._append(audit)

    async def change_approval(
        self, approval: Approval, *, expected: ApprovalStatus, audit: Sequence[AuditRecord] = ()
    ) -> bool:
        """Store an approval if the one under its id still has the expected status; return whether it is stored."""
        known = self._approvals.get(approval.id)
        if known is None or known.status != expected:
            return False
        self._approvals[approval.id] = approval
        self._append(audit)
        return True

    async def approval(self, approval_id: str) -> Approval | None:
        """Return one approval, or None."""
        return self._approvals.get(approval_id)

    async def approvals(
        self,
        *,
        principal: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        open_at: float | None = None,
    ) -> Sequence[Approval]:
        """Return approvals, the newest first."""
        return [
            found
            for found in self._newest()
            if principal in (None, found.binding.principal)
            and agent in (None, found.binding.agent)
            and session in (None, found.binding.session)
            and (open_at is None or found.as_of(open_at).open)
        ]

    async def approvals_for(self, call: Binding) -> Sequence[Approval]:
        """Return what may count for a call: what lasts, and what was asked for the same arguments; the newest first."""
        return [
            found
            for found in self._newest()
            if (found.binding.principal, found.binding.agent, found.binding.tool)
            == (call.principal, call.agent, call.tool)
            and (found.lasts != "once" or (found.binding.session, found.asked) == (call.session, call.arguments))
        ]

    async def remove_approvals(self, *, principal: str, agent: str, session: str) -> int:
        """Remove the approvals of a session, but for those that stand for always; return how many there were."""
        found = await self.approvals(principal=principal, agent=agent, session=session)
        gone = [one.id for one in found if (one.lasts, one.status) != ("always", "allowed")]
        for approval_id in gone:
            del self._approvals[approval_id]
        return len(gone)

    def _newest(self) -> list[Approval]:
        return sorted(self._approvals.values(), key=lambda found: found.asked_at, reverse=True)


class MemoryBill(MemoryApprovals):
    """The part of a store that keeps the bill."""

    __slots__ = ("_bill",)

    def __init__(self) -> None:
        super().__init__()
        self._bill: dict[tuple[str, str, str, str], BillCounts] = {}

    @property
    def lasts(self) -> bool:
        """Return that it ends with the process."""
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


class MemoryStore(MemoryBill):
    """A store in the memory of this process: nothing is shared and nothing survives it.

    ``audit_keep`` is how many of the newest audit entries are kept.
    """

    __slots__ = (
        "_audit", "_audited", "_changes", "_claims", "_digest_key", "_manifests", "_revision", "_states", "_switches",
        "_uses", "_version",
    )  # fmt: skip

    def __init__(self, *, audit_keep: int = 100_000) -> None:
        super().__init__()
        self._states: dict[SessionKey, StoredState] = {}
        self._switches: dict[str, dict[str, bool]] = {}
        self._manifests: dict[tuple[str, str], Manifest] = {}
        self._claims: dict[str, frozenset[str]] = {}
        self._audit: deque[AuditRecord] = deque(maxlen=audit_keep)
        self._audited = 0
        self._uses: dict[tuple[str, str], tuple[UseRecord, ...]] = {}
        self._digest_key = secrets.token_bytes(32)
        self._version = 0
        self._revision = 0
        self._changes = 0

    async def open(self) -> None:
        """Do nothing: memory is always ready."""

    async def aclose(self) -> None:
        """Do nothing: there is nothing to write."""

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
        audit: Sequence[AuditRecord] = (),
    ) -> bool:
        """Store a boolean, or remove it (None), with its records, if what is stored is as expected; return whether."""
        if expected is not UNCHECKED and self._switches.get(agent, {}).get(name) is not expected:
            return False
        self._append(audit)
        switches = self._switches.setdefault(agent, {})
        for other in replaces:
            switches.pop(other, None)
        if value is None:
            switches.pop(name, None)
        else:
            switches[name] = value
        if not switches:
            del self._switches[agent]
        self._revision += 1
        self._changes += 1
        return True

    async def all_switches(self) -> Mapping[str, Mapping[str, bool]]:
        """Return the stored booleans of every agent."""
        return {agent: dict(switches) for agent, switches in self._switches.items()}

    async def change_token(self, since: float | None = None) -> ChangeToken:  # noqa: ARG002 - nobody else has this store
        """Return how often anything was changed, and how often a switch or claim was."""
        return ChangeToken(states=self._changes, permissions=self._revision)

    async def manifest(self, plugin: str, fingerprint: str) -> Manifest | None:
        """Return the stored manifest of a plugin whose specification has this fingerprint."""
        return self._manifests.get((plugin, fingerprint))

    async def keep_manifest(self, plugin: str, fingerprint: str, manifest: Manifest) -> None:
        """Store a manifest in place of an older one."""
        self._manifests[plugin, fingerprint] = manifest

    async def claims(self) -> Mapping[str, frozenset[str]]:
        """Return the tools that count as read-only, of every server that has been seen (G6)."""
        return dict(self._claims)

    async def keep_first_claims(self, plugin: str, tools: Iterable[str]) -> frozenset[str]:
        """Store what counts for a server of which nothing is stored; return what counts now."""
        if plugin not in self._claims:
            self._claims[plugin] = frozenset(tools)
            self._revision += 1
            self._changes += 1
        return self._claims[plugin]

    async def change_claims(self, plugin: str, *, accept: Iterable[str] = (), retract: Iterable[str] = ()) -> None:
        """Add tools to those that count, and take others away."""
        self._claims[plugin] = self._claims.get(plugin, frozenset()).union(accept).difference(retract)
        self._revision += 1
        self._changes += 1

    async def record(self, *entries: AuditRecord) -> None:
        """Store entries."""
        self._append(entries)

    def record_later(self, entry: AuditRecord) -> None:
        """Store an entry; in memory, later is now."""
        self._append((entry,))

    def _append(self, entries: Sequence[AuditRecord]) -> None:
        self._audit.extend(entries)
        self._audited += len(entries)

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
        found = (
            entry
            for entry in reversed(self._audit)
            if principal in (None, entry.principal)
            and agent in (None, entry.agent)
            and session in (None, entry.session)
            and kind in (None, entry.kind)
        )
        return list(islice(found, max(limit, 0)))

    async def trail(self, *, after: int = 0, agent: str | None = None, limit: int = 5000) -> TrailPage:
        """Return a part of the trail, oldest first."""
        gone = self._audited - len(self._audit)
        start = max(after - gone, 0)
        part = list(islice(self._audit, start, start + limit))
        end = gone + start + len(part)
        entries = [entry for entry in part if agent in (None, entry.agent)]
        return TrailPage(entries, end if end < self._audited else None)

    async def part(
        self, wanted: AuditFilter, *, before: int | None = None, after: int | None = None, limit: int = 100
    ) -> AuditPart:
        """Return what is wanted of the next records."""
        return _part_of(list(self._audit), self._audited, wanted, before=before, after=after, limit=limit)

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


def _part_of(
    trail: Sequence[AuditRecord],
    newest: int,
    wanted: AuditFilter,
    *,
    before: int | None,
    after: int | None,
    limit: int,
) -> AuditPart:
    """Return what is wanted of the next ``PART`` records of a trail, the last of which has the number ``newest``."""
    oldest = newest - len(trail) + 1
    if not trail:
        return AuditPart([], None, newest if after is None else max(after, newest))
    if after is not None:
        first = max(after + 1, oldest)
        numbers = range(first, min(first + PART, newest + 1))
    else:
        last = newest if before is None else min(before - 1, newest)
        numbers = range(last, max(last - PART, oldest - 1), -1)
    records: list[NumberedRecord] = []
    seen = numbers[-1] if numbers else None
    for number in numbers:
        if wanted.matches(trail[number - oldest]):
            records.append(NumberedRecord(number, trail[number - oldest]))
        if len(records) == limit:
            seen = number
            break
    left = seen is not None and (seen < newest if after is not None else seen > oldest)
    return AuditPart(records, seen if left else None, newest)
