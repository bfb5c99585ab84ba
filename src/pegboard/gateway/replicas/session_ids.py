"""Ids of transport sessions that name the replica that began them (G14)."""

from __future__ import annotations

import re
from typing import Final

_SESSION: Final = re.compile(rb"([a-z0-9]{1,16})-[0-9a-f]{32}")


def session_id_of(replica: str, random: str) -> str:
    """Return the id of a transport session that a replica begins; ``random`` is 32 hexadecimal digits."""
    return f"{replica}-{random}"


def owner_of_session(session: bytes) -> str | None:
    """Return the replica that began a transport session, or None where its id names none.

    >>> owner_of_session(b"0a1b-00112233445566778899aabbccddeeff"), owner_of_session(b"../a-0")
    ('0a1b', None)
    """
    found = _SESSION.fullmatch(session)
    return None if found is None else found[1].decode()
