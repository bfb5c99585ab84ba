"""Texts by which people and clients name sessions, principals and turns."""

from __future__ import annotations

from typing import Final

LONGEST: Final = 512
"""How many characters such a text may have."""


def label_problem(value: object) -> str:
    """Return what is wrong with a session id, a principal or a turn label, or nothing.

    >>> label_problem("thread-42"), label_problem("")
    ('', 'is empty.')
    """
    if not isinstance(value, str):
        return "is not a string."
    if not value:
        return "is empty."
    if len(value) > LONGEST:
        return f"has {len(value)} characters; at most {LONGEST} are allowed."
    try:
        value.encode()
    except UnicodeEncodeError:
        return "is not valid Unicode."
    return ""
