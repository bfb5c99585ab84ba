"""What a configuration grants, as it was accepted last, and what of an edit waits for a person (P10)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import secrets
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pegboard.config.acceptance import (
    Acceptance,
    acceptance_of,
    is_own_store,
    keep,
    key_of,
    note_own_store,
    record_of,
    unreadable,
)
from pegboard.config.documents.document import display_path
from pegboard.config.grants import Digest, grants_of, is_waiting
from pegboard.config.location import SQLITE
from pegboard.configuration_source import from_accepted_files, waiting_files
from pegboard.core.access.grants import RELOAD, Grant, GrantChange, GrantKey, changes, grants_from_text, grants_to_text
from pegboard.core.access.permissions import LOCAL
from pegboard.core.model.addresses import store_name
from pegboard.errors import StoreError
from pegboard.ports import AuditRecord, SessionKey
from pegboard.problems import Problem
from pegboard.support.own_folder import store_of

if TYPE_CHECKING:
    from pegboard.board.services import Services
    from pegboard.config.schema.configuration import Configuration

log = logging.getLogger("pegboard")


class AcceptedGrants:
    """What one configuration granted when its last edit was accepted; a start compares with it as a reload does.

    The user's state folder has it too, with the store that it was accepted in: another store takes that, whatever it
    knows, so that no edit of ``store:`` widens; and so does one that a configuration brings which was just accepted.

    Args:
        services: those of the board, with the store.
        configuration: its absolute path, under which the store keeps it; None where it ends with the process.
        brought: the file of the store, where that may have come with a folder in which the configuration was found.
    """

    def __init__(self, services: Services, configuration: str | None, *, brought: Path | None = None) -> None:
        self._services = services
        self._name = configuration
        self._brought = brought
        self._text: str | None = None
        self._seen: str | None = None
        self._before: dict[GrantKey, Grant] | None = None
        self._key = b""
        self._store: str | None = None
        self._off: frozenset[str] = frozenset()
        self.waiting: tuple[GrantChange, ...] = ()

    async def take(self, edited: Configuration, *, by: str = "") -> Configuration:
        """Return what of a configuration is in force, and store what it grants; what is left is ``waiting``.

        The first one is accepted. Each change that counts leaves a record with what was before and what is after.

        Args:
            edited: the configuration as it is written now.
            by: who has edited it and may widen: what did not wait before counts at once, and is theirs in the trail.

        Raises:
            StoreError: what was accepted cannot be read or stored, or the store may be someone else's.
        """
        if self._store is None:  # the one that is open stays so, whatever is edited
            self._store = store_name(edited.store)
            await self._require_own_store()
        waited = self.waiting
        while True:
            await self._read_accepted()
            self._off = await self._switched_off()
            waiting, taken, counted = self._split_changes(edited)
            if by:
                own = tuple(change for change in waiting if change not in waited)
                waiting, taken = tuple(change for change in waiting if change in waited), (*taken, *own)
                counted = _apply_changes(counted, own)
            if self._text == _grants_to_text(counted, self._key) and not taken:
                break
            if await self._store_accepted(counted, [self._record(change, by=by) for change in taken]):
                break
        known = acceptance_of(self._name) if self._name is not None else None
        if known is None or not known.grants or known.store != self._store:
            self._save_accepted()
        self.waiting = waiting
        return self.without(edited, waiting)

    async def _require_own_store(self) -> None:
        """Raise ``StoreError`` where a store was there that this user has never used (P11).

        What it says of switches, approvals and pins would count. Who names the configuration has seen to that.
        """
        own = f"{SQLITE}{store_of(Path(self._name))}" if self._name is not None else self._store
        if self._store == own or not (self._store or "").startswith(SQLITE):
            return
        key = await self._services.store.digest_key()
        name = hashlib.blake2b(key, digest_size=16).hexdigest()
        if self._brought is not None and not is_own_store(name):
            raise StoreError(
                f"{self._brought} was there, and you have never used it, so it is not read: it may have been "
                "copied with the folder.",
                code="store_not_own",
                hint=f"If it is yours, name the configuration once: --config {display_path(Path(self._name or ''))}. "
                "Else remove it.",
            )
        with suppress(OSError):  # it is asked again then
            note_own_store(name)

    async def would_change(self, edited: Configuration) -> tuple[GrantChange, ...]:
        """Return what a configuration would change of what was accepted last; nothing is stored.

        Raises:
            StoreError: what was accepted cannot be read.
        """
        await self._read_accepted()
        self._off = await self._switched_off()
        before, off, digest = self._before or {}, self._off, _keyed_digest(self._key)
        # Of many tools and agents it takes long, and others are answered meanwhile.
        return await asyncio.to_thread(lambda: changes(before, grants_of(edited, digest), off=off))

    def restrict_to_accepted(self, edited: Configuration) -> Configuration:
        """Return what of a configuration is in force by what was accepted last; nothing is read or stored."""
        return self.without(edited, self._split_changes(edited)[0]) if self._key else edited

    def without(self, edited: Configuration, waiting: Sequence[GrantChange]) -> Configuration:
        """Return what of a configuration is in force while changes of it wait."""
        return _in_force(edited, waiting, _keyed_digest(self._key))

    async def accept(self, shown: Sequence[GrantChange], *, by: str) -> tuple[GrantChange, ...]:
        """Store that a person accepts changes, those that wait still as they were shown; return them.

        Raises:
            StoreError: it cannot be stored.
        """
        while True:
            await self._read_accepted()
            before = self._before or {}
            accepted = tuple(change for change in shown if before.get(change.key) == change.before)
            if not accepted:
                return ()
            counted = _apply_changes(before, accepted)
            if await self._store_accepted(counted, [self._record(change, by=by) for change in accepted]):
                return accepted

    async def note(self, accepted: Sequence[GrantChange], *, by: str) -> None:
        """Leave a record of each change that someone has accepted (X4)."""
        await self._services.store.record(*(self._record(change, by=by) for change in accepted))

    async def accepted_elsewhere(self) -> bool:
        """Return whether another process has stored since what is accepted."""
        if self._name is None:
            return False
        return self._accepted_text(await self._services.store.accepted(self._name)) != self._seen

    def _split_changes(
        self, edited: Configuration
    ) -> tuple[tuple[GrantChange, ...], tuple[GrantChange, ...], dict[GrantKey, Grant]]:
        """Return which changes wait, which count, and what is granted then."""
        before, after = self._before, grants_of(edited, _keyed_digest(self._key))
        if before is None:
            return (), (), after
        found = changes(before, after, off=self._off)
        waiting = tuple(change for change in found if is_waiting(change, before, after))
        taken = tuple(change for change in found if change not in waiting)
        counted = dict(after)
        for change in waiting:
            counted.pop(change.key, None)
            if change.before is not None:
                counted[change.key] = change.before
        return waiting, taken, counted

    async def _read_accepted(self) -> None:
        """Read what was accepted last, and the key of its digests; both are new where nothing was."""
        if self._name is None:
            self._key = self._key or secrets.token_bytes(32)
            return
        self._text = await self._services.store.accepted(self._name)
        text = self._seen = self._accepted_text(self._text)
        if text is None:
            self._before, self._key = None, self._key or secrets.token_bytes(32)
            return
        try:
            self._before, key = _grants_from_text(text)
        except ValueError as error:
            own = unreadable(self._name, error)
            hint = "Put a copy of the store back." if text == self._text else own.hint
            raise StoreError(own.message, code=own.code, hint=hint) from error
        self._key = key or await self._services.store.digest_key()

    def _accepted_text(self, stored: str | None) -> str | None:
        """Return what was accepted last: what the store says, or what this user's state folder says.

        The store counts where replicas share it, and it is the one of before: what is in a file may be of anyone.
        """
        remembered = acceptance_of(self._name or "")
        if remembered is None:
            return stored
        shared = not (self._store or "").startswith(SQLITE) and self._services.store.lasts
        if shared and stored is not None and remembered.store == self._store:
            return stored
        return remembered.grants or None

    async def stamp(self) -> Hashable:
        """Return what differs once another process has accepted something."""
        permissions = (await self._services.store.change_token()).permissions
        try:
            return permissions, record_of(self._name or "").stat().st_mtime_ns
        except OSError:
            return permissions, None

    def _save_accepted(self) -> None:
        """Keep what is accepted outside of the store."""
        if self._name is None:
            return
        known = acceptance_of(self._name) or Acceptance(configuration=self._name)
        try:
            keep(replace(known, store=self._store or "", grants=self._text or ""))
        except OSError as error:
            level = logging.WARNING if RELOAD in (self._before or {}) else logging.INFO
            log.log(level, "the acceptance is kept only in the store: %s", error)

    async def _switched_off(self) -> frozenset[str]:
        """Return what is switched off at run time, for anyone."""
        stored = await self._services.store.stored_permissions()
        for_one = (of_one for of_agent in stored.principal_switches.values() for of_one in of_agent.values())
        every = chain(stored.switches.values(), for_one)
        return frozenset(name for switches in every for name, on in switches.items() if not on)

    async def _store_accepted(self, counted: dict[GrantKey, Grant], records: Sequence[AuditRecord]) -> bool:
        store, text = self._services.store, _grants_to_text(counted, self._key)
        if self._name is None:
            await store.record(*records)
        elif not await store.accept(self._name, text, expected=self._text, audit=records):
            return False
        self._text, self._seen, self._before = text, text, counted
        self._save_accepted()
        return True

    def _record(self, change: GrantChange, *, by: str = "") -> AuditRecord:
        """Return the record of a change that counts from now on (X4)."""
        key = SessionKey(principal=LOCAL, agent=change.agent, session="")
        outcome = "wider" if change.widens else "narrower"
        return self._services.recorder.entry(
            key, 0, "permission", change.name, "changed", reason=str(change), outcome=outcome, by=by
        )


def without_opening(configuration: Configuration) -> tuple[Configuration, tuple[GrantChange, ...]]:
    """Return what of a configuration is in force by what this user accepted last, and what waits; no store is read.

    One that this user has never opened is whole, and runs the code that was accepted.

    Raises:
        StoreError: what was accepted cannot be read.
    """
    name = key_of(configuration.path)
    accepted = acceptance_of(name)
    counting, files = from_accepted_files(configuration)
    changed = waiting_files(configuration, files, lambda: None)
    if accepted is None or not accepted.grants:
        return counting, changed
    try:
        before, key = _grants_from_text(accepted.grants)
    except ValueError as error:
        raise unreadable(name, error) from error
    digest = _keyed_digest(key)
    after = grants_of(configuration, digest)
    waiting = tuple(change for change in changes(before, after) if is_waiting(change, before, after))
    restricted = _in_force(configuration, waiting, digest)
    return from_accepted_files(restricted)[0], (*changed, *waiting)


def waiting_problems(waiting: Sequence[GrantChange]) -> list[Problem]:
    """Return a warning for each change that waits for a person."""
    hint = "It counts when a person accepts it: `pegboard accept`, or the console."
    return [
        Problem(
            severity="warning",
            code="waits",
            message=f"{change}: this grants more, so it waits for a person.",
            hint=hint,
        )
        for change in waiting
    ]


def _apply_changes(granted: Mapping[GrantKey, Grant], accepted: Sequence[GrantChange]) -> dict[GrantKey, Grant]:
    """Return what is granted after some changes."""
    counted = dict(granted)
    for change in accepted:
        counted.pop(change.key, None)
        if change.after is not None:
            counted[change.key] = change.after
    return counted


def _in_force(edited: Configuration, waiting: Sequence[GrantChange], digest: Digest) -> Configuration:
    if not waiting:
        return edited
    from pegboard.config.in_force import apply_waiting  # most edits never need it

    return apply_waiting(edited, waiting, digest)


def _keyed_digest(key: bytes) -> Digest:
    keyed = hashlib.blake2b(key=key, digest_size=8)

    def digest(text: str) -> str:
        found = keyed.copy()
        found.update(text.encode(errors="surrogatepass"))
        return found.hexdigest()

    return digest


def _grants_to_text(grants: dict[GrantKey, Grant], key: bytes) -> str:
    """Return what is granted with the key of its digests: it says the same in another store."""
    return f'{{"key":"{key.hex()}","grants":{grants_to_text(grants)}}}'


def _grants_from_text(text: str) -> tuple[dict[GrantKey, Grant], bytes]:
    """Return what is granted, and the key of its digests; none is that of the store. Raises ``ValueError``."""
    if text.startswith("["):
        return grants_from_text(text), b""
    found: Any = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("It is not a mapping.")
    content = cast("dict[str, Any]", found)
    key = bytes.fromhex(str(content.get("key")))
    if not 0 < len(key) <= hashlib.blake2b.MAX_KEY_SIZE:
        raise ValueError("Its key is missing.")
    return grants_from_text(json.dumps(content.get("grants"))), key
