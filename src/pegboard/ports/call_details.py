"""What is kept of calls beside the audit trail, as stores see it (X4)."""

from __future__ import annotations

from typing import Final, NamedTuple

MOST_DETAILS: Final = 256 * 1024 * 1024
"""How many characters of details a store keeps about; the oldest go first."""
MOST_UNWRITTEN: Final = 64 * 1024 * 1024
"""How many characters of details wait at most to be written; of calls that come then, the record alone is kept."""


class CallDetails(NamedTuple):
    """What is kept of a call beside its record, as text, until a time in seconds since the epoch."""

    text: str
    until: float
