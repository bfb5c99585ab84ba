"""Delete a session: its state, the calls of it that wait for a person, and what this process keeps of it (X4)."""

from __future__ import annotations

from dataclasses import asdict

from pegboard.board.services import Services
from pegboard.ports import SessionKey


async def delete_session(services: Services, key: SessionKey, by: str) -> bool:
    """Return whether there was something to delete; the next use of the name begins anew.

    A request in flight is not stopped: what it changes afterwards is stored as of a new session.

    Raises:
        StoreError: it cannot be deleted.
    """
    gone = await _remove_state(services, key, by)
    gone = bool(await services.store.remove_approvals(**asdict(key))) or gone
    if services.live.get(key) is not None:
        services.live.forget(key)
        gone = True
    services.conversations.begin_anew(key)
    return gone


async def _remove_state(services: Services, key: SessionKey, by: str) -> bool:
    """Remove a session's state; another writer's change in between is removed as well."""
    recorder, reason = services.recorder, "The session was deleted."
    while (stored := await services.store.load(key)) is not None:
        entry = recorder.entry(key, 0, "unload", "session", "allowed", reason=reason, outcome="unloaded", by=by)
        if await services.store.save(key, None, expected=stored.version, audit=[entry]) is not None:
            recorder.emit("unloaded", entry)
            return True
    return False
