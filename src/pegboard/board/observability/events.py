"""Tell subscribers what happened; write the audit trail (X4)."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from pegboard.core.model.masking import Masker
from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import Frozen, JsonObject
from pegboard.errors import UsageError
from pegboard.ports import AuditLog, AuditRecord, SessionKey

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
)
_SUBJECT = 300
_SUBJECTS = 4096
_ENCODER = json.JSONEncoder(sort_keys=True, default=str)
Callback = Callable[[Mapping[str, Any]], object]


class Events:
    """Call back whoever asked for an event; a callback that raises stops nobody else."""

    def __init__(self) -> None:
        self._callbacks: dict[str, list[Callback]] = {}

    def on(self, event: str, callback: Callback) -> Callable[[], None]:
        """Subscribe; returns the function that ends it."""
        if event not in EVENTS:
            raise UsageError(f"There is no event '{event}'.", hint=f"Events: {', '.join(EVENTS)}.")
        held = self._callbacks.setdefault(event, [])
        held.append(callback)
        return lambda: held.remove(callback) if callback in held else None

    def wanted(self, name: str) -> bool:
        """Return whether anybody asked for an event."""
        return bool(self._callbacks.get(name))

    def emit(self, name: str, record: JsonObject) -> None:
        """Make an event and hand it to its subscribers."""
        if self.wanted(name):
            self.hand(name, Frozen(event=name, **record))

    def hand(self, name: str, event: Frozen) -> None:
        """Hand one event to its subscribers."""
        for callback in tuple(self._callbacks[name]):
            try:
                callback(event)
            except Exception:
                log.exception("a subscriber of %s failed", name)


class Recorder:
    """Write audit records for one board; no secret and no argument gets into them (X5)."""

    def __init__(self, audit: AuditLog, events: Events, masker: Masker) -> None:
        self._audit = audit
        self._events = events
        self._shown: dict[str, str] = {}
        self._key: bytes | None = None
        self.masker = masker

    @property
    def masker(self) -> Masker:
        """Return what hides secrets."""
        return self._masker

    @masker.setter
    def masker(self, masker: Masker) -> None:
        self._masker = masker
        self._shown.clear()

    async def digest(self, arguments: JsonObject) -> str:
        """Return the keyed digest of a call's arguments: 16 hexadecimal digits."""
        if self._key is None:
            self._key = await self._audit.digest_key()
        text = _ENCODER.encode(arguments).encode(errors="surrogatepass")
        return hashlib.blake2b(text, key=self._key, digest_size=8).hexdigest()

    def _record(self, key: SessionKey, turn: int, fields: dict[str, Any]) -> AuditRecord:
        return AuditRecord(
            at=datetime.now(UTC),
            principal=key.principal,
            agent=key.agent,
            session=key.session,
            turn=turn,
            subject=self._subject(fields.pop("subject", "")),
            reason=self._text(fields.pop("reason", "")),
            **fields,
        )

    def _subject(self, text: str) -> str:
        known = self._shown.get(text)
        if known is None:
            if len(self._shown) >= _SUBJECTS:
                self._shown.clear()
            known = self._shown[text] = self._text(text)
        return known

    def _text(self, text: str) -> str:
        return self._masker.text(one_line(text, limit=_SUBJECT)) if text else ""

    async def decided(self, key: SessionKey, turn: int, event: str | None, **fields: Any) -> None:
        """Write a decision at once, then tell subscribers."""
        record = self._record(key, turn, fields)
        await self._audit.record(record)
        self._tell(event, record)

    async def denied(self, key: SessionKey, turn: int, *, subject: str, reason: str, outcome: str) -> None:
        """Write at once that a call was refused, then tell subscribers."""
        await self.decided(
            key, turn, "denied", kind="deny", subject=subject, decision="refused", reason=reason, outcome=outcome
        )

    def called(
        self,
        key: SessionKey,
        turn: int,
        *,
        subject: str,
        decision: str,
        outcome: str,
        duration: float,
        arguments: str,
    ) -> None:
        """Write a call soon, and tell subscribers."""
        principal, agent, session = key.principal, key.agent, key.session
        record = AuditRecord(
            datetime.now(UTC), "call", principal, agent, session, turn, self._subject(subject), decision, "",
            duration, outcome, arguments,
        )  # fmt: skip
        self._audit.record_later(record)
        self._tell("called", record)

    def asked(self, key: SessionKey, turn: int, **fields: Any) -> None:
        """Write a read of a resource or prompt soon."""
        self._audit.record_later(self._record(key, turn, {"decision": "allowed", **fields}))

    def _tell(self, event: str | None, record: AuditRecord) -> None:
        if event is not None and self._events.wanted(event):
            told = Frozen(
                event=event,
                principal=record.principal,
                agent=record.agent,
                session=record.session,
                turn=record.turn,
                subject=record.subject,
                decision=record.decision,
                reason=record.reason,
                outcome=record.outcome,
            )
            self._events.hand(event, told)
