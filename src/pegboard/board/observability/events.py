"""Call back whoever asked for an event."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from pegboard.core.model.tools import Frozen, JsonObject
from pegboard.errors import UsageError
from pegboard.ports import AuditRecord

log = logging.getLogger("pegboard")

EVENTS = (
    "loaded",
    "unloaded",
    "evicted",
    "loadout_changed",
    "denied",
    "called",
    "turn_ended",
    "catalog_changed",
    "configuration_changed",
    "configuration_refused",
    "permissions_changed",
    "pins_changed",
    "approval_asked",
    "approval_decided",
    "approval_used",
    "rejected",
    "store_lost",
    "store_back",
)
Callback = Callable[[Mapping[str, Any]], object]


class Events:
    """The subscribers of events; one that raises stops nobody else."""

    def __init__(self) -> None:
        self.callbacks: dict[str, list[Callback]] = {}
        """The subscribers of each event that has, or has had, some."""

    def on(self, event: str, callback: Callback) -> Callable[[], None]:
        """Subscribe; returns the function that ends it. Raises ``UsageError`` for an unknown event."""
        if event not in EVENTS:
            raise UsageError(f"There is no event '{event}'.", hint=f"Events: {', '.join(EVENTS)}.")
        callbacks = self.callbacks.setdefault(event, [])
        callbacks.append(callback)
        return lambda: callbacks.remove(callback) if callback in callbacks else None

    def emit(self, name: str, record: JsonObject) -> None:
        """Call the subscribers of an event with its record."""
        if self.callbacks.get(name):
            self._call(name, Frozen(event=name, **record))

    def emit_record(self, name: str, record: AuditRecord) -> None:
        """Call the subscribers of an event, which has some, with what the audit trail has of it."""
        event = Frozen(
            event=name,
            principal=record.principal,
            agent=record.agent,
            session=record.session,
            turn=record.turn,
            subject=record.subject,
            decision=record.decision,
            reason=record.reason,
            outcome=record.outcome,
        )
        self._call(name, event)

    def _call(self, name: str, event: Frozen) -> None:
        for callback in tuple(self.callbacks[name]):
            try:
                callback(event)
            except Exception:
                log.exception("a subscriber of %s failed", name)
