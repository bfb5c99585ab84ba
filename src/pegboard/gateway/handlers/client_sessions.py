"""The session of a client and its folder over stdio: what was loaded ends with the client (G1)."""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pegboard.core.model.leases import UNLOAD
from pegboard.errors import StoreError
from pegboard.ports import AuditFilter
from pegboard.support import user_folders

if TYPE_CHECKING:
    from pegboard.board import Session
    from pegboard.gateway.protocol.board_port import BoardPort, Caller

PAUSE: Final = 3600.0
"""For how many seconds no call came before what a client loaded ends with it."""
_FOLDER: Final = "clients"
_locks: dict[str, int] = {}
"""The locks of this process, by the session: the system gives them back with the process, however it ends."""
_users: dict[str, set[str]] = {}
"""The connections that have such a session open, by the session."""


async def begin_client_session(board: BoardPort, session: Session, caller: Caller) -> None:
    """Unload what a client loaded that has ended, where no call came for an hour; once for each session of a process.

    It is about the session that no one named. One that another process of the same client has open stays unchanged.
    """
    key = session.key
    if not caller.folder or key.session != caller.usual_session:
        return
    name = f"{board.configuration.path}\0{key.principal}\0{key.agent}\0{key.session}"
    _users.setdefault(name, set()).add(caller.client)
    if name in _locks or not _is_first(name):
        return
    with suppress(StoreError):  # the request itself says so
        stored = await board.services.store.load(key)
        if stored is None or time.time() - stored.updated_at < PAUSE or await _was_called(board, session):
            return
        snapshot = await session.snapshot()
        left = [str(lease.subject) for lease in snapshot.state.leases if lease.until == UNLOAD]
        if left:
            await session.unload(*left)
            await session.end_turn()  # else it would count as unloaded by the model in this turn


def end_client_sessions(client: str) -> None:
    """Note that a connection has ended: where it was the last one of a session, another process may be the first."""
    for name in [name for name, users in _users.items() if client in users]:
        _users[name].discard(client)
        if not _users[name]:
            del _users[name]
            number = _locks.pop(name, -1)
            if number >= 0:
                os.close(number)


async def _was_called(board: BoardPort, session: Session) -> bool:
    key, since = session.key, datetime.now(UTC) - timedelta(seconds=PAUSE)
    whose = AuditFilter(principal=key.principal, agent=key.agent, session=key.session, since=since)
    return bool((await board.services.store.part(whose, limit=1)).records)


def _is_first(name: str) -> bool:
    """Take the lock of a session for as long as this process runs; return whether no other process has it."""
    try:
        import fcntl
    except ImportError:  # no one can tell
        _locks[name] = -1
        return True
    folder = user_folders.state() / _FOLDER
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = folder / f"{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:32]}.lock"
        number = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:  # a folder that cannot be written
        _locks[name] = -1
        return True
    _locks[name] = number
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        with suppress(OSError):
            fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    with suppress(OSError):
        fcntl.flock(number, fcntl.LOCK_SH)
    return True
