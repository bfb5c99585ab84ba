"""What other processes have changed, as the database tells it: without a statement, while it can be listened to.

Every transaction that changes something tells so in its last message, on one channel: which process wrote, which
states and remembered uses (their keys), and counters that grow by one. A counter is locked until the commit, so its
values are told in their order, and one that is missing was lost. As a net the counters are read every few seconds.
Where nothing can be heard (the connection is lost, or a pooler is in front of the server), they are read each time
that the token is asked for.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from pegboard.errors import StoreError
from pegboard.ports import ChangeToken
from pegboard.support.backoff import Backoff
from pegboard.support.tasks import start_detached

if TYPE_CHECKING:
    from pegboard.stores.sql.address import PostgresAddress
    from pegboard.stores.sql.database import Row

PostgresConnection = Any  # psycopg.AsyncConnection, which is imported late
Statement = tuple[str, Sequence[Any]]
"""SQL as it is written for the store, with its values."""

NET_SECONDS: Final = 3.0
"""How often the counters are read while changes are told."""
ECHO_SECONDS: Final = 2.0
"""How long a connection may take to hear what is told to it; one that hears nothing is behind a pooler."""
DEAF_SECONDS: Final = 60.0
"""After how long it is tried again to listen where nothing could be heard."""
POLL_SECONDS: Final = 0.5
"""How often a change that is waited for is looked for where nothing can be heard."""
_UNDERWAY: Final = 0.3
"""How long what was told may be underway."""
_MOST_KEYS: Final = 40
"""How many keys are told one by one: a payload has less than 8,000 bytes. More are told as all."""
_ALL: Final = "*"

_COUNTERS: Final = {"S": "states", "P": "permissions", "r": "others"}
"""The counter behind each kind of number."""
_READ: Final = "SELECT name, value, clock() FROM main.counter"
_COUNT: Final = "UPDATE main.counter SET value = value + 1 WHERE name = ?"
_TELL: Final = (
    "SELECT numbers, pg_notify(?, ? || numbers) FROM (SELECT coalesce(string_agg("
    "CASE name WHEN 'states' THEN ' S=' ELSE ' P=' END || value, ''), '') AS numbers"
    " FROM main.counter WHERE name IN (?, ?)) AS told"
)

log = logging.getLogger(__name__)


@dataclass(slots=True)
class CommittedChanges:
    """What a transaction has changed: states and uses by their keys, permissions, or what others may show."""

    states: list[str] = field(default_factory=list[str])
    uses: list[str] = field(default_factory=list[str])
    permissions: bool = False
    others: bool = False


class Listened(Protocol):
    """What is asked of the database."""

    @property
    def address(self) -> PostgresAddress:
        """Return where it is."""
        ...

    async def connect_to_listen(self) -> PostgresConnection:
        """Return a new connection, which the caller closes."""
        ...

    async def read(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows of a query."""
        ...

    async def send(self, connection: PostgresConnection, message: Sequence[Statement]) -> object:
        """Send statements over a connection."""
        ...


