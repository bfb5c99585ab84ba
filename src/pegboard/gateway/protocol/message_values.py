"""How many values a message has, counted in its bytes before it is read: many small ones cost more than large texts."""

from __future__ import annotations

from typing import Final

MOST_VALUES: Final = 50_000
"""How many values one message from a client may have."""
FEWEST_BYTES: Final = 2 * MOST_VALUES
"""A message of fewer bytes has no more values than that."""


def has_too_many_values(message: bytes) -> bool:
    r"""Return whether a message has more values than one may have; what is in texts does not count.

    >>> has_too_many_values(b"[" + b"1," * 60_000 + b"1]"), has_too_many_values(b'"' + b'1,\\",' * 60_000 + b'"')
    (True, False)
    >>> has_too_many_values(b"{" + b'"a":1,' * 60_000 + b'"a":1}')
    True
    """
    if len(message) < FEWEST_BYTES or message.count(b",") + message.count(b"[") + message.count(b"{") <= MOST_VALUES:
        return False
    plain = message.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 4 * MOST_VALUES:  # the two of a key and of a text each
        return True
    between = b"".join(plain.split(b'"')[::2])
    return between.count(b",") + between.count(b"[") + between.count(b"{") > MOST_VALUES
