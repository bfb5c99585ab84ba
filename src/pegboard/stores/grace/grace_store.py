"""A store whose server may be gone for a while: an outage of what needs it, and of nothing else.

What a call needs is answered with what was read last, for ``grace`` seconds since it was known to be so; what a call
leaves to be written waits. Everything else raises ``StoreUnavailableError`` at once until the store is back, which is
looked for all the time.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NoReturn, TypeVar, cast

from pegboard.core.model.addresses import STORE_GRACE
from pegboard.errors import StoreError, StoreUnavailableError, store_unavailable
from pegboard.ports import (
    UNREAD,
    AuditRecord,
    BillRecord,
    CallDetails,
    ChangeToken,
    SessionKey,
    StateChange,
    Store,
    StoredState,
    Unread,
    UsageRecord,
    UseRecord,
)
from pegboard.ports.sealed import SealedKind, SealedText
from pegboard.ports.store_health import REACHABLE, StoreHealth
from pegboard.stores.grace.last_read import LastRead
from pegboard.stores.grace.unwritten import Unwritten
from pegboard.support.backoff import Backoff
from pegboard.support.tasks import BackgroundTasks

T = TypeVar("T")

PULSE: Final = 1.0
"""How often it is looked whether the store is there, in seconds: so old may be what an idle process knows."""
_FIRST: Final = 0.05
"""After how many seconds a store that was just lost is tried again; the pauses double up to ``PULSE``."""
_OF_PERMISSIONS: Final = frozenset({"set_switch", "set_together", "change_pins", "accept"})
"""The requests that change what ``ChangeToken.permissions`` tells of."""

PATIENCE: Final = 2.0
"""How long a call waits for what it knows already, in seconds: a connection that is cut may be silent for long."""

log = logging.getLogger("pegboard")


def with_grace(store: Store, grace: float = STORE_GRACE) -> Store:
    """Return a store that can be lost for a while; ``GraceStore`` says how."""
    return cast("Store", GraceStore(store, grace=grace))


class GraceStore:
    """A store, and what was read of it last; what it does not name goes to the store as it is.

    ``grace`` is for how many seconds what was read last counts, since it was known to be so; by ``clock``.
    """

    def __init__(
        self, store: Store, *, grace: float = STORE_GRACE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._grace = grace
        self._patience = min(PATIENCE, grace / 2)
        self._clock = clock
        self._states: LastRead[SessionKey, StoredState | None] = LastRead()
        self._grants: LastRead[str, SealedText | None] = LastRead()
        self._token: ChangeToken | None = None
        self._writes = 0  # by this process
        self._digest_key: bytes | None = None
        self._known_at = 0.0  # until when what was read last was known to be so
        self._lost: StoreUnavailableError | None = None
        self._health = REACHABLE
        self._unwritten = Unwritten()
        self._listeners: list[Callable[[StoreHealth], None]] = []
        self._tasks = BackgroundTasks()
        self._looking: asyncio.Task[ChangeToken] | None = None
        self._turned = asyncio.Event()  # it was lost, or is back

    def __getattr__(self, name: str) -> Any:
        """Return what the store has; while it is lost, a request is refused at once."""
        found = getattr(self._store, name)
        if self._lost is not None and inspect.iscoroutinefunction(found):
            return self._refused
        return partial(self._permitting, found) if name in _OF_PERMISSIONS else found

    async def _refused(self, *_: object, **__: object) -> NoReturn:
        raise self._unavailable()

    async def _permitting(self, write: Callable[..., Awaitable[Any]], *given: object, **named: object) -> Any:
        """Return what a write of permissions comes to; as long as what it has changed is not read, nothing counts."""
        try:
            return await write(*given, **named)
        finally:
            self._moved(states=object(), permissions=object())

    # -- whether it can be reached -----------------------------------------------------------------

    @property
    def health(self) -> StoreHealth:
        """Return whether the store can be reached now."""
        if self._lost is None:
            return REACHABLE
        return self._health._replace(waiting=self._unwritten.waiting, dropped=self._unwritten.dropped)

    def on_health(self, call: Callable[[StoreHealth], None]) -> None:
        """Have a function called whenever the store is lost, and whenever it is back."""
        self._listeners.append(call)

    async def open(self) -> None:
        """Make the store ready, and begin to look whether it is there."""
        await self._store.open()
        try:
            await self._asked_token(None)
        except StoreError:
            await self._store.aclose()
            raise
        self._tasks.start(self._watch())

    async def aclose(self) -> None:
        """Write what still waits, and close the store; where it is lost, say how many records are lost with it."""
        await self._tasks.aclose()
        waited, dropped = self._unwritten.hand_over()
        try:
            await self._store.aclose()
        except StoreUnavailableError as error:
            log.error("Records of calls that are not written: %d. %s", waited + dropped, error.message)

    async def _watch(self) -> None:
        """Ask the store all the time what it stands at, so that it is known when it is lost, and when it is back."""
        backoff = Backoff(first=_FIRST, longest=PULSE)
        while True:
            await self._look()
            pause = PULSE if self._lost is None else backoff.next()
            if self._lost is None:
                backoff.reset()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._turned.wait()

    async def _look(self) -> None:
        if self._looking is None or self._looking.done():
            self._looking = self._tasks.start(self._asked_token(None))
        try:
            await self._in_time(self._looking)
        except StoreUnavailableError as error:
            self._note_lost(error)
        except TimeoutError:
            self._note_lost(self._too_slow())
        except StoreError as error:  # it answers
            log.debug("the store does not say what it stands at: %s", error)
        else:
            if self._lost is not None:
                await self._note_back()

    def _note_lost(self, error: StoreUnavailableError) -> None:
        if self._lost is not None:
            self._lost = error
            return
        self._lost = error
        left = max(0.0, self._known_at + self._grace - self._clock())
        now = time.time()
        self._health = StoreHealth(lost_at=now, until=now + left, why=error.message)
        log.warning(
            "%s Calls of loaded tools go on for %.0f s; what decides anew is refused until it is back.",
            error.message,
            left,
        )
        self._turn()
        self._tell()

    async def _note_back(self) -> None:
        """Write what waited, and serve everything again."""
        lost_at = self._health.lost_at or time.time()
        self._lost, self._health = None, REACHABLE
        written, dropped = self._unwritten.hand_over()
        log.warning(
            "The store is back after %.0f s: %d records of calls waited, %d older ones had given way.",
            time.time() - lost_at,
            written,
            dropped,
        )
        self._turn()
        self._tell()
        with suppress(StoreError):  # what cannot be written waits in the store's own queue
            await self._store.record()

    def _turn(self) -> None:
        """Wake whoever waits until the store is lost or back."""
        turned, self._turned = self._turned, asyncio.Event()
        turned.set()

    def _tell(self) -> None:
        for call in self._listeners:
            call(self.health)

    def _unavailable(self) -> StoreUnavailableError:
        assert self._lost is not None
        return StoreUnavailableError(self._lost.message, hint=self._lost.hint)

    async def _in_time(self, task: asyncio.Task[T]) -> T:
        """Return what a request comes to; one that takes too long goes on to its end, and is not waited for.

        Raises ``TimeoutError``.
        """
        done, _ = await asyncio.wait({task}, timeout=self._patience)
        if not done:
            task.add_done_callback(_retrieve)
            raise TimeoutError
        return task.result()

    def _too_slow(self) -> StoreUnavailableError:
        return store_unavailable("The store", f"it did not answer within {self._patience:g} s")

    def _require_grace(self) -> None:
        """Raise ``StoreUnavailableError`` where what was read last does not count any more."""
        if not self._counts():
            raise self._unavailable()

    def _counts(self) -> bool:
        """Return whether what was read last counts still."""
        return self._clock() - self._known_at <= self._grace

    # -- what a call reads ---------------------------------------------------------------------------

    async def _asked_token(self, since: float | None) -> ChangeToken:
        began, writes = self._clock(), self._writes
        token = await self._store.change_token(since)
        if writes == self._writes:
            self._token = token
        self._known_at = max(self._known_at, began if since is None else min(since, began))
        return token

    def _moved(self, **changed: object) -> None:
        """Note that this process has changed something: objects are equal to nothing else."""
        self._writes += 1
        if self._token is not None:
            self._token = self._token._replace(**changed)

    async def change_token(self, since: float | None = None) -> ChangeToken:
        """Return what the store stands at, or stood at when it was asked or changed last."""
        known = self.known_token(time.monotonic() if since is None else since)
        if known is not None:
            return known
        if self._lost is None:
            try:
                return await self._in_time(self._tasks.start(self._asked_token(since)))
            except StoreUnavailableError as error:
                self._note_lost(error)
            except TimeoutError:
                self._note_lost(self._too_slow())
        self._require_grace()
        if self._token is None:
            raise self._unavailable()
        return self._token

    async def changed(self, token: ChangeToken, timeout: float) -> None:
        """Return as soon as the store may stand at something else, or was lost or found; at last after a while."""
        if self._lost is None:
            await self._store.changed(token, timeout)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._turned.wait()

    def known_token(self, since: float) -> ChangeToken | None:
        """Return what the store stands at, where that is known without waiting; None while it is lost."""
        token = self._store.known_token(since) if self._lost is None else None
        if token is not None:
            self._token, self._known_at = token, max(self._known_at, min(since, self._clock()))
        return token

    async def _read(self, of: LastRead[Any, T], key: Any, ask: Callable[[], Awaitable[T]]) -> T:
        if self._lost is None:
            known = key in of
            try:
                reading = of.read(key, ask)
                return await (self._in_time(self._tasks.start(reading)) if known else reading)
            except (StoreUnavailableError, TimeoutError) as error:  # whether it is lost is known by its token
                if known and self._counts():
                    return of[key]
                raise (self._too_slow() if isinstance(error, TimeoutError) else error) from None
        self._require_grace()
        if key not in of:
            raise self._unavailable()
        return of[key]

    def known_state(self, key: SessionKey) -> StoredState | Unread | None:
        """Return the stored state, where it is known without waiting; not while the store is lost."""
        known = self._store.known_state(key) if self._lost is None and self._digest_key is not None else UNREAD
        if known is not UNREAD:
            self._states.put(key, known)
        return known

    async def load(self, key: SessionKey) -> StoredState | None:
        """Return the stored state, or the one that was read or written last."""
        if (known := self.known_state(key)) is not UNREAD:
            return known
        if self._digest_key is None:
            with suppress(StoreUnavailableError, TimeoutError):  # the first call may come when the store is lost
                await self._in_time(self._tasks.start(self.digest_key()))
        return await self._read(self._states, key, lambda: self._store.load(key))

    async def digest_key(self) -> bytes:
        """Return the secret with which arguments are digested, which is always the same."""
        if self._digest_key is None:
            self._require_store()
            self._digest_key = await self._store.digest_key()
        return self._digest_key

    async def sealed(self, kind: SealedKind, key: str) -> SealedText | None:
        """Return a secret; a grant is the one that was read last, since calls need it."""
        if kind != "grant":
            self._require_store()
            return await self._store.sealed(kind, key)
        return await self._read(self._grants, key, lambda: self._store.sealed(kind, key))

    # -- what a call writes ----------------------------------------------------------------------------

    def record_later(self, entry: AuditRecord, details: CallDetails | None = None) -> None:
        """Store a call within 50 ms, or once the store is back."""
        if self._lost is None:
            self._store.record_later(entry, details)
        else:
            self._unwritten.add_call(self._store.record_later, entry, details)

    def bill_later(self, *records: BillRecord) -> None:
        """Add to the bill within 50 ms, or once the store is back."""
        self._later(lambda: self._store.bill_later(*records), records)

    def usage_later(self, *records: UsageRecord) -> None:
        """Add to the counts within 50 ms, or once the store is back."""
        self._later(lambda: self._store.usage_later(*records), records)

    def remember_later(self, *uses: UseRecord) -> None:
        """Store uses within 50 ms, or once the store is back."""
        self._later(lambda: self._store.remember_later(*uses), uses)

    def _later(self, write: Callable[[], None], records: Sequence[object]) -> None:
        if self._lost is None:
            write()
        else:
            self._unwritten.add(write, records)

    # -- what is written, and read again after that ----------------------------------------------------

    def _require_store(self) -> None:
        """Raise ``StoreUnavailableError`` where the store is lost."""
        if self._lost is not None:
            raise self._unavailable()

    async def save(
        self, key: SessionKey, text: str | None, *, expected: int, audit: Sequence[AuditRecord] = ()
    ) -> int | None:
        """Store a state, which is the last that is known of its session."""
        self._require_store()
        version = await self._store.save(key, text, expected=expected, audit=audit)
        if version is not None:
            self._wrote(key, text, version)
        return version

    async def save_together(
        self, changes: Sequence[StateChange], *, audit: Sequence[AuditRecord] = ()
    ) -> Sequence[int] | None:
        """Store several states, which are the last that are known of their sessions."""
        self._require_store()
        versions = await self._store.save_together(changes, audit=audit)
        for one, version in zip(changes, versions or (), strict=False):
            self._wrote(one.key, one.text, version)
        return versions

    def _wrote(self, key: SessionKey, text: str | None, version: int) -> None:
        state = None if text is None else StoredState(text=text, version=version, updated_at=time.time())
        self._states.put(key, state)
        self._moved(states=object())

    async def seal(self, kind: SealedKind, key: str, text: str | None, **given: Any) -> int | None:
        """Store a secret; a grant is the last that is known."""
        self._require_store()
        version = await self._store.seal(kind, key, text, **given)
        if kind == "grant" and version is not None:
            grant = None if text is None else SealedText(key, text, version, given.get("expires_at"))
            self._grants.put(key, grant)
        return version


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Take the error of a request that nobody waits for any more."""
    if not task.cancelled():
        task.exception()
