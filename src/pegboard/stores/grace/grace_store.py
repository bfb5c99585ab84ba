"""A store whose server may be gone for a while: an outage of what needs it, and of nothing else (S2).

What a call needs is answered with what was read last, for ``grace`` seconds since it was known to be so; its records
are pending until the store can be written. All else raises ``StoreUnavailableError`` at once until the store is back.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from functools import partial
from typing import Any, Final, cast

from pegboard.core.model.addresses import STORE_GRACE
from pegboard.errors import StoreError, StoreUnavailableError
from pegboard.ports import UNREAD, AuditRecord, ChangeToken, SessionKey, StateChange, Store, StoredState, Unread
from pegboard.ports.sealed import SealedKind, SealedText
from pegboard.ports.store_health import StoreHealth
from pegboard.stores.grace.reachability import Reachability

SILENT_SECONDS: Final = 5.0
"""After how many seconds without an answer a server is asked that tells of changes by itself."""
MOST_READ: Final = 10_000
"""Of how many keys what was read is kept; those that were asked for longest ago go first."""
_PERMISSIONS: Final = frozenset({"set_switch", "set_together", "set_own", "change_pins", "accept"})
"""The requests that change what ``ChangeToken.permissions`` tells of."""

log = logging.getLogger("pegboard")


def with_grace(store: Store, grace: float = STORE_GRACE) -> Store:
    """Return a store that can be lost for a while; ``GraceStore`` says how."""
    return cast("Store", GraceStore(store, grace=grace))


class GraceStore:
    """A store, and what was read of it last; what it does not name goes to the store unchanged.

    ``grace`` is for how many seconds what was read last counts, since it was known to be so; by ``clock``.
    """

    def __init__(
        self, store: Store, *, grace: float = STORE_GRACE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._grace = grace
        self._clock = clock
        self._reach = Reachability(self._ask_for_token, grace / 2, self._seconds_left, lambda: store.pending)
        self.on_health: Final = self._reach.on_health
        self._read: OrderedDict[Hashable, Any] = OrderedDict()
        self._token: ChangeToken | None = None
        self._writes = 0  # by this process
        self._known_at = 0.0  # until when what was read last was known to be so

    def __getattr__(self, name: str) -> Any:
        """Return what the store has; while it is lost, a request is refused at once."""
        found = getattr(self._store, name)
        if self._reach.lost is not None and inspect.iscoroutinefunction(found):
            return self._reach.refuse
        return partial(self._change_permissions, found) if name in _PERMISSIONS else found

    async def _change_permissions(self, write: Callable[..., Awaitable[Any]], *given: Any, **named: Any) -> Any:
        try:
            return await write(*given, **named)
        finally:  # until what it has changed is read, no permissions count
            self._note_change(states=object(), permissions=object())

    @property
    def health(self) -> StoreHealth:
        """Return whether the store can be reached now."""
        return self._reach.health

    async def open(self) -> None:
        """Make the store ready, and begin to look whether it is there; what every call needs is read once."""
        await self._store.open()
        try:
            self._digest_key = await self._store.digest_key()
            await self._ask_for_token()
        except StoreError:
            await self._store.aclose()
            raise
        self._reach.start()

    async def aclose(self) -> None:
        """Write what is pending, and close the store; where it is lost, log how many records are lost with it."""
        await self._reach.aclose()
        try:
            await self._store.aclose()
        except StoreUnavailableError as error:
            log.error("Records of calls that could not be written: %d. %s", sum(self._store.pending), error.message)

    async def _ask_for_token(self, since: float | None = None) -> ChangeToken:
        began, writes = self._clock(), self._writes
        if time.monotonic() - self._store.certain_until() > min(SILENT_SECONDS, self._grace / 2):
            await self._store.catch_up()  # it asks the server, which may be silent
        token = await self._store.change_token(since)
        if writes == self._writes:
            self._token = token
        self._known_at = max(self._known_at, self._certain_until(began if since is None else min(since, began)))
        return token

    def _certain_until(self, time: float) -> float:
        return min(time, self._store.certain_until())

    def _note_change(self, **changed: object) -> None:
        """Note that this process has changed something: objects are equal to nothing else."""
        self._writes += 1
        if self._token is not None:
            self._token = self._token._replace(**changed)

    async def change_token(self, since: float | None = None) -> ChangeToken:
        """Return the token of the store, or the last one that is known."""
        if (known := self.known_token(time.monotonic() if since is None else since)) is not None:
            return known
        if self._reach.lost is None:
            try:
                return await self._reach.await_in_time(self._ask_for_token(since))
            except StoreUnavailableError as error:
                self._reach.note_lost(error)
        return self._token if self._token is not None and self._seconds_left() >= 0 else await self._reach.refuse()

    def _seconds_left(self) -> float:
        return self._known_at + self._grace - self._clock()

    async def changed(self, token: ChangeToken, timeout: float) -> None:
        """Return as soon as another process may have changed something, or the store is back."""
        await (self._store.changed(token, timeout) if self._reach.lost is None else self._reach.wait_for_turn(timeout))

    def known_token(self, since: float) -> ChangeToken | None:
        """Return the token of the store, where it is known without waiting; None while it is lost."""
        if (token := self._store.known_token(since) if self._reach.lost is None else None) is not None:
            self._token, self._known_at = token, max(self._known_at, self._certain_until(min(since, self._clock())))
        return token if self._seconds_left() >= 0 else None

    def _keep_read(self, key: Hashable, value: object) -> None:
        self._read[key] = value
        self._read.move_to_end(key)
        if len(self._read) > MOST_READ:
            self._read.popitem(last=False)

    async def _last_answer(self, key: Hashable, request: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Return what a request answers, or what was read or written last under its key."""
        known = self._read.get(key, UNREAD)
        if self._reach.lost is None:
            try:
                found = await (request() if known is UNREAD else self._reach.await_in_time(request()))
            except StoreUnavailableError:  # whether the store is lost is known by its token
                if known is UNREAD or self._seconds_left() < 0:
                    raise
            else:
                if self._read.get(key, UNREAD) is known:  # else a writing has overtaken it
                    self._keep_read(key, found)
                return found
        return self._read[key] if key in self._read and self._seconds_left() >= 0 else await self._reach.refuse()

    def known_state(self, key: SessionKey) -> StoredState | Unread | None:
        """Return the stored state, where it is known without waiting; not while the store is lost."""
        known = UNREAD if self._reach.lost is not None else self._store.known_state(key)
        if known is not UNREAD:
            self._keep_read(key, known)
        return known

    async def load(self, key: SessionKey) -> StoredState | None:
        """Return the stored state, or the one that was read or written last."""
        known = self.known_state(key)
        return known if known is not UNREAD else await self._last_answer(key, lambda: self._store.load(key))

    async def digest_key(self) -> bytes:
        """Return the secret with which arguments are digested, which is always the same."""
        return self._digest_key

    async def sealed(self, kind: SealedKind, key: str) -> SealedText | None:
        """Return a secret; a grant is the one that was read last, since calls need it."""
        if kind == "grant":
            return await self._last_answer((kind, key), lambda: self._store.sealed(kind, key))
        self._reach.require()
        return await self._store.sealed(kind, key)

    async def save(
        self, key: SessionKey, text: str | None, *, expected: int, audit: Sequence[AuditRecord] = ()
    ) -> int | None:
        """Store a state, which is the last that is known of its session."""
        versions = await self.save_together([StateChange(key=key, text=text, expected=expected)], audit=audit)
        return None if versions is None else versions[0]

    async def save_together(
        self, changes: Sequence[StateChange], *, audit: Sequence[AuditRecord] = ()
    ) -> Sequence[int] | None:
        """Store several states, which are the last that are known of their sessions."""
        self._reach.require()
        versions = await self._store.save_together(changes, audit=audit)
        for one, version in zip(changes, versions or (), strict=False):
            stored = None if one.text is None else StoredState(text=one.text, version=version, updated_at=time.time())
            self._keep_read(one.key, stored)
            self._note_change(states=object())
        return versions

    async def seal(self, kind: SealedKind, key: str, text: str | None, **given: Any) -> int | None:
        """Store a secret; a grant is the last that is known."""
        self._reach.require()
        version = await self._store.seal(kind, key, text, **given)
        if kind == "grant" and version is not None:
            self._keep_read(
                (kind, key), None if text is None else SealedText(key, text, version, given.get("expires_at"))
            )
        return version
