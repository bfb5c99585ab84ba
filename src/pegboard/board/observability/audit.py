"""Write the audit trail, and emit the events that go with it (X4)."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pegboard.board.observability.metrics import SessionMetrics
from pegboard.core.model.masking import Masker
from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import CallResult, Frozen, JsonObject
from pegboard.errors import UsageError
from pegboard.ports import AuditKind, AuditRecord, CallDetails, CallNumbers, RequestStore, SessionKey
from pegboard.support.encodable import pieces_by

log = logging.getLogger("pegboard")

_SUBJECT = 300
_READ = 4_096
"""How much of a text is looked at for its one line."""
_MOST_RENDERED = 4096
"""How many texts are kept as the trail has them, none longer than its line."""
_pieces = pieces_by(json.JSONEncoder(sort_keys=True, default=str))
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
    "adapted",
    "store_lost",
    "store_back",
)
Callback = Callable[[Mapping[str, Any]], object]


class EventSubscribers:
    """The subscribers of events; one that raises stops no one else."""

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


class Recorder:
    """The audit trail of one board; no secret and no argument gets into it (X5)."""

    def __init__(self, store: RequestStore, metrics: SessionMetrics, events: EventSubscribers, masker: Masker) -> None:
        self._store = store
        self._metrics = metrics
        self._events = events
        self._rendered: dict[str, str] = {}
        self.keyed: hashlib.blake2b | None = None
        self.masker = masker

    @property
    def masker(self) -> Masker:
        """Return what hides secrets."""
        return self._masker

    @masker.setter
    def masker(self, masker: Masker) -> None:
        self._masker, self._hidden = masker, masker.forms
        self._rendered.clear()

    async def digest(self, arguments: JsonObject) -> str:
        """Return the keyed digest of a call's arguments: 16 hexadecimal digits; nothing where they are not JSON."""
        return self.measure_arguments(arguments, self.keyed or await self.take_key())[0]

    async def take_key(self) -> hashlib.blake2b:
        """Return an empty digest with the key of the store, which ``keyed`` is from then on."""
        self.keyed = hashlib.blake2b(key=await self._store.digest_key(), digest_size=8)
        return self.keyed

    def measure_arguments(self, arguments: JsonObject, keyed: hashlib.blake2b) -> tuple[str, int | None]:
        """Return the keyed digest of a call's arguments, and how many characters they have as JSON."""
        try:
            text = "".join(_pieces(arguments, 0)).encode("ascii")
        except (ValueError, TypeError, RecursionError):
            return "", None
        found = keyed.copy()
        found.update(text)
        return found.hexdigest(), len(text)

    def entry(
        self,
        key: SessionKey,
        turn: int,
        kind: AuditKind,
        subject: str,
        decision: str,
        *,
        reason: str = "",
        duration: float | None = None,
        outcome: str = "",
        arguments: str = "",
        by: str = "",
    ) -> AuditRecord:
        """Return a record of now, masked; the fields are those of ``AuditRecord``."""
        principal, agent, session = key.principal, key.agent, key.session
        return AuditRecord(
            datetime.now(UTC), kind, principal, agent, session, turn, self.render_text(subject), decision,
            reason and self.render_text(reason), duration, outcome, arguments, by and self.render_text(by),
        )  # fmt: skip

    def render_text(self, text: str) -> str:
        """Return a subject or a reason as the trail has it: masked, on one line, cut."""
        if self._hidden is not self._masker.forms:  # a value has become known
            self.masker = self._masker
        found = self._rendered.get(text)
        if found is None:
            found = one_line(self._masker.beginning(text, _READ), limit=_SUBJECT)
            if len(text) <= _SUBJECT:
                if len(self._rendered) >= _MOST_RENDERED:
                    self._rendered.clear()
                self._rendered[text] = found
        return found

    async def note(self, record: AuditRecord, event: str | None = None, details: CallDetails | None = None) -> None:
        """Store a decision at once, with the details of it where it is a call, then emit its event."""
        await self._store.record(record, details=details)
        self.emit(event, record)

    async def note_all(self, records: Sequence[AuditRecord]) -> None:
        """Store decisions at once that have no event of their own."""
        if records:
            await self._store.record(*records)

    def note_later(self, record: AuditRecord, event: str | None = None, details: CallDetails | None = None) -> None:
        """Store a call within 50 ms (S2), with its details, and emit its event."""
        self._store.record_later(record, details)
        if event is not None:
            self._metrics.count_event(event, record)
            if self._events.callbacks.get(event):
                self._events.emit_record(event, record)

    async def record_denial(
        self,
        key: SessionKey,
        turn: int,
        *,
        subject: str,
        reason: str,
        outcome: str,
        by: str = "",
        details: CallDetails | None = None,
    ) -> None:
        """Store at once that a call was refused, then emit it."""
        record = self.entry(key, turn, "deny", subject, "refused", reason=reason, outcome=outcome, by=by)
        await self.note(record, "denied", details)

    def emit(self, event: str | None, record: AuditRecord) -> None:
        """Count the event of a record that is stored, and emit it; None is none."""
        if event is not None:
            self._metrics.count_event(event, record)
            if self._events.callbacks.get(event):
                self._events.emit_record(event, record)


def times_of_call(
    came: float,
    ran: float | None,
    ended: float,
    *,
    waited: float | None,
    sent: int | None,
    result: CallResult | None = None,
) -> CallNumbers:
    """Return where the time of a call went that has ended, and how long its arguments and its answer are.

    Args:
        came: when it came, as ``ran`` and ``ended`` in seconds of ``time.monotonic()``.
        ran: when it was handed to its plugin, None where it was not.
        ended: when it ended.
        waited: for how many milliseconds a person was asked through the client, None where none was.
        sent: how many characters its arguments have as JSON, None where they are not JSON.
        result: what it was answered, None where it was not.
    """
    queued = int(((ended if ran is None else ran) - came) * 1_000_000) / 1000
    if waited:
        queued = max(0.0, round(queued - waited, 3))
    upstream = None if ran is None else int((ended - ran) * 1_000_000) / 1000
    return CallNumbers(queued, waited, upstream, sent, None if result is None else _characters_of(result))


def _characters_of(result: CallResult) -> int | None:
    """Return how many characters of text a result has; None where it has structured content alone."""
    if len(result.content) == 1 and type(text := result.content[0].get("text")) is str:
        return len(text)
    sizes = [len(text) for block in result.content if isinstance(text := block.get("text"), str)]
    return sum(sizes) if sizes or result.structured is None else None
