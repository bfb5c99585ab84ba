"""Note in the trail that something was searched for: what for is kept where arguments are (X4)."""

from __future__ import annotations

from pegboard.board.observability.call_details import CallTimes, EndedCall, details_of
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.dialects.names import Found, Search

SUBJECT = "search"


def note_search(services: Services, snapshot: Snapshot, needs: Search, found: Found) -> None:
    """Note a search and how much it found, within 50 ms (S2)."""
    recorder, info = services.recorder, snapshot.info
    outcome = f"{len(found.results)} found"
    entry = recorder.entry(info.key, snapshot.state.turn, "search", SUBJECT, "allowed", outcome=outcome, by=info.by)
    ended = EndedCall("", {"queries": list(needs.queries)}, CallTimes())
    recorder.note_later(entry, details=details_of(services.masker, snapshot.permissions.agent.record, ended))
    services.metrics.searched(info.key)
