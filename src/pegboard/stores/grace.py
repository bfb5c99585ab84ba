"""A store whose server may be gone for a while: an outage of what needs it, and of nothing else (S2).

What a call needs is answered with what was read last, for ``grace`` seconds since it was known to be so; what a call
leaves to be written waits. All else raises ``StoreUnavailableError`` at once until the store is back, which is looked
for all the time.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NoReturn, TypeVar, cast

from pegboard.core.model.addresses import STORE_GRACE
from pegboard.errors import StoreError, StoreUnavailableError, store_unavailable
from pegboard.ports import (
    MOST_UNWRITTEN,
    UNREAD,
    AuditRecord,
    CallDetails,
    ChangeToken,
    SessionKey,
    StateChange,
    Store,
    StoredState,
    Unread,
)
from pegboard.ports.sealed import SealedKind, SealedText
from pegboard.ports.store_health import REACHABLE, StoreHealth
from pegboard.support.backoff import Backoff
from pegboard.support.tasks import BackgroundTasks

T = TypeVar("T")

LOOK_SECONDS: Final = 1.0
"""How often it is looked whether the store is there: so old may be what an idle process knows."""
FIRST_LOOK: Final = 0.05
"""After how many seconds a store that was just lost is tried again; the pauses double up to ``LOOK_SECONDS``."""
PATIENCE: Final = 2.0
"""How long a call waits for what it knows already, in seconds: a connection that is cut may be silent for long."""
MOST_READ: Final = 10_000
"""Of how many keys what was read is kept; those that were asked for longest ago go first."""
MOST_WAITING: Final = 100_000
"""How many records wait at most; the oldest give way."""
_PERMISSIONS: Final = frozenset({"set_switch", "set_together", "set_own", "change_pins", "accept"})
"""The requests that change what ``ChangeToken.permissions`` tells of."""
_LATER: Final = frozenset({"record_later", "count_later", "remember_later"})

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
        self._patience = min(PATIENCE, grace / 2)
        self._clock = clock
        self._read: OrderedDict[Any, Any] = OrderedDict()
        self._digest_key: bytes | None = None
        self._token: ChangeToken | None = None
        self._writes = 0  # by this process
        self._known_at = 0.0  # until when what was read last was known to be so
        self._lost: StoreUnavailableError | None = None
        self._health = REACHABLE
        self._unwritten: deque[tuple[Callable[[], object], int, int]] = deque()  # with its records and characters
        self._waiting = self._dropped = self._characters = 0
        self._listeners: list[Callable[[StoreHealth], None]] = []
        self._tasks = BackgroundTasks()
        self._looking: asyncio.Task[ChangeToken] | None = None
        self._turned = asyncio.Event()  # it was lost, or is back

    def __getattr__(self, name: str) -> Any:
        """Return what the store has; while it is lost, a request is refused at once, and a record waits."""
        found = getattr(self._store, name)
        if self._lost is not None and name in _LATER:
            return partial(self._wait, name, found)
        if self._lost is not None and inspect.iscoroutinefunction(found):
            return self._refuse
        return partial(self._permitting, found) if name in _PERMISSIONS else found

    async def _refuse(self, *_: object, **__: object) -> NoReturn:
        assert self._lost is not None
        raise StoreUnavailableError(self._lost.message, hint=self._lost.hint)

    async def _permitting(self, write: Callable[..., Awaitable[Any]], *given: Any, **named: Any) -> Any:
        """Return what a write of permissions comes to; until what it has changed is read, none count."""
        try:
            return await write(*given, **named)
        finally:
            self._moved(states=object(), permissions=object())

    def _wait(self, name: str, write: Callable[..., object], *given: Any) -> None:
        """Keep records until the store is back; of calls whose details have no room, the records alone."""
        size, records = 0, len(given)
        if name == "record_later":
            (record, details), records = (*given, None)[:2], 1
            if details is not None and self._characters + len(details.text) > MOST_UNWRITTEN:
                details = CallDetails(details.numbers)
            size = len(details.text) if details is not None else 0
            given = record, details
        self._unwritten.append((partial(write, *given), records, size))
        self._characters += size
        self._waiting += records
        while self._waiting > MOST_WAITING and len(self._unwritten) > 1:
            self._dropped += self._taken()[1]

    def _taken(self) -> tuple[Callable[[], object], int]:
        write, records, size = self._unwritten.popleft()
        self._characters -= size
        self._waiting -= records
        return write, records

    def _hand_over(self) -> tuple[int, int]:
        """Hand what waits to the store; return how many records that were, and how many had given way."""
        waited, dropped, self._dropped = self._waiting, self._dropped, 0
        while self._unwritten:
            self._taken()[0]()
        return waited, dropped

    # -- whether it can be reached -----------------------------------------------------------------

    @property
    def health(self) -> StoreHealth:
        """Return whether the store can be reached now."""
        if self._lost is None:
            return REACHABLE
        return self._health._replace(waiting=self._waiting, dropped=self._dropped)

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
        count = sum(self._hand_over())
        try:
            await self._store.aclose()
        except StoreUnavailableError as error:
            log.error("Records of calls that are not written: %d. %s", count, error.message)

    async def _watch(self) -> None:
        """Ask the store all the time for its token, so that it is known when it is lost, and when it is back."""
        backoff = Backoff(first=FIRST_LOOK, longest=LOOK_SECONDS)
        while True:
            await self._look()
            pause = LOOK_SECONDS if self._lost is None else backoff.next()
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
        except StoreError as error:  # it answers
            log.debug("the store does not give its token: %s", error)
        else:
            if self._lost is not None:
                await self._note_back()

    def _note_lost(self, error: StoreUnavailableError) -> None:
        before, self._lost = self._lost, error
        if before is None:
            left, now = max(0.0, self._known_at + self._grace - self._clock()), time.time()
            self._health = StoreHealth(lost_at=now, until=now + left, why=error.message)
            said = "%s Calls of loaded tools go on for %.0f s; all that decides is refused until it is back."
            log.warning(said, error.message, left)
            self._turn()

    async def _note_back(self) -> None:
        """Write what waited, and serve everything again."""
        self._lost = None
        seconds = time.time() - (self._health.lost_at or 0.0)
        waited, dropped = self._hand_over()
        said = "The store is back after %.0f s: %d records of calls waited, %d older ones had given way."
        log.warning(said, seconds, waited, dropped)
        self._turn()
        with suppress(StoreError):  # what cannot be written waits in the store's own queue
            await self._store.record()

    def _turn(self) -> None:
        """Wake what waits until the store is lost or back, and tell the listeners."""
        turned, self._turned = self._turned, asyncio.Event()
        turned.set()
        for call in self._listeners:
            call(self.health)

    async def _in_time(self, task: asyncio.Task[T]) -> T:
        """Return what a request comes to; one that takes too long goes on to its end, and is not waited for.

        Raises ``StoreUnavailableError``.
        """
        task.add_done_callback(lambda late: late.cancelled() or late.exception())  # also where nothing waits for it
        done, _ = await asyncio.wait({task}, timeout=self._patience)
        if not done:
            raise store_unavailable("The store", f"it did not answer within {self._patience:g} s")
        return task.result()

    # -- what a call reads -------------------------------------------------------------------------

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

    def _counts(self) -> bool:
        """Return whether what was read last counts still."""
        return self._clock() - self._known_at <= self._grace

    async def change_token(self, since: float | None = None) -> ChangeToken:
        """Return the token of the store, or the last one that is known."""
        if (known := self.known_token(time.monotonic() if since is None else since)) is not None:
            return known
        if self._lost is None:
            try:
                return await self._in_time(self._tasks.start(self._asked_token(since)))
            except StoreUnavailableError as error:
                self._note_lost(error)
        if self._token is None or not self._counts():
            await self._refuse()
        return self._token

    async def changed(self, token: ChangeToken, timeout: float) -> None:
        """Return when the store may have changed, or was lost or found; at last after a while."""
        if self._lost is None:
            await self._store.changed(token, timeout)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._turned.wait()

    def known_token(self, since: float) -> ChangeToken | None:
        """Return the token of the store, where it is known without waiting; None while it is lost."""
        token = self._store.known_token(since) if self._lost is None else None
        if token is not None:
            self._token, self._known_at = token, max(self._known_at, min(since, self._clock()))
        return token

    def _keep(self, key: Hashable, value: object) -> None:
        self._read[key] = value
        self._read.move_to_end(key)
        if len(self._read) > MOST_READ:
            self._read.popitem(last=False)

    async def _last(self, key: Hashable, request: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Return what a request answers, or what was read or written last under its key."""
        known = self._read.get(key, UNREAD)
        if self._lost is None:
            try:
                found = await (request() if known is UNREAD else self._in_time(self._tasks.start(request())))
            except StoreUnavailableError:  # whether the store is lost is known by its token
                if known is UNREAD or not self._counts():
                    raise
            else:
                if self._read.get(key, UNREAD) is known:  # else a writing has overtaken it
                    self._keep(key, found)
                return found
        if key not in self._read or not self._counts():
            await self._refuse()
        return self._read[key]

    def known_state(self, key: SessionKey) -> StoredState | Unread | None:
        """Return the stored state, where it is known without waiting; not while the store is lost."""
        if self._lost is not None or self._digest_key is None:
            return UNREAD
        if (known := self._store.known_state(key)) is not UNREAD:
            self._keep(key, known)
        return known

    async def load(self, key: SessionKey) -> StoredState | None:
        """Return the stored state, or the one that was read or written last."""
        if (known := self.known_state(key)) is not UNREAD:
            return known
        if self._digest_key is None:
            with suppress(StoreUnavailableError):  # the first call may come when the store is lost
                await self._in_time(self._tasks.start(self.digest_key()))
        return await self._last(key, lambda: self._store.load(key))

    async def digest_key(self) -> bytes:
        """Return the secret with which arguments are digested, which is always the same."""
        if self._digest_key is None:
            if self._lost is not None:
                await self._refuse()
            self._digest_key = await self._store.digest_key()
        return self._digest_key

    async def sealed(self, kind: SealedKind, key: str) -> SealedText | None:
        """Return a secret; a grant is the one that was read last, since calls need it."""
        if kind == "grant":
            return await self._last((kind, key), lambda: self._store.sealed(kind, key))
        return await (self._refuse() if self._lost is not None else self._store.sealed(kind, key))

    # -- what is written, and read again after that ------------------------------------------------

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
        if self._lost is not None:
            await self._refuse()
        if len(changes) == 1:
            one = changes[0]
            version = await self._store.save(one.key, one.text, expected=one.expected, audit=audit)
            versions = None if version is None else [version]
        else:
            versions = await self._store.save_together(changes, audit=audit)
        for one, version in zip(changes, versions or (), strict=False):
            text, now = one.text, time.time()
            self._keep(one.key, None if text is None else StoredState(text=text, version=version, updated_at=now))
            self._moved(states=object())
        return versions

    async def seal(self, kind: SealedKind, key: str, text: str | None, **given: Any) -> int | None:
        """Store a secret; a grant is the last that is known."""
        if self._lost is not None:
            await self._refuse()
        version = await self._store.seal(kind, key, text, **given)
        if kind == "grant" and version is not None:
            found = None if text is None else SealedText(key, text, version, given.get("expires_at"))
            self._keep((kind, key), found)
        return version