class Notifications:
    """The change token of a database, and what others tell of their changes.

    ``forget`` is called with what another process has changed, or may have: ``"s"`` for states or ``"u"`` for uses, and
    a key, None for all.
    """

    def __init__(self, database: Listened, forget: Callable[[str, str | None], None]) -> None:
        self._database = database
        self._forget = forget
        self._writer = secrets.token_hex(6)
        self._moves = {"S": 0, "P": 0, "r": 0}
        self._last = ChangeToken(0, 0, 0)
        self._seen: dict[str, int] = {}  # the newest number of each kind that is known
        self._looked_at = 0.0
        self.confirmed_at = 0.0
        """When the server was last known to answer (``time.monotonic()``); a silent one tells nothing either."""
        self.ahead = 0.0
        """By how many seconds the clock of the server is ahead of that of this machine."""
        self._connection: PostgresConnection | None = None
        self._file: int | None = None  # of its socket, which is gone once the connection is lost
        self._hears = False
        self._echo = asyncio.Event()
        self._lost = asyncio.Event()
        self._moved = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def hears(self) -> bool:
        """Return whether changes of others are told: what was read counts until then."""
        return self._hears

    def start(self) -> None:
        """Begin to listen, on the running loop."""
        self._task = start_detached(self._listen_forever(), name="pegboard: store changes")

    async def stop(self) -> None:
        """Stop to listen."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    # -- telling -----------------------------------------------------------------------------------

    def statements_to_announce(self, changes: CommittedChanges) -> list[Statement]:
        """Return the statements that tell others what a transaction has changed, for its end; none for nothing.

        The row of the last one is for :meth:`count`.
        """
        words = [*_words("s", changes.states), *_words("u", changes.uses)]
        words += ["r"] if changes.others else []
        counters = ["states"] if changes.states else []
        counters += ["permissions"] if changes.permissions else []
        if not words and not counters:
            return []
        told = self._database.address.channel, " ".join([self._writer, *words])
        return [*((_COUNT, (name,)) for name in counters), (_TELL, (*told, *(counters * 2 or ["", ""])[:2]))]

    def count(self, changes: CommittedChanges, told: list[Row]) -> None:
        """Count what a committed transaction of this process has changed; ``told`` is what its last row says."""
        self._moves["S"] += bool(changes.states or changes.permissions)
        self._moves["P"] += changes.permissions
        if told and not self._hears:
            for word in told[0][0].split():
                self._number(word[0], int(word[2:]))

    # -- asking ------------------------------------------------------------------------------------

    async def token(self, since: float | None) -> ChangeToken:
        """Return what the database is at; one statement where nothing can be heard."""
        if (known := self.known(since)) is not None:
            return known
        began = time.monotonic()
        self._compare(await self._read_counters())
        self._looked_at = began
        return self._token()

    async def catch_up(self) -> bool:
        """Take up what was changed by now; return whether there was anything that was not told before."""
        before = self._token()
        numbers = await self._read_counters()
        del numbers["r"]  # of those each is told, and nothing that counts hangs on it
        if self._hears:
            self._drain()
        self._compare(numbers)
        return self._token() != before

    def known(self, since: float | None) -> ChangeToken | None:
        """Return what the database is at, where that is known without a statement."""
        if self._hears:
            self._drain()
        return self._token() if self._hears or (since is not None and since <= self._looked_at) else None

    def _token(self) -> ChangeToken:
        moves = self._moves
        if self._last != (moves["S"], moves["P"], moves["r"]):
            self._last = ChangeToken(moves["S"], moves["P"], moves["r"])
        return self._last

    async def wait_for_change(self, token: ChangeToken, timeout: float) -> None:
        """Return as soon as another process may have changed something, at the latest after ``timeout`` seconds."""
        if not self._hears:
            await asyncio.sleep(min(timeout, POLL_SECONDS))
            return
        if self._token() != token:
            return
        moved = self._moved
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await moved.wait()

    async def _read_counters(self) -> dict[str, int]:
        """Return the counters as they are committed."""
        asked = time.time()
        began = time.monotonic()
        rows = await self._database.read(_READ)
        self.confirmed_at = began
        self.ahead = _distance_outside(rows[0][2], asked, time.time())
        values = {name: value for name, value, _ in rows}
        return {kind: values[name] for kind, name in _COUNTERS.items()}

    def _compare(self, numbers: dict[str, int]) -> bool:
        """Take up numbers that were read; return whether something was not told before."""
        missed = False
        for kind, number in numbers.items():
            if (seen := self._seen.get(kind)) is not None and number > seen:
                self._count_missed(kind)
                missed = True
            self._seen[kind] = max(number, self._seen.get(kind, number))
        return missed

    # -- listening ---------------------------------------------------------------------------------

    async def _listen_forever(self) -> None:
        backoff = Backoff(first=0.1, longest=2.0, jitter=0.3)
        while True:
            try:
                await self._listen(backoff)
            except StoreError as error:
                log.debug("notifications of the store do not arrive: %s", error)
            await backoff.wait()

    async def _listen(self, backoff: Backoff) -> None:
        """Listen until the connection is lost."""
        import psycopg

        connection = await self._database.connect_to_listen()
        try:
            await self._database.send(connection, [(f"LISTEN {self._database.address.channel}", ())])
            self._begin_listening(connection)
            echo = self._database.address.channel, f"{self._writer} ?"
            await self._database.read("SELECT pg_notify(?, ?)", *echo)
            if not await _wait_for_event(ECHO_SECONDS, self._echo):
                log.info("the database sends no notifications here, as behind a pooler: changes are polled")
                await asyncio.sleep(DEAF_SECONDS)
                return
            self._compare(await self._read_counters())
            self._hears = True
            backoff.reset()
            while not await _wait_for_event(NET_SECONDS, self._lost):
                if await self._missed_any():
                    log.info("a notification of the store was lost; listening again")
                    return
        except psycopg.Error as error:
            log.debug("notifications of the store do not arrive: %s", type(error).__name__)
        finally:
            self._end_listening()
            await connection.close()

    async def _missed_any(self) -> bool:
        numbers = await self._read_counters()
        del numbers["r"]  # of those each is told, and nothing that counts hangs on it
        if any(number > self._seen.get(kind, number) for kind, number in numbers.items()):
            await asyncio.sleep(_UNDERWAY)
            self._drain()
        return self._compare(numbers)

    def _begin_listening(self, connection: PostgresConnection) -> None:
        self._echo.clear()
        self._lost.clear()
        file: int = connection.pgconn.socket
        self._connection, self._file = connection, file
        asyncio.get_running_loop().add_reader(file, self._drain)

    def _end_listening(self) -> None:
        """Listen no more; what was read does not count without that."""
        self._hears, self._connection = False, None
        if self._file is not None:
            asyncio.get_running_loop().remove_reader(self._file)
            self._file = None
        self._forget("s", None)
        self._forget("u", None)
        self._wake_waiting()

    def _drain(self) -> None:
        """Take up what has arrived by now; nothing is waited for."""
        import psycopg

        if self._connection is None:
            return
        line: Any = self._connection.pgconn
        try:
            line.consume_input()
            while (notice := line.notifies()) is not None:
                self._take_message(notice.extra)
        except psycopg.Error:
            self._end_listening()
            self._lost.set()

    def _take_message(self, payload: bytes) -> None:
        """Take up one message. Any user of the database may send one: all that such a one says is that it came."""
        try:
            self._take_payload(payload.decode())
        except ValueError:
            self._count_missed("S")
            self._count_missed("P")

    def _take_payload(self, payload: str) -> None:
        writer, *words = payload.split(" ")
        foreign = writer != self._writer
        if not foreign and words == ["?"]:
            self._echo.set()
            return
        for word in words:
            kind, rest = word[:1], word[1:]
            if rest.startswith("="):
                self._number(kind, int(rest[1:]))
            if not foreign:
                continue
            if kind in "su":
                self._forget(kind, None if rest == _ALL else bytes.fromhex(rest).hex())
            elif kind in self._moves:
                self._moves[kind] += 1
        if foreign:
            self._moves["S"] += any(word.startswith("P=") for word in words)
            self._wake_waiting()

    def _number(self, kind: str, number: int) -> None:
        seen = self._seen.get(kind)
        if seen is not None and number > seen + 1:
            self._count_missed(kind)
        self._seen[kind] = number if seen is None else max(seen, number)

    def _count_missed(self, kind: str) -> None:
        """Count a change of which nothing else is known."""
        self._moves[kind] += 1
        if kind != "r":
            self._moves["S"] += kind == "P"
            self._forget("s", None)
        self._forget("u", None)
        self._wake_waiting()

    def _wake_waiting(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()


def _words(kind: str, keys: Sequence[str]) -> list[str]:
    return [f"{kind}{key}" for key in dict.fromkeys(keys)] if len(keys) <= _MOST_KEYS else [f"{kind}{_ALL}"]


def _distance_outside(moment: float, first: float, last: float) -> float:
    """Return by how much a moment is behind, or before, a time: a clock that was read within it may be right.

    >>> _distance_outside(12.0, 10.0, 11.0), _distance_outside(10.5, 10.0, 11.0), _distance_outside(9.0, 10.0, 11.0)
    (1.0, 0.0, -1.0)
    """
    return max(moment - last, 0.0) + min(moment - first, 0.0)


async def _wait_for_event(seconds: float, event: asyncio.Event) -> bool:
    """Return whether something happens within so many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
