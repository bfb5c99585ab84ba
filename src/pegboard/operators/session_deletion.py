"""Delete a session: its state, the calls of it that wait for a person, and what this process keeps of it (X4)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from pegboard.board.services import Services
from pegboard.ports import AuditRecord, SessionKey

_SUBJECT: Final = "session"
_REASON: Final = "The session was deleted."


async def delete_session(services: Services, key: SessionKey, by: str) -> bool:
    """Return whether there was something to delete; the next use of the name begins anew.

    A request in flight is not stopped: what it changes afterwards is stored as of a new session.

    Raises:
        StoreError: it cannot be deleted.
    """
    entry = services.recorder.entry(key, 0, "unload", _SUBJECT, "allowed", reason=_REASON, outcome="unloaded", by=by)
    recorded = await _remove_state(services, key, entry)
    waited = bool(await services.store.remove_approvals(**asdict(key)))
    gone = recorded or waited or services.live.get(key) is not None
    if gone and not recorded:
        await services.store.record(entry)
    services.live.forget(key)
    services.conversations.begin_anew(key)
    if gone:
        services.recorder.emit("unloaded", entry)
    return gone


async def _remove_state(services: Services, key: SessionKey, entry: AuditRecord) -> bool:
    """Remove a session's state; another writer's change in between is removed as well."""
    while (stored := await services.store.load(key)) is not None:
        if await services.store.save(key, None, expected=stored.version, audit=[entry]) is not None:
            return True
    return False


def is_deletion(record: AuditRecord) -> bool:
    """Return whether a record says that its session was deleted."""
    return (record.kind, record.subject, record.reason) == ("unload", _SUBJECT, _REASON)
